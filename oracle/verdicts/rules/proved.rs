//! Values by proof: both graphs evaluated symbolically, at full size, for one generic rank.

use super::correspondence::Rewire;
use super::partition::returned;
use super::ranks::name_ranks;
use super::values::{About, CANNOT_BE_EXECUTED, Observed, ValueDifference, ValueMethod, ValueResult};
use super::{AnalyzedGraph, Code, Evidence, Merge, Reason, own_index};
use crate::graph::{Dtype, Graph, NodeId, Value};
use crate::ops::Kind;
use crate::ops::shape::{Inferred, infer};
use crate::semantics::symbolic::{
    Arena, Comparison, Difference, Divergence, Evaluation, Hazard, HazardKind, Known, Limits, Member, Start,
    ValueId, What, are_results_equal, compare, divergence, evaluate_from, evaluate_knowing, new_hazards,
    payload_members,
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

    /// How what a node gives differs from what its twin in the graph after does, or what both read at a place.
    pub(super) fn divergence(&mut self, nodes: (NodeId, NodeId), read: Option<usize>) -> Option<Divergence> {
        divergence(&mut self.arena, &self.old, &self.new, nodes, read)
    }

    /// The hazards that the graph after has and the graph before has not.
    pub(super) fn new_hazards(&self) -> Vec<&Hazard> {
        new_hazards((self.old.graph, &self.old.hazards), (self.new.graph, &self.new.hazards))
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
    /// The rewired references whose readers are proved to make the same of them: operands that changed places, say.
    pub harmless: FxHashSet<Rewire>,
    /// Why nothing that is equal is believed.
    pub doubt: Option<Reason>,
}

/// Compares both graphs.
pub(super) fn prove(evidence: &Evidence, evaluated: Evaluated) -> Proof {
    let (before, after) = (&evidence.before, &evidence.after);
    let Evaluated { mut arena, old, new } = evaluated;
    let mut is_harmless = |rewire: &&Rewire| {
        let twin = evidence.correspondence.after_of[rewire.user.index()];
        twin.is_some_and(|twin| are_results_equal(&mut arena, &old, &new, (rewire.user, twin)))
    };
    let harmless =
        evidence.correspondence.rewires.iter().filter(|rewire| is_harmless(rewire)).copied().collect();
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
        Comparison::Open(why) => ValueResult::Unknown(Code::NotFollowed.because(why)),
        Comparison::Different(facts) => {
            let told = facts.iter().take(SHOWN).map(|fact| {
                let (what, nodes) = subject([after.graph, before.graph], fact);
                let (title, expected) = match &fact.what {
                    What::Hazard(Hazard { kind: HazardKind::Undefined { .. }, .. }) => {
                        (CANNOT_BE_EXECUTED.to_string(), "the graph runs to its end on every rank")
                    }
                    What::Hazard(_) => (fact.text.clone(), DEFINED),
                    _ => (format!("{what} differs"), DEFINED),
                };
                ValueDifference {
                    title,
                    nodes,
                    expected: expected.to_string(),
                    found: fact.text.clone(),
                    about: match fact.what {
                        What::Hazard(_) => About::Execution,
                        _ => About::Types,
                    },
                    observed: match fact.what {
                        What::Effect => Observed::Effects,
                        _ => Observed::Outputs,
                    },
                    is_cause: false,
                }
            });
            ValueResult::Different(told.collect())
        }
    };
    let is_equal = !matches!(result, ValueResult::Different(_));
    let doubt = is_equal.then(|| recorded_otherwise(evidence, &mut arena, &old, &new)).flatten();
    Proof { result, harmless, doubt }
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
        [_] if world == 1 || !own_index::is_held(first) => "for every rank that runs this graph".to_string(),
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
        What::Effect => ("an effect".to_string(), Vec::new()),
        What::Hazard(hazard) => (String::new(), vec![after.name(hazard.node).to_string()]),
    }
}
