//! Values by proof: both graphs evaluated symbolically, at full size, for one generic rank.

use super::executed::bakes_rank;
use super::partition::returned;
use super::ranks::name_ranks;
use super::values::{
    About, CANNOT_BE_EXECUTED, Observed, Rewires, ValueDifference, ValueMethod, ValueResult,
};
use super::{AnalyzedGraph, Code, Evidence, Merge, Reason, cause};
use crate::graph::{Dtype, Graph, NodeId, Op, Value};
use crate::ops::Kind;
use crate::ops::shape::{Inferred, infer};
use crate::semantics::symbolic::{
    Arena, Comparison, Difference, Evaluation, Hazard, HazardKind, Known, Limits, Member, Read, Start,
    ValueId, What, compare, compare_read, evaluate_from, evaluate_knowing, new_hazards, payload_members,
};
use crate::words;
use rustc_hash::{FxHashMap, FxHashSet};

/// Differences told at most.
const SHOWN: usize = 8;

/// What is expected of a value.
const DEFINED: &str = "it is as its inputs and operators define it";

/// Two graphs evaluated side by side: what each of their nodes computes.
pub struct Evaluated<'a> {
    arena: Arena,
    old: Evaluation<'a>,
    new: Evaluation<'a>,
}

impl<'a> Evaluated<'a> {
    /// Evaluates the graph before and the graph after, some of whose nodes `known` may say to have other values: it is given
    /// the graph before, evaluated.
    pub(super) fn knowing(
        before: &AnalyzedGraph<'a>,
        after: &AnalyzedGraph<'a>,
        start: &Start,
        mut known: impl FnMut(&mut Arena, [&Evaluation; 2], NodeId) -> Option<ValueId>,
    ) -> Evaluated<'a> {
        let mut arena = Arena::new(&before.graph.world, Limits::DEFAULT);
        let old = evaluate_from(&mut arena, before.graph, &before.ops, start);
        let known: &mut Known = &mut |arena, new, id| known(arena, [&old, new], id);
        let new = evaluate_knowing(&mut arena, after.graph, &after.ops, start, known);
        Evaluated { arena, old, new }
    }

    /// Evaluates the graph before and the graph after.
    pub fn new(before: &AnalyzedGraph<'a>, after: &AnalyzedGraph<'a>, start: &Start) -> Evaluated<'a> {
        Evaluated::knowing(before, after, start, |_, _, _| None)
    }

    /// Whether both are proved to compute the same.
    pub(super) fn proves_equal(mut self) -> bool {
        matches!(compare(&mut self.arena, &self.old, &self.new), Comparison::Equal(_))
    }
}

/// What a new launch carries beside its members.
pub(super) fn extra_of(evidence: &Evidence, merge: &Merge) -> Extra {
    let (before, after) = (&evidence.before, &evidence.after);
    let Evaluated { mut arena, old, new } = Evaluated::new(before, after, &evidence.start());
    let payloads = payload_members(&mut arena, &old, &new);
    let place =
        |evaluation: &Evaluation, node| evaluation.launches.iter().position(|launch| launch.node == node);
    let Some(launch) = place(&new, after.collectives.calls[merge.launch].node) else { return Extra::Unknown };
    let is_sent_again = |launch: usize| payloads.times[launch].iter().any(|&times| times > 1);
    let carried = payloads.members[launch].iter().map(|member| member.before.launch);
    if let Some(again) = carried.filter(|&launch| is_sent_again(launch)).min() {
        return Extra::SentAgain(old.launches[again].node);
    }
    let is_carried = |&member: &usize| {
        let launch = place(&old, before.collectives.calls[member].node);
        launch.is_some_and(|launch| payloads.times[launch].iter().all(|&times| times == 1))
    };
    let mut extra = payloads.extra.iter().zip(&payloads.padding);
    let is_padding = extra.all(|((index, _), padding)| index.launch != launch || *padding);
    if is_padding && merge.members.iter().all(is_carried) { Extra::Padding } else { Extra::Unknown }
}

/// What a new launch takes in beyond what its members send.
pub(super) enum Extra {
    /// Numbers that no launch of the graph before sends.
    Padding,
    /// What this launch of the graph before sends, which is sent elsewhere too.
    SentAgain(NodeId),
    /// Something else.
    Unknown,
}

/// What the launches of a graph after carry, in the order in which they carry it.
pub(super) struct Packing {
    /// For each launch what it carries of the graph before.
    pub members: Vec<Vec<Member>>,
    /// For each launch whether it carries nothing else, padding aside.
    pub is_known: Vec<bool>,
    /// For each launch its node in the graph after.
    pub nodes: Vec<NodeId>,
}

/// What the launches of `after` carry.
pub(super) fn packing(before: &AnalyzedGraph, after: &AnalyzedGraph) -> Packing {
    let Evaluated { mut arena, old, new } = Evaluated::new(before, after, &Start::default());
    let payloads = payload_members(&mut arena, &old, &new);
    let mut is_known = vec![true; new.launches.len()];
    for ((index, _), padding) in payloads.extra.iter().zip(&payloads.padding) {
        is_known[index.launch] &= padding;
    }
    Packing {
        members: payloads.members,
        is_known,
        nodes: new.launches.iter().map(|launch| launch.node).collect(),
    }
}

/// What a proof says.
pub(super) struct Proof {
    /// Whether both graphs compute the same.
    pub result: ValueResult,
    /// The rewired references whose contents certainly differ.
    pub rewires: Rewires,
    /// Why nothing that is equal is believed.
    pub doubt: Option<Reason>,
}

/// Compares both graphs.
pub(super) fn prove(evidence: &Evidence, evaluated: Evaluated) -> Proof {
    let (before, after) = (&evidence.before, &evidence.after);
    let Evaluated { mut arena, old, new } = evaluated;
    let mut rewires = Rewires::default();
    for rewire in &evidence.correspondence.rewires {
        let Some(twin) = evidence.correspondence.after_of[rewire.user.index()] else { continue };
        // Who only views a tensor does not read it: what it shows later is another matter.
        let is_written =
            || is_written_after(before, rewire.old, rewire.user) || is_written_after(after, rewire.new, twin);
        if only_views(before, rewire.user) && (is_written() || !is_read(before, rewire.user)) {
            continue;
        }
        match compare_read(&mut arena, &old, &new, (rewire.user, twin), rewire.place) {
            Read::SameResults => {
                rewires.harmless.insert(*rewire);
            }
            Read::Differs(divergence) => rewires.wrong.push((*rewire, divergence.text)),
            Read::NotKnownToDiffer => {}
        }
    }
    let result = match compare(&mut arena, &old, &new) {
        Comparison::Equal(counts) => ValueResult::Equal(format!(
            "{} are equal ({} before, {} after)",
            words::counts(&[
                (counts.outputs, "output"),
                (counts.mutations, "input"),
                (counts.effects, "effect")
            ]),
            words::count(counts.runs_before, "run"),
            counts.runs_after
        )),
        Comparison::Unknown(why) => ValueResult::Unknown(Code::NotFollowed.because(why)),
        Comparison::Different(differences) => {
            let first = differences.first.as_ref();
            // What is the same call on other inputs follows from where values part first.
            let certain = || differences.all.iter().filter(|difference| difference.certain);
            let causes = certain().filter(|difference| !difference.derived).count();
            let shown = if first.is_some() { causes } else { causes.max(1) };
            let mut told: Vec<ValueDifference> = certain()
                .take(shown.min(SHOWN))
                .map(|difference| {
                    let (what, nodes) = subject([after.graph, before.graph], difference);
                    let (title, expected) = match &difference.what {
                        What::Hazard(Hazard { kind: HazardKind::Undefined { .. }, .. }) => {
                            (CANNOT_BE_EXECUTED.to_string(), "the graph runs to its end on every rank")
                        }
                        What::Hazard(_) => (difference.text.clone(), DEFINED),
                        _ => (format!("{what} differs"), DEFINED),
                    };
                    ValueDifference {
                        title,
                        nodes,
                        expected: expected.to_string(),
                        found: difference.text.clone(),
                        about: match difference.what {
                            What::Hazard(_) => About::Execution,
                            _ => About::Values,
                        },
                        observed: observed(&difference.what),
                        is_cause: false,
                    }
                })
                .collect();
            // Where values first part is the cause; it is told first, and names the node.
            if let Some(first) = first {
                let hazards = new_hazards((before.graph, &old.hazards), (after.graph, &new.hazards));
                let mut cause = cause::cause(evidence, first, &hazards);
                cause.observed = certain().next().map_or(Observed::Outputs, |first| observed(&first.what));
                told.insert(0, cause);
            }
            // One of them is the cause itself, seen at an output.
            let follow = certain().count().saturating_sub(shown.max(1));
            if let (Some(cause), true) = (told.first_mut(), follow > 0) {
                cause.found += &match follow {
                    1 => "; 1 more result differs too".to_string(),
                    _ => format!("; {follow} more results differ too"),
                };
            }
            ValueResult::Different(told)
        }
    };
    let is_equal = !matches!(result, ValueResult::Different(_));
    let doubt = is_equal.then(|| recorded_otherwise(evidence, &mut arena, &old, &new)).flatten();
    Proof { result, rewires, doubt }
}

/// The same call, recorded with other sizes or another dtype than before: where its operator has no rule, nothing says
/// which record is true.
fn recorded_otherwise(
    evidence: &Evidence,
    arena: &mut Arena,
    old: &Evaluation,
    new: &Evaluation,
) -> Option<Reason> {
    let (before, after) = (&evidence.before, &evidence.after);
    let was: FxHashMap<ValueId, (NodeId, Record)> = open_records(before, arena, old)
        .into_iter()
        .map(|(id, value, record)| (value, (id, record)))
        .collect();
    if was.is_empty() {
        return None;
    }
    let mut is = open_records(after, arena, new).into_iter();
    let (twin, id) = is.find_map(|(id, value, record)| {
        let (twin, of_twin) = was.get(&value)?;
        (*of_twin != record).then_some((*twin, id))
    })?;
    Some(Code::NotRecorded.because(format!(
        "what {} gives is recorded with another shape or dtype at {} than before at {}, and nothing tells which is true",
        after.graph.target(id),
        after.graph.name(id),
        before.graph.name(twin)
    )))
}

/// Sizes and dtype, as recorded.
type Record = (Vec<i64>, Dtype);

/// What is recorded of calls whose operators have no rule: node, value and record of each result of known sizes.
fn open_records(
    side: &AnalyzedGraph,
    arena: &mut Arena,
    evaluation: &Evaluation,
) -> Vec<(NodeId, ValueId, Record)> {
    let graph = side.graph;
    let is_open = |id: &NodeId| {
        let info = side.ops.call(graph, *id);
        info.is_some_and(|info| matches!(info.kind, Kind::Opaque | Kind::Unknown))
            && matches!(infer(graph, &side.ops, *id), Ok(Inferred::Undecided))
    };
    let mut records = Vec::new();
    for id in graph.ids().filter(is_open) {
        for (index, tensor) in graph.tensors_of(graph.node(id).out).into_iter().enumerate() {
            let tensor = graph.tensor(tensor);
            let value = evaluation.value(arena, id, index);
            if let (Some(Ok(shown)), Some(sizes)) = (value, graph.sizes(tensor.shape)) {
                records.push((id, shown.value, (sizes.to_vec(), tensor.dtype)));
            }
        }
    }
    records
}

/// What the proofs of all distinct graphs say, in one line: of which ranks, and no more.
pub(super) fn note(all: &[Evidence]) -> Option<String> {
    let proofs: Vec<(&Evidence, &ValueResult)> =
        all.iter().filter_map(|evidence| Some((evidence, evidence.values.proof()?))).collect();
    let (first, result) = *proofs.first()?;
    let ranks = |wanted: fn(&ValueResult) -> bool| -> Vec<u32> {
        let of = proofs.iter().filter(|(_, result)| wanted(result));
        of.flat_map(|(evidence, _)| evidence.own_ranks.iter().copied()).collect()
    };
    let on = |ranks: &[u32]| match all.len() {
        1 => String::new(),
        _ => format!(" on {}", name_ranks(ranks)),
    };
    let different = proofs.iter().map(|(_, result)| match result {
        ValueResult::Different(all) => all.len(),
        _ => 0,
    });
    let different: usize = different.sum();
    let unknown = proofs.iter().find_map(|(evidence, result)| match result {
        ValueResult::Unknown(why) => Some((evidence, why)),
        _ => None,
    });
    let text = match (different, unknown, result) {
        (0, None, ValueResult::Equal(what)) => {
            format!("proved at full size {}: {what}", proved_for(all, first))
        }
        (0, Some((of, why)), _) => format!("not known{}: {why}", on(&of.own_ranks)),
        _ => format!(
            "{}{}",
            words::count(different, "difference"),
            on(&ranks(|r| matches!(r, ValueResult::Different(_))))
        ),
    };
    Some(format!("{}: {text}", ValueMethod::Symbolic))
}

/// For whom something is proved.
fn proved_for(all: &[Evidence], first: &Evidence) -> String {
    let given: usize = all.iter().map(|evidence| evidence.own_ranks.len()).sum();
    let world = first.before.graph.world.assume_mesh().and_then(|world| world.ranks).unwrap_or(1) as usize;
    let others = "the graphs of the other ranks were not given";
    match all {
        [_] if world == 1 || !bakes_rank(first) => "for every rank that runs this graph".to_string(),
        [one] if given < world => match &one.own_ranks[..] {
            [] => format!("for the rank whose slots it fills; {others}"),
            ranks => format!("for {}, whose slots it fills; {others}", name_ranks(ranks)),
        },
        [_] => "for every rank".to_string(),
        graphs if given < world => {
            format!("for {given} ranks, with {} distinct graphs; {others}", graphs.len())
        }
        graphs => format!("for every rank, with {} distinct graphs", graphs.len()),
    }
}

/// Whether a node touches no memory, and only shows it.
fn only_views(side: &AnalyzedGraph, id: NodeId) -> bool {
    side.graph.node(id).op == Op::Call && side.storages().accesses_by(id).is_empty()
}

/// Whether somebody reads what a node shows, or a view of it: an operator or the output.
fn is_read(side: &AnalyzedGraph, id: NodeId) -> bool {
    let mut open = vec![id];
    let mut seen = FxHashSet::default();
    while let Some(at) = open.pop() {
        for &user in side.edges.users(at) {
            if !only_views(side, user) {
                return true;
            }
            if seen.insert(user) {
                open.push(user);
            }
        }
    }
    false
}

/// Whether the storage of a value is written behind its reader.
fn is_written_after(side: &AnalyzedGraph, value: NodeId, reader: NodeId) -> bool {
    let storages = side.storages();
    storages.all_parts(value).any(|part| storages.writes_of(part.storage, Some(reader)).len() > 0)
}

/// Who sees a difference.
fn observed(what: &What) -> Observed {
    match what {
        What::Mutation(_) => Observed::State,
        What::Effect => Observed::Effects,
        What::Interface | What::OutputCount | What::Output(_) | What::Message(_) | What::Hazard(_) => {
            Observed::Outputs
        }
    }
}

/// What differs, in words, and the nodes concerned. Where the graph after returns no node, that before names the output.
fn subject(graphs: [&Graph; 2], difference: &Difference) -> (String, Vec<String>) {
    let after = graphs[0];
    match &difference.what {
        What::Interface => ("the list of inputs".to_string(), Vec::new()),
        What::OutputCount => ("the number of outputs".to_string(), Vec::new()),
        What::Output(position) => {
            let name = |graph: &Graph| match returned(graph).get(*position) {
                Some(&Value::Node(node)) if node.index() < graph.len() => Some(graph.name(node).to_string()),
                _ => None,
            };
            match graphs.into_iter().find_map(name) {
                Some(name) => (format!("output {name}"), vec![name]),
                None => (format!("output {position}"), Vec::new()),
            }
        }
        What::Mutation(input) => {
            let name = after.name(*input).to_string();
            let kind = if after.node(*input).op == Op::GetAttr { "constant" } else { "input" };
            (format!("what {kind} {name} holds in the end"), vec![name])
        }
        What::Effect => ("an effect".to_string(), Vec::new()),
        What::Message(node) => {
            (format!("what {} sends", after.name(*node)), vec![after.name(*node).to_string()])
        }
        What::Hazard(hazard) => (String::new(), vec![after.name(hazard.node).to_string()]),
    }
}
