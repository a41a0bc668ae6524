//! What has to be computed again, and what has to be kept: tags, and the values that cost as much as what is tagged.
//!
//! A gather sends a *parameter* where what it sends is computed from inputs that live anyway: of static inputs alone,
//! or, where nobody says which inputs are static, of one input and of numbers. However many casts, scales or slices lie
//! between them, the gather can then be done again from what is there. That is what `reshard_after_forward` promises.

use super::super::Checked;
use super::compose::item_of;
use super::config::Method;
use super::evidence::{PartitionEvidence, ValueClass, class_of};
use super::tags::{NodeTags, Recompute};
use crate::graph::{Graph, NodeId, Op, Value};
use crate::ops::{Collective, Kind, Move};
use rustc_hash::{FxHashMap, FxHashSet};

/// For each node of the joint graph the gather that has to be repeated and whose result it shows: the gather itself,
/// its wait, and whatever only views, casts, copies, splits or reassembles it.
///
/// A value of this closure holds the bytes of the gathered tensor, whole or in part, so saving it saves the gather.
pub(super) fn exposed_gathers(evidence: &PartitionEvidence) -> Vec<Option<NodeId>> {
    let side = &evidence.joint;
    let graph = side.graph;
    let reshards = evidence.config.reshard_after_forward;
    let mut root: Vec<Option<NodeId>> = vec![None; graph.len()];
    for id in graph.ids() {
        let Some(info) = side.ops.call(graph, id) else { continue };
        if info.collective() == Some(Collective::AllGather) {
            if must_be_repeated(evidence, id) {
                root[id.index()] = Some(id);
            }
            continue;
        }
        let from = |value: Option<Value>| match value {
            Some(Value::Node(input)) => root.get(input.index()).copied().flatten(),
            _ => None,
        };
        // Whether by position or by keyword, what is shown comes first.
        let shown = side.edges.inputs(id).first().map(|&input| Value::Node(input));
        root[id.index()] = match info.kind {
            Kind::Move(Move::Cat | Move::Stack) => {
                let inputs = side.edges.inputs(id);
                let first = inputs.first().and_then(|input| root[input.index()]);
                first.filter(|_| inputs.iter().all(|input| root[input.index()] == first))
            }
            Kind::Wait | Kind::GetItem | Kind::View(_) | Kind::Cast | Kind::Move(Move::Clone) => from(shown),
            _ if info.is_view() || is_cast(graph.target(id)) => from(shown),
            // Tags speak of the gather; that a parameter is not kept whole, scaled or not, is said of all that it
            // becomes.
            Kind::Unary(_) | Kind::Binary(_) | Kind::Pointwise if reshards => {
                let mut whole = side.edges.inputs(id).iter().filter(|&&input| !is_number(graph, input));
                let first = whole.next().and_then(|input| root[input.index()]);
                first.filter(|_| whole.all(|input| root[input.index()] == first))
            }
            _ => None,
        };
    }
    root
}

/// Whether a value is one number: a tensor of one element, such as a scale, or no tensor.
fn is_number(graph: &Graph, id: NodeId) -> bool {
    graph
        .tensor_of(id)
        .map_or(class_of(graph, id) == ValueClass::Symbol, |tensor| graph.numel(tensor) == Some(1))
}

/// A cast that the table of operators does not know.
fn is_cast(target: &str) -> bool {
    target == "autoparallel.dtype_cast.default"
}

/// Whether an all-gather has to be repeated in backward: it is tagged so, or its wait is, or every parameter that is
/// gathered has to be.
pub(super) fn must_be_repeated(evidence: &PartitionEvidence, gather: NodeId) -> bool {
    let tagged = |id: NodeId| evidence.tags[id.index()].must_be_recomputed();
    let collectives = &evidence.joint.collectives;
    let Some(launch) = collectives.launch_at(gather) else { return false };
    tagged(gather)
        || collectives.waits[launch].iter().any(|&wait| tagged(wait))
        || (evidence.config.reshard_after_forward && evidence.parameters()[gather.index()])
}

/// What a value is computed from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Numbers and constants, which cost nothing.
    Numbers,
    /// An input that lives anyway; all that are known to be static count as one.
    Input(NodeId),
    /// Anything more, such as an activation or a random draw.
    More,
}

/// For each node of the joint graph whether it is a parameter, or made of one.
pub(super) fn parameters(evidence: &PartitionEvidence) -> Vec<bool> {
    let side = &evidence.joint;
    let graph = side.graph;
    let known = super::saved::static_inputs(evidence);
    let first = known.iter().min().copied();
    let mut sources = vec![Source::More; graph.len()];
    for id in graph.ids() {
        sources[id.index()] = match graph.node(id).op {
            Op::Placeholder if is_number(graph, id) => Source::Numbers,
            Op::Placeholder if known.is_empty() => Source::Input(id),
            Op::Placeholder if known.contains(&id) => Source::Input(first.unwrap_or(id)),
            Op::Call if !side.ops.draws(graph, id) => {
                let inputs = side.edges.inputs(id).iter();
                inputs.map(|input| sources[input.index()]).fold(Source::Numbers, |all, source| {
                    match (all, source) {
                        (Source::Numbers, other) | (other, Source::Numbers) => other,
                        (all, source) if all == source => all,
                        _ => Source::More,
                    }
                })
            }
            Op::Call | Op::Placeholder | Op::Output => Source::More,
            _ => Source::Numbers,
        };
    }
    sources.into_iter().map(|source| matches!(source, Source::Input(_))).collect()
}

/// Whether a node that asks to be recomputed is kept all the same, since a later region begins there or a hook hangs
/// on it. Source: `torch._functorch.partitioners.cleanup_recompute_tags`.
fn is_region_boundary(evidence: &PartitionEvidence, id: NodeId) -> bool {
    let tags = |id: NodeId| -> &NodeTags { &evidence.tags[id.index()] };
    // What nobody needs is dropped before tags are looked at, except by the default partition.
    let stays = |user: NodeId| evidence.live_joint[user.index()] || !merges(evidence);
    // Of equal nodes the first is left; it asks if it did, or if one of them must be computed again.
    let asks_at_last = |user: NodeId| {
        let first = merged_with(evidence, user).into_iter().min();
        first.is_some_and(|first| tags(first).asks_to_recompute())
            || twins_that_must(evidence, user).next().is_some()
    };
    let asks = |user: NodeId| tags(user).asks_to_recompute() && stays(user) && asks_at_last(user);
    let hangs = tags(id).hook && !evidence.joint.edges.users(id).iter().any(|&user| asks(user));
    hangs || later_readers(evidence, id).next().is_some()
}

/// Whether equal nodes are merged before tags are looked at. The default partition merges none.
fn merges(evidence: &PartitionEvidence) -> bool {
    evidence.config.method == Method::Replay || is_minimum_cut(evidence)
}

/// The nodes that are one with `id` when tags are looked at, itself included.
fn merged_with(evidence: &PartitionEvidence, id: NodeId) -> Vec<NodeId> {
    if merges(evidence) { evidence.equal_nodes(id).to_vec() } else { vec![id] }
}

/// The nodes that a replay merges with `id`, itself included, and that must be computed again: then what is left must
/// be.
fn twins_that_must(evidence: &PartitionEvidence, id: NodeId) -> impl Iterator<Item = NodeId> {
    let twins = if evidence.config.method == Method::Replay { evidence.equal_nodes(id) } else { &[] };
    twins.iter().copied().filter(|twin| evidence.tags[twin.index()].must_be_recomputed())
}

/// The readers of a node, or of one that is merged with it, that ask to be recomputed in a later region.
fn later_readers(evidence: &PartitionEvidence, id: NodeId) -> impl Iterator<Item = NodeId> {
    let tags = move |id: NodeId| -> &NodeTags { &evidence.tags[id.index()] };
    // Merged nodes have each other's users; in a replay they have the region, too, of one that must be computed again.
    let asks =
        move |id: NodeId| tags(id).asks_to_recompute() || twins_that_must(evidence, id).next().is_some();
    let region = move |id: NodeId| {
        tags(id).region_id.or_else(|| twins_that_must(evidence, id).find_map(|twin| tags(twin).region_id))
    };
    let own = region(id);
    let later =
        move |user: &NodeId| asks(*user) && own.zip(region(*user)).is_some_and(|(own, other)| other > own);
    let twins = merged_with(evidence, id);
    twins.into_iter().flat_map(|twin| evidence.joint.edges.users(twin)).copied().filter(later)
}

/// Whether a node is saved in this round only: it is the end of a region, and each of its readers in a later region is
/// saved itself, and then does not ask to be recomputed in the next round; or a write of backward keeps it apart from
/// an equal node that must be computed again, and in the next round forward has both.
pub(super) fn is_let_go_next_round(evidence: &PartitionEvidence, id: NodeId) -> bool {
    let runs = |id: NodeId| evidence.in_forward[id.index()].is_some();
    let must = |id: NodeId| evidence.tags[id.index()].must_be_recomputed();
    let is_merged = || evidence.equal_nodes(id).iter().any(|&twin| twin != id && runs(twin) && must(twin));
    let mut readers = later_readers(evidence, id).peekable();
    (readers.peek().is_some() && readers.all(|reader| is_to_be_saved(evidence, reader)))
        || (runs(id) && is_merged())
}

/// Whether a node is to be saved: tagged so, or the end of a region of checkpointing.
pub(super) fn is_to_be_saved(evidence: &PartitionEvidence, id: NodeId) -> bool {
    let tags = &evidence.tags[id.index()];
    tags.recompute == Some(Recompute::MustSave)
        || (tags.asks_to_recompute() && is_region_boundary(evidence, id))
}

/// Whether a value is computed again in this round, and kept in the next one: it, or the tuple that it is an item of,
/// has a hook, and each of its readers that ask to be recomputed is the end of a region, so that none of them asks any
/// more. Tags are looked at from the first node to the last, so this round asks the node before its readers. Tracing
/// makes a node of its own of what backward computes again: only those that backward computes again too are its
/// readers.
pub(super) fn is_kept_next_round(evidence: &PartitionEvidence, id: NodeId) -> bool {
    any_equal(evidence, id, |id| is_kept_by_its_hook(evidence, id))
}

fn is_kept_by_its_hook(evidence: &PartitionEvidence, id: NodeId) -> bool {
    let tags = |id: NodeId| &evidence.tags[id.index()];
    let users = evidence.joint.edges.users(id);
    let lets_go = |user: &&NodeId| !tags(**user).asks_to_recompute() || is_to_be_saved(evidence, **user);
    let runs_again = |id: NodeId| evidence.runs_in_backward(id);
    let by_backward =
        || runs_again(id) && users.iter().filter(|&&user| runs_again(user)).all(|user| lets_go(&user));
    tags(id).hook
        && tags(id).asks_to_recompute()
        && (users.iter().all(|user| lets_go(&user)) || by_backward())
}

/// Whether a value is to be saved, the tuple that it is an item of, or a node equal to either: of equal nodes one is
/// left for all where they are merged.
pub(super) fn any_is_to_be_saved(evidence: &PartitionEvidence, id: NodeId) -> bool {
    any_equal(evidence, id, |id| is_to_be_saved(evidence, id))
}

/// Whether a value must be computed again, the tuple that it is an item of, or a node equal to either: where they are
/// merged, what is left must be if any of them must.
pub(super) fn any_is_to_be_repeated(evidence: &PartitionEvidence, id: NodeId) -> bool {
    any_equal(evidence, id, |id| evidence.tags[id.index()].must_be_recomputed())
}

fn any_equal(evidence: &PartitionEvidence, id: NodeId, test: impl Fn(NodeId) -> bool) -> bool {
    let any = |id: NodeId| evidence.equal_nodes(id).iter().any(|&twin| test(twin));
    any(id) || item_of(evidence.joint.graph, id).is_some_and(|(parent, _)| any(parent))
}

/// Whether a value is an item of a random draw that nothing asks to repeat: then it cannot be recomputed.
fn is_item_of_kept_draw(evidence: &PartitionEvidence, id: NodeId) -> bool {
    let (graph, ops) = (evidence.joint.graph, &evidence.joint.ops);
    let root = super::compose::root_of(graph, id);
    root != id && ops.draws(graph, root) && !evidence.tags[root.index()].asks_to_recompute()
}

/// No value that has to be recomputed is saved, nor one that costs as much.
pub(super) fn no_saved_gather(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "partition/no-saved-gather-exposed";
    let roots = exposed_gathers(evidence);
    let graph = evidence.joint.graph;
    let mut findings = Vec::new();
    for saved in &evidence.saved {
        if saved.class == ValueClass::Symbol {
            continue;
        }
        let Some(id) = saved.joint.or_else(|| Some(evidence.shown(saved)?.0)) else { continue };
        let name = saved.name.as_str();
        if let Some(gather) = roots[id.index()] {
            let gather_name = graph.name(gather);
            let mut told = evidence
                .finding(RULE, format!("{name} is saved, which is the gathered {gather_name}"))
                .nodes(evidence, [name, gather_name]);
            for step in steps_between(evidence, gather, id) {
                told = told.fact(step);
            }
            findings.push(told.contrast(
                format!("{gather_name} has to be gathered again in backward"),
                format!("{name} keeps its bytes until then"),
            ));
        } else if evidence.tags[id.index()].must_be_recomputed()
            && graph.node(id).op == Op::Call
            && !is_region_boundary(evidence, id)
            && !is_item_of_kept_draw(evidence, id)
        {
            let tagged = graph.name(id);
            let kept = match tagged == name {
                true => "forward keeps it for backward".to_string(),
                false => format!("forward keeps {name} for backward, which holds its bytes"),
            };
            findings.push(
                evidence
                    .finding(RULE, format!("{name} is saved"))
                    .nodes(evidence, [name])
                    .contrast(format!("{tagged} is tagged MUST_RECOMPUTE"), kept),
            );
        }
    }
    Checked::Findings(findings)
}

/// How the value of a gather becomes that of `id`, step by step.
fn steps_between(evidence: &PartitionEvidence, gather: NodeId, id: NodeId) -> Vec<String> {
    let graph = evidence.joint.graph;
    let mut steps = Vec::new();
    let mut at = id;
    while at > gather && steps.len() < 16 {
        let Some(&input) = evidence.joint.edges.inputs(at).first().filter(|input| **input < at) else {
            break;
        };
        steps.push(format!("{} is {} of {}", graph.name(at), graph.target(at), graph.name(input)));
        at = input;
    }
    steps.reverse();
    steps
}

/// Whether the partition is a minimum cut. The default partition leaves graphs that write memory to it where anything
/// is to be recomputed. Source: `torch._functorch.partitioners.default_partition`.
fn is_minimum_cut(evidence: &PartitionEvidence) -> bool {
    let joint = &evidence.joint;
    match evidence.config.method {
        Method::MinCut => true,
        Method::Replay => false,
        Method::Default => *evidence.default_cuts.get_or_init(|| {
            evidence.tags.iter().any(NodeTags::asks_to_recompute)
                && joint.graph.ids().any(|id| {
                    let writes = joint.ops.call(joint.graph, id).is_some_and(|info| info.writes());
                    writes && joint.graph.target(id) != "aten.copy_.default"
                })
        }),
    }
}

/// What has to be saved and backward needs is saved, or its memory is; it is not computed again.
///
/// A view is as good as saved if its memory is: taking it again costs nothing. Tuples are not saved: the tag speaks of
/// their items, but an item's own tag comes first. Tags that exclude one another demand nothing.
pub(super) fn must_save_honoured(evidence: &PartitionEvidence) -> Checked {
    let joint = &evidence.joint;
    let graph = joint.graph;
    let storages = std::cell::LazyCell::new(|| {
        let of = |id: NodeId| joint.storages().all_parts(id).map(|part| part.storage);
        let saved = evidence.saved.iter().filter_map(|saved| saved.joint);
        saved.flat_map(of).collect::<FxHashSet<_>>()
    });
    let memory_saved = |id: NodeId| {
        let mut parts = joint.storages().all_parts(id).peekable();
        parts.peek().is_some() && parts.all(|part| storages.contains(&part.storage))
    };
    let mut findings = Vec::new();
    let must_be_saved = |id: &NodeId| {
        let tag = evidence.tags[id.index()].recompute;
        graph.node(*id).op == Op::Call && tag == Some(Recompute::MustSave)
    };
    for tagged in graph.ids().filter(must_be_saved) {
        let runs = |id: NodeId| evidence.in_forward[id.index()].is_some();
        // Itself, or an equal call that it was merged with, which backward reads in its place.
        let again = match evidence.in_backward[tagged.index()] {
            Some(twin) => Some((tagged, twin)).filter(|_| runs(tagged)),
            None => {
                let is_read = |user: &NodeId| evidence.in_backward[user.index()].is_some();
                let equal = evidence.equal_nodes(tagged).iter().filter(|&&id| {
                    (runs(id) || runs(tagged)) && !evidence.tags[id.index()].must_be_recomputed()
                });
                let mut twins = equal.filter_map(|&id| Some((id, evidence.in_backward[id.index()]?)));
                twins.next().filter(|_| joint.edges.users(tagged).iter().any(is_read))
            }
        };
        let Some((id, twin)) = again else { continue };
        if !evidence.live_backward[twin.index()] || (id != tagged && memory_saved(tagged)) {
            continue;
        }
        let class = class_of(graph, id);
        let kept = match class {
            ValueClass::Symbol => true,
            // Merged communication is repeated if any of it must be, and so is what must be waited for again.
            _ if evidence.config.method == Method::Replay && any_is_to_be_repeated(evidence, id) => true,
            _ if is_waited_for_again(evidence, id) || shows_what_must_be_repeated(evidence, id) => true,
            ValueClass::Tuple => joint.edges.users(id).iter().all(|&item| {
                evidence.in_backward[item.index()].is_none()
                    || evidence.tags[item.index()].asks_to_recompute()
                    || memory_saved(item)
            }),
            _ => memory_saved(id),
        };
        if !kept {
            let name = graph.name(id);
            let of = |what: &str| {
                let from = joint.edges.inputs(id).first().map_or("nothing", |&input| graph.name(input));
                format!("{name} is tagged MUST_SAVE, and {what} {from}")
            };
            let tag = match joint.ops.call(graph, id) {
                Some(info) if info.kind == Kind::GetItem => of("is an item of"),
                Some(info) if info.is_view() => of("is a view of"),
                _ if tagged != id => {
                    format!("{} is tagged MUST_SAVE, and was merged with {name}", graph.name(tagged))
                }
                _ => format!("{name} is tagged MUST_SAVE"),
            };
            let mut finding = evidence
                .finding("partition/must-save-honoured", format!("{name} is computed again"))
                .nodes(evidence, [name]);
            if evidence.config.budget == Some(0.0) {
                finding = finding.fact("the budget is 0");
            }
            findings.push(finding.contrast(tag, "backward recomputes it, and its memory is not saved"));
        }
    }
    Checked::Findings(findings)
}

/// Whether a value is a view of one that must be computed again: the two tags exclude one another.
fn shows_what_must_be_repeated(evidence: &PartitionEvidence, id: NodeId) -> bool {
    let joint = &evidence.joint;
    let mut at = id;
    while joint.ops.call(joint.graph, at).is_some_and(|info| info.is_view() || info.kind == Kind::GetItem) {
        match joint.edges.inputs(at).first() {
            Some(&input) if input < at => at = input,
            _ => break,
        }
        if any_is_to_be_repeated(evidence, at) {
            return true;
        }
    }
    false
}

/// Whether a node is communication, or is merged with some, whose wait must be computed again: nothing is saved in
/// flight.
fn is_waited_for_again(evidence: &PartitionEvidence, id: NodeId) -> bool {
    let collectives = &evidence.joint.collectives;
    let twins = merged_with(evidence, id);
    let launches = twins.iter().filter_map(|&twin| collectives.launch_at(twin));
    let mut waits = launches.flat_map(|launch| &collectives.waits[launch]);
    waits.any(|wait| evidence.tags[wait.index()].must_be_recomputed())
}

/// Of equal communication in both parts, the tags of each copy count.
pub(super) fn cse_tag_merge(evidence: &PartitionEvidence) -> Checked {
    if evidence.config.method != Method::Replay {
        return Checked::NotChecked("only a replay promises to merge tags".into());
    }
    let Some((joint, _)) = evidence.terms() else {
        return Checked::NotChecked("forward and backward do not compose".into());
    };
    let graph = evidence.joint.graph;
    let roots = exposed_gathers(evidence);
    let mut tagged: FxHashMap<super::terms::Term, NodeId> = FxHashMap::default();
    for id in graph.ids().filter(|id| roots[id.index()].is_some()) {
        tagged.entry(joint.of[id.index()]).or_insert(id);
    }
    let mut findings = Vec::new();
    for saved in &evidence.saved {
        let Some(id) = saved.joint.filter(|id| roots[id.index()].is_none()) else { continue };
        if let Some(&copy) = tagged.get(&joint.of[id.index()]) {
            let (name, copy) = (saved.name.as_str(), graph.name(copy));
            findings.push(
                evidence
                    .finding("partition/cse-tag-merge", format!("{name} is saved, and so is its copy {copy}"))
                    .nodes(evidence, [name, copy])
                    .contrast(
                        format!("{copy} has to be recomputed, and {name} is the same value"),
                        format!("{name} is saved"),
                    ),
            );
        }
    }
    Checked::Findings(findings)
}
