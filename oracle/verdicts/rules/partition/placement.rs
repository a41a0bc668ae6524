//! Where nodes run: tangents, effects, random draws, communication.

use super::super::messages;
use super::super::streams::unlooked;
use super::super::{Checked, Code, Finding};
use super::compose::{Origin, Wrapper, added_wrapper, item_of};
use super::evidence::{PartitionEvidence, ValueClass, live, tangent_dependent};
use super::mutation::misreads;
use super::tags::Region;
use crate::analysis::storages::Touch;
use crate::graph::{Graph, NodeId, Op, Value};
use crate::ops::{Collective, Kind, OpInfo};
use crate::rules::AnalyzedGraph;
use rustc_hash::{FxHashMap, FxHashSet};

/// Gradients do not exist in forward, and what depends on them is in backward.
pub(super) fn no_tangent_in_forward(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "partition/no-tangent-in-forward";
    let (joint, forward) = (evidence.joint.graph, evidence.forward.graph);
    let mut findings = Vec::new();
    let needs_tangent = |id: NodeId| {
        let twin = evidence.of_forward.get(id.index()).copied().flatten();
        twin.is_some_and(|twin| evidence.needs_tangent[twin.index()])
    };
    // A name may have been used anew, for a call on other values.
    let takes_tangent = |id: NodeId| {
        let mut dangling = false;
        forward.for_each_dangling(id, &mut |_: &str| dangling = true);
        dangling || forward.node(id).op != Op::Call || forward.inputs(id).into_iter().any(needs_tangent)
    };
    for id in forward.ids() {
        let Some(twin) = evidence.of_forward[id.index()] else { continue };
        if needs_tangent(id) && joint.node(twin).op != Op::Output && takes_tangent(id) {
            let name = forward.name(id);
            findings.push(
                evidence
                    .finding(RULE, format!("{name} runs in forward and depends on a tangent"))
                    .nodes(evidence, [name])
                    .contrast(format!("{name} needs the gradient of an output"), "forward has none"),
            );
        }
    }
    // Where all results are known to be the same, what backward lacks it computes in another way.
    let known = evidence.values.known();
    if known == Some(true) {
        return Checked::Findings(findings);
    }
    let live = live(&evidence.joint);
    let (mut kept, mut stand_ins, mut doubt) = (None, None, None);
    for id in joint.ids() {
        let wanted = live[id.index()]
            && evidence.needs_tangent[id.index()]
            && joint.node(id).op == Op::Call
            && evidence.in_backward[id.index()].is_none()
            && evidence.in_forward[id.index()].is_none();
        // Merged with an equal node is as good as kept.
        if wanted && !*kept.get_or_insert_with(|| equal_in_backward(evidence)).get(&id).unwrap_or(&false) {
            let name = joint.name(id);
            let stand_in = stand_ins.get_or_insert_with(|| stand_ins_of(evidence))[id.index()];
            if let Some(stand_in) = stand_in.filter(|_| known.is_none()) {
                let stand_in = describe_node(evidence.backward.graph, stand_in);
                doubt.get_or_insert_with(|| {
                    format!("backward computes {stand_in} in the place of {}; whether that is the same is not known",
                        describe_node(joint, id))
                });
                continue;
            }
            findings.push(
                evidence
                    .finding(RULE, format!("{name} is missing in backward"))
                    .nodes(evidence, [name])
                    .contrast(
                        format!("{name} depends on a tangent, and outputs or effects need it"),
                        "backward neither has it nor computes an equal value",
                    ),
            );
        }
    }
    Checked::found(findings, doubt.map(|why| Code::ComputedOtherwise.because(why)))
}

/// By node of the joint graph: a node that backward computes from tangents in its place, and that the joint graph does
/// not have. It has the name of the node, or is read or returned where the node is, or where what is computed from the
/// node is.
fn stand_ins_of(evidence: &PartitionEvidence) -> Vec<Option<NodeId>> {
    let (joint, backward) = (evidence.joint.graph, evidence.backward.graph);
    let of_tangents = tangent_dependent(&evidence.backward);
    let is_own = |id: NodeId| {
        id.index() < backward.len()
            && backward.node(id).op == Op::Call
            && evidence.of_backward[id.index()].is_none()
            && of_tangents[id.index()]
    };
    let returned = |id: NodeId| {
        let expected = evidence.joint_returns[evidence.forward_outputs..].iter();
        let mut pairs = expected.zip(&evidence.backward_returns);
        pairs.find_map(|(&a, &b)| match b {
            Value::Node(own) if a == Value::Node(id) && is_own(own) => Some(own),
            _ => None,
        })
    };
    let mut stand_in: Vec<Option<NodeId>> = vec![None; joint.len()];
    // Who reads a node stands behind it.
    for id in joint.ids().rev().filter(|id| evidence.needs_tangent[id.index()]) {
        let read = |&user: &NodeId| match evidence.in_backward[user.index()] {
            _ if joint.node(user).op == Op::Output => returned(id),
            Some(twin) => backward.inputs(twin).into_iter().find(|&own| is_own(own)),
            None => stand_in[user.index()],
        };
        let named = backward.find(joint.name(id)).filter(|&own| is_own(own));
        stand_in[id.index()] = named.or_else(|| evidence.joint.edges.users(id).iter().find_map(read));
    }
    stand_in
}

/// A node and what it calls.
fn describe_node(graph: &Graph, id: NodeId) -> String {
    format!("{} ({})", graph.name(id), graph.target(id))
}

/// Which nodes of the joint graph have an equal node that backward has.
fn equal_in_backward(evidence: &PartitionEvidence) -> FxHashMap<NodeId, bool> {
    let ids = || evidence.joint.graph.ids();
    let Some((joint, _)) = evidence.terms() else {
        // Without a composed graph nothing is known: another rule has said why.
        return ids().map(|id| (id, true)).collect();
    };
    let kept = ids().filter(|id| evidence.in_backward[id.index()].is_some());
    let kept: rustc_hash::FxHashSet<_> = kept.map(|id| joint.of[id.index()]).collect();
    ids().map(|id| (id, kept.contains(&joint.of[id.index()]))).collect()
}

/// Whether a node changes what is outside it: it writes an argument, sends a message, or has an effect that is neither
/// communication nor an assertion.
fn changes_state(info: &OpInfo) -> bool {
    let communicates = info.collective().is_some_and(|kind| !kind.is_message()) || info.kind == Kind::Wait;
    info.writes() || (info.effect && !communicates && !info.asserts() && !info.is_random())
}

/// Whether nothing is known of what a node calls, not even that it has an effect.
fn is_unknown(info: &OpInfo) -> bool {
    info.kind == Kind::Unknown && !info.target.contains("with_effects")
}

/// The part that an effect has to run in. Tags that demand a part hold for effects of every kind. Without one, what
/// writes or acts on something outside runs where it was traced; assertions, communication and draws run wherever
/// what they take and give is needed, and `None` is returned.
fn part_of(evidence: &PartitionEvidence, id: NodeId, info: &OpInfo) -> Option<Region> {
    match evidence.tags[id.index()].region {
        tag @ Some(Region::MustForward | Region::MustBackward) => tag,
        _ if !changes_state(info) => None,
        _ if evidence.belongs_to_forward(id) => Some(Region::MustForward),
        _ => Some(Region::MustBackward),
    }
}

/// Writes and effects happen once, on their side, in their order.
pub(super) fn effects_once_in_order(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "partition/effects-once-in-order";
    let side = &evidence.joint;
    let joint = side.graph;
    let mut findings = Vec::new();
    let mut effects: Vec<NodeId> = Vec::new();
    let mut unknown = None;
    for id in joint.ids() {
        let Some(info) = side.ops.call(joint, id) else { continue };
        let changes = changes_state(info);
        let is_effect = changes
            || info.is_random()
            || info.asserts()
            || info.kind == Kind::Wait
            || info.collective().is_some();
        if !is_effect {
            continue;
        }
        let writes = info.writes();
        if changes && !writes {
            effects.push(id);
        }
        let name = joint.name(id);
        let (forward, backward) = (evidence.in_forward[id.index()], evidence.in_backward[id.index()]);
        let part = part_of(evidence, id, info);
        let (title, expected, observed) = match (forward, backward) {
            (None, None) if changes && is_observable(evidence, id) => {
                (format!("{name} is lost"), "the joint graph runs it", "neither part does")
            }
            (Some(_), Some(_)) if changes && !writes_what_is_recomputed(evidence, id) => {
                (format!("{name} runs twice"), "the joint graph runs it once", "both parts run it")
            }
            // An operator of which nothing is known may have no effect.
            (Some(_), None)
                if evidence.tags[id.index()].region == Some(Region::Backward)
                    && is_unknown(info)
                    && !evidence.needs_tangent[id.index()] =>
            {
                unknown = unknown.or(Some(format!(
                    "forward runs {name}, which is traced in backward: nothing is known of {}",
                    joint.target(id)
                )));
                continue;
            }
            (Some(_), backward) if part == Some(Region::MustBackward) && !(changes && backward.is_some()) => {
                (
                    format!("{name} runs in forward"),
                    "it belongs to the backward part",
                    "forward runs it, before backward begins",
                )
            }
            (None, Some(_)) if part == Some(Region::MustForward) && is_observable(evidence, id) => (
                format!("{name} runs in backward"),
                "it belongs to the forward part",
                match writes {
                    true => "after forward its result would not be there",
                    false => "forward's results are used before it happens",
                },
            ),
            _ => continue,
        };
        let target = format!("{name} is {}", joint.target(id));
        findings.push(
            evidence.finding(RULE, title).nodes(evidence, [name]).fact(target).contrast(expected, observed),
        );
    }
    for (side, part) in evidence.parts() {
        let twins = if part == "forward" { &evidence.of_forward } else { &evidence.of_backward };
        let is_added = |id: &NodeId| {
            twins[id.index()].is_none()
                && side.ops.call(side.graph, *id).is_some_and(|info| info.kind == Kind::Unknown)
        };
        if let Some(id) = side.graph.ids().find(is_added) {
            let (name, target) = (side.graph.name(id), side.graph.target(id));
            unknown = unknown.or(Some(format!(
                "{part} runs {name}, which the joint graph does not have: nothing is known of {target}"
            )));
        }
        for (id, what) in added_changes(evidence, side, part) {
            let name = side.graph.name(id);
            findings.push(
                evidence
                    .finding(RULE, format!("{part} runs {name}, which the joint graph does not have"))
                    .nodes(evidence, [name])
                    .fact(format!("{name} is {}", side.graph.target(id)))
                    .contrast("the parts do what the joint graph does", format!("{name} {what} once more")),
            );
        }
    }
    // Effects among themselves, then writes to one storage.
    let mut sequences = vec![effects];
    let versions = super::terms::Versions::new(side);
    if versions.any() {
        let storages = side.storages();
        for storage in storages.ids().filter(|&storage| versions.is_written(storage)) {
            let writes = storages.accesses_of(storage).filter(|access| access.touch == Touch::Write);
            sequences.push(writes.map(|access| access.node).collect());
        }
    }
    for sequence in sequences {
        for (place, part) in [(&evidence.in_forward, "forward"), (&evidence.in_backward, "backward")] {
            let placed: Vec<(NodeId, NodeId)> =
                sequence.iter().filter_map(|&id| Some((id, place[id.index()]?))).collect();
            if let Some([first, second]) = placed.windows(2).find(|pair| pair[0].1 > pair[1].1) {
                let (a, b) = (joint.name(first.0), joint.name(second.0));
                findings.push(
                    evidence
                        .finding(RULE, format!("{part} runs {b} before {a}"))
                        .nodes(evidence, [b, a])
                        .contrast(
                            format!("the joint graph runs {a} first"),
                            format!("{part} runs {b} first"),
                        ),
                );
            }
        }
    }
    // A write that moved past a read within one part.
    for misread in misreads(evidence).iter().filter(|misread| misread.origin == Origin::Forward) {
        findings.push(
            evidence
                .finding(RULE, format!("{} reads another version of its input", misread.reader))
                .nodes(evidence, misread.names())
                .contrast(misread.describe_joint(), misread.describe_composed("forward")),
        );
    }
    let (strayed, doubt) = super::draws::strayed_draws(evidence);
    findings.extend(strayed);
    let graphs = [&evidence.joint, &evidence.forward, &evidence.backward];
    let unknown = unknown.map(|why| Code::UnknownOperator.because(why));
    let doubt = unknown.or_else(|| doubt.map(|why| Code::UncertainDependence.because(why)));
    let held = || {
        let composed = evidence.composed.as_deref()?;
        let twin = |launch: usize| {
            let node = composed.collectives.calls[launch].node;
            Some(vec![side.collectives.launch_at(joint.find(composed.graph.name(node))?)?])
        };
        messages::holds_more([side, composed], &twin, &|_, _| false)
    };
    Checked::found(findings, doubt.or_else(held).or_else(|| unlooked(graphs, "the parts of a partition")))
}

/// The nodes of a part that no node of the joint graph stands for, and that others can see: they communicate, write
/// what the part was given, or have another effect. Each with what it does.
fn added_changes(
    evidence: &PartitionEvidence,
    side: &AnalyzedGraph,
    part: &str,
) -> Vec<(NodeId, &'static str)> {
    let twins = if part == "forward" { &evidence.of_forward } else { &evidence.of_backward };
    let graph = side.graph;
    // A launch that nobody reads, on other values than the node of its name, has that name by chance.
    let is_another = |id: NodeId, twin: NodeId| {
        let (own, theirs) = (graph.inputs(id), evidence.joint.graph.inputs(twin));
        let others = own.iter().zip(&theirs).any(|(input, other)| {
            let terms = evidence.terms().map(|(joint, _)| &joint.of);
            twins[input.index()]
                .zip(terms)
                .is_some_and(|(input, of)| of.get(input.index()) != of.get(other.index()))
        });
        others && side.collectives.launch_at(id).is_some() && side.edges.users(id).is_empty()
    };
    let is_added = |id: &NodeId| match twins[id.index()] {
        None => added_wrapper(evidence.joint.graph, graph, *id).is_none(),
        Some(twin) => is_another(*id, twin),
    };
    let mut changes = Vec::new();
    for id in graph.ids().filter(is_added) {
        let Some(info) = side.ops.call(graph, id) else { continue };
        let writes_what_is_given = || {
            let mut accesses = side.storages().accesses_by(id).iter();
            accesses.any(|access| {
                access.touch == Touch::Write && side.storages().storage(access.part.storage).external
            })
        };
        if side.collectives.launch_at(id).is_some() {
            changes.push((id, "communicates"));
        } else if info.writes() {
            changes.extend(writes_what_is_given().then_some((id, "writes")));
        } else if changes_state(info) && info.kind != Kind::Unknown {
            changes.push((id, "has its effect"));
        }
    }
    changes
}

/// Whether what a node does can be seen: it has an effect, or writes an input, or something that is read later.
fn is_observable(evidence: &PartitionEvidence, id: NodeId) -> bool {
    let side = &evidence.joint;
    let storages = side.storages();
    let info = side.ops.get(side.graph, id);
    let mut writes = storages.accesses_by(id).iter().filter(|access| access.touch == Touch::Write).peekable();
    if writes.peek().is_none() || (info.acts() && !is_unknown(info)) {
        return true;
    }
    writes.any(|access| {
        let storage = access.part.storage;
        storages.storage(storage).external
            || storages.accesses_after(storage, id).any(|later| {
                later.touch == Touch::Read
                    && (side.graph.node(later.node).op == Op::Output
                        || evidence.in_forward[later.node.index()].is_some()
                        || evidence.in_backward[later.node.index()].is_some())
            })
    })
}

/// Whether a node writes only memory that backward makes anew.
fn writes_what_is_recomputed(evidence: &PartitionEvidence, id: NodeId) -> bool {
    let storages = evidence.joint.storages();
    let mut writes = storages.accesses_by(id).iter().filter(|access| access.touch == Touch::Write).peekable();
    writes.peek().is_some()
        && writes.all(|access| {
            let storage = storages.storage(access.part.storage);
            !storage.external && evidence.in_backward[storage.by.index()].is_some()
        })
}

/// A random operator is drawn once; where both parts run it, the second run repeats the first.
pub(super) fn random_paired(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "partition/rng-paired";
    let mut findings = Vec::new();
    let (joint, ops) = (evidence.joint.graph, &evidence.joint.ops);
    for (id, _, twin) in evidence.recomputed().filter(|(id, ..)| ops.draws(joint, *id)) {
        // A draw that nobody reads disturbs nobody.
        if !evidence.live_backward[twin.index()] {
            continue;
        }
        let name = joint.name(id);
        findings.push(
            evidence
                .finding(RULE, format!("{name} is drawn twice"))
                .nodes(evidence, [name])
                .fact(format!("{name} is {}, which draws random numbers", joint.target(id)))
                .contrast("both parts see the same numbers", "nothing makes the second run draw them again"),
        );
    }
    let wrappers = |side: &AnalyzedGraph, kind: Wrapper| -> Vec<NodeId> {
        side.graph.ids().filter(|&id| added_wrapper(joint, side.graph, id) == Some(kind)).collect()
    };
    let told = |side: &AnalyzedGraph, id: &NodeId, title: &str, expected: &str, observed: &str| {
        let name = side.graph.name(*id);
        evidence.finding(RULE, format!("{name} {title}")).nodes(evidence, [name]).contrast(expected, observed)
    };
    let (saves, replays) =
        (wrappers(&evidence.forward, Wrapper::Save), wrappers(&evidence.backward, Wrapper::Replay));
    findings.extend(saves.iter().skip(replays.len()).map(|id| {
        told(
            &evidence.forward,
            id,
            "is never replayed",
            "forward keeps its state",
            "backward does not draw from it",
        )
    }));
    findings.extend(replays.iter().skip(saves.len()).map(|id| {
        told(&evidence.backward, id, "replays nothing", "backward draws from a state", "forward kept none")
    }));
    findings.extend(states_of_other_draws(evidence));
    for (side, kind) in [(&evidence.forward, Wrapper::Replay), (&evidence.backward, Wrapper::Save)] {
        findings.extend(wrappers(side, kind).iter().map(|id| {
            told(
                side,
                id,
                "stands in the wrong part",
                "states are kept in forward and used in backward",
                "here it is the other way round",
            )
        }));
    }
    Checked::Findings(findings)
}

/// Replays from a state that is not the one that their own draw left: what backward takes is bound by position, so its
/// n-th state is the n-th that forward keeps, and its n-th generator is at the state that forward's n-th had.
fn states_of_other_draws(evidence: &PartitionEvidence) -> Vec<Finding> {
    const RULE: &str = "partition/rng-paired";
    let Ok(composition) = evidence.composition.as_ref() else { return Vec::new() };
    let joint = evidence.joint.graph;
    let key = |node: Option<NodeId>| {
        let node = node?;
        composition.draws.iter().find(|draw| draw.node == node).map(|draw| draw.key.as_str())
    };
    let of_forward = |id: NodeId| key(composition.of_forward[id.index()]);
    let of_backward = |id: NodeId| key(composition.of_backward[id.index()]);
    let kept: Vec<Option<&str>> = evidence
        .saved
        .iter()
        .filter(|saved| saved.class == ValueClass::Generator)
        .map(|saved| of_forward(item_of(evidence.forward.graph, saved.forward)?.0))
        .collect();
    let own_generators = inputs_named(evidence.forward.graph, &GENERATORS);
    let own_draws: Vec<(NodeId, NodeId)> = with_states(joint, evidence.forward.graph, Wrapper::Generator)
        .into_iter()
        .filter(|(state, _)| own_generators.contains(state))
        .collect();
    let drawn: Vec<Option<&str>> = own_generators
        .iter()
        .map(|input| of_forward(own_draws.iter().find(|(state, _)| state == input)?.1))
        .collect();
    let mut findings = Vec::new();
    let graph = evidence.backward.graph;
    let taken = [
        (Wrapper::Replay, inputs_named(graph, &["rng_state_output_"]), &kept),
        (Wrapper::Generator, inputs_named(graph, &GENERATORS), &drawn),
    ];
    for (kind, inputs, left) in taken {
        for (input, replay) in with_states(joint, graph, kind) {
            let place = inputs.iter().position(|&one| one == input);
            let state = place.and_then(|place| left.get(place)).copied().flatten();
            let Some(own) = of_backward(replay).filter(|own| state != Some(own)) else { continue };
            let (name, input) = (graph.name(replay), graph.name(input));
            let state = state.map_or("none that forward kept".to_string(), |of| format!("that of {of}"));
            findings.push(
                evidence
                    .finding(RULE, format!("{name} draws from the state of another draw"))
                    .nodes(evidence, [name, own])
                    .fact(format!("{name} repeats {own}, from the state {input}"))
                    .contrast(
                        format!("it takes the state of {own}"),
                        format!("by its position {input} is {state}"),
                    ),
            );
        }
    }
    for pair in own_draws.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let [input, second] = [pair[1].0, pair[1].1].map(|id| evidence.forward.graph.name(id));
        let first = own_draws.iter().find(|(state, _)| *state == pair[1].0);
        let first = first.and_then(|&(_, id)| of_forward(id)).unwrap_or("another");
        findings.push(
            evidence
                .finding(RULE, format!("{second} draws from a generator that another draw uses"))
                .nodes(evidence, [second])
                .fact(format!("{input} is given to {first} too"))
                .contrast("each draw has a generator of its own", "the second starts where the first ends"),
        );
    }
    findings
}

/// What the inputs are called that the runtime gives a part as generators.
const GENERATORS: [&str; 2] = ["fwd_rng_state_", "bwd_rng_state_"];

/// The inputs of a part with one of these in their names, in their order.
pub(super) fn inputs_named(part: &Graph, names: &[&str]) -> Vec<NodeId> {
    let is_named = |id: &NodeId| {
        let target = part.target(*id);
        part.node(*id).op == Op::Placeholder && names.iter().any(|name| target.contains(name))
    };
    part.ids().filter(is_named).collect()
}

/// The wrappers of a kind that a partition added, each behind what it takes for its state, in the order of these.
pub(super) fn with_states(joint: &Graph, graph: &Graph, kind: Wrapper) -> Vec<(NodeId, NodeId)> {
    let state = |id: NodeId| match kind {
        Wrapper::Generator => Some(graph.kwargs(id).find(|(key, _)| *key == "rng_state")?.1),
        _ => graph.arg(id, 0),
    };
    let added = graph.ids().filter(|&id| added_wrapper(joint, graph, id) == Some(kind));
    let mut found: Vec<(NodeId, NodeId)> = added
        .filter_map(|id| match state(id)? {
            Value::Node(state) if state.index() < graph.len() => Some((state, id)),
            _ => None,
        })
        .collect();
    found.sort_unstable();
    found
}

/// Effects do not run again.
pub(super) fn no_effect_replay(evidence: &PartitionEvidence) -> Checked {
    let (joint, ops) = (evidence.joint.graph, &evidence.joint.ops);
    let mut findings = Vec::new();
    for (id, _, _) in evidence.recomputed() {
        let Some(info) = ops.call(joint, id) else { continue };
        if matches!(info.kind, Kind::Effect | Kind::Sync(_) | Kind::Unknown) {
            let name = joint.name(id);
            findings.push(
                evidence
                    .finding("partition/no-effect-replay", format!("{name} runs in both parts"))
                    .nodes(evidence, [name])
                    .fact(format!("{name} has an effect ({})", joint.target(id)))
                    .contrast("effects happen once", "both parts run it"),
            );
        }
    }
    Checked::Findings(findings)
}

/// Communication is not repeated unless that is asked for.
pub(super) fn collective_once(evidence: &PartitionEvidence) -> Checked {
    if !evidence.config.promises.collectives_once {
        return Checked::NotChecked("collectives_once is not promised".into());
    }
    let joint = &evidence.joint;
    let mut findings = Vec::new();
    for (launch, call) in joint.collectives.calls.iter().enumerate() {
        let id = call.node;
        let waits = &joint.collectives.waits[launch];
        let asked = |node: &NodeId| evidence.tags[node.index()].asks_to_recompute();
        // Equal launches of the joint graph may each run once.
        let equal = evidence.equal_nodes(id);
        let runs = |place: &[Option<NodeId>]| {
            equal.iter().filter_map(|twin| place[twin.index()]).collect::<FxHashSet<_>>().len()
        };
        let is_in_both =
            evidence.in_forward[id.index()].is_some() && evidence.in_backward[id.index()].is_some();
        let twice = is_in_both && runs(&evidence.in_forward) + runs(&evidence.in_backward) > equal.len();
        // Parameters that are to be gathered again need no tag.
        let is_gathered_again =
            || call.kind == Collective::AllGather && super::gathers::must_be_repeated(evidence, id);
        if twice && !asked(&id) && !waits.iter().any(asked) && !is_gathered_again() {
            let name = joint.graph.name(id);
            findings.push(
                evidence
                    .finding("comm/collective-once", format!("{name} is sent twice"))
                    .nodes(evidence, [name])
                    .contrast("it runs once, since nobody asked to recompute it", "both parts run it"),
            );
        }
    }
    Checked::Findings(findings)
}

/// Nobody communicates for nothing.
pub(super) fn no_dead_collective(evidence: &PartitionEvidence) -> Checked {
    if !evidence.config.promises.no_dead_collectives {
        return Checked::NotChecked("no_dead_collectives is not promised".into());
    }
    let mut findings = Vec::new();
    for (side, part) in evidence.parts() {
        let live = live(side);
        for call in side.collectives.calls.iter().filter(|call| !live[call.node.index()]) {
            let name = side.graph.name(call.node);
            findings.push(
                evidence
                    .finding("comm/no-dead-collective", format!("{part} runs {name} for nothing"))
                    .nodes(evidence, [name])
                    .contrast(
                        format!("{part} runs what its results or effects need"),
                        format!("nothing that it returns or does needs {name}"),
                    ),
            );
        }
    }
    Checked::Findings(findings)
}
