//! Where values first part, in the words that name the culprit.
//!
//! Two runs that differ were traced: the first node that both graphs have and that gives another value is where they part.
//! Often it only reads what a bucket delivers, and the fault lies among the nodes that the pass made: memory that is read
//! before it is written, or a packing operator whose parts stand in another order than readers take them. So the new nodes
//! behind the value are looked at: for hazards, for the bucket's collective, and for what packs it. Terms say where what is
//! there comes from, and where it should come from.
//!
//! It explains a difference that a run shows, and convicts nobody.

use super::correspondence::Rewire;
use super::proved::Evaluated;
use super::values::{About, Observed, ValueDifference};
use super::{AnalyzedGraph, Evidence};
use crate::format::text::node_line;
use crate::graph::{NodeId, Op, Value};
use crate::ops::Kind;
use crate::semantics::symbolic::Hazard;
use crate::semantics::{Divergence, RankRun, Run, first_divergence};
use std::collections::BTreeSet;

/// Where two runs part.
#[derive(Default)]
pub(super) struct Parted {
    /// The difference at the first node whose value is another.
    pub cause: Option<ValueDifference>,
    /// Whether that node waits for other ranks, and they sent it another value.
    pub is_received: bool,
    /// The rewired references that read another value, and whose readers make another one of it; how it differs.
    pub wrong: Vec<(Rewire, String)>,
}

/// Where traced runs of both graphs part, on the first rank of this evidence on which they do by themselves, and else on the
/// first on which they do. `observed`: who sees it.
pub(super) fn parted(evidence: &Evidence, (before, after): &(Run, Run), observed: Observed) -> Parted {
    let is_own = |rank: &u32| evidence.own_ranks.is_empty() || evidence.own_ranks.contains(rank);
    let ranks = (0..).zip(before.ranks.iter().zip(&after.ranks)).filter(|(rank, _)| is_own(rank));
    let differs =
        |[before, after]: &[&RankRun; 2]| before.trace != after.trace || before.reads != after.reads;
    let mut ranks = ranks.map(|(_, (before, after))| [before, after]).filter(differs);
    let Some(mut runs) = ranks.next() else { return Parted::default() };
    let mut first = divergence(evidence, runs);
    let received = |first: &Option<Divergence>| first.is_some_and(|first| is_received(evidence, &first));
    if received(&first)
        && let Some((own, found)) =
            ranks.map(|runs| (runs, divergence(evidence, runs))).find(|(_, found)| !received(found))
    {
        (runs, first) = (own, found);
    }
    Parted {
        cause: first.map(|first| cause(evidence, first, observed)),
        is_received: received(&first),
        wrong: wrong_rewires(evidence, runs),
    }
}

/// The first node that gives another value, returns another one or sends another one.
fn divergence(evidence: &Evidence, runs: [&RankRun; 2]) -> Option<Divergence> {
    let (before, after) = (&*evidence.before, &*evidence.after);
    let hands =
        |id: NodeId| after.graph.node(id).op == Op::Output || after.collectives.launch_at(id).is_some();
    first_divergence((before.graph, runs[0]), (after.graph, runs[1]), &hands)
}

/// Whether a node gives another value, and is given the same by its own rank.
fn is_received(evidence: &Evidence, first: &Divergence) -> bool {
    let after = &*evidence.after;
    let kind = after.ops.call(after.graph, first.after).map(|info| info.kind);
    first.read.is_none() && matches!(kind, Some(Kind::Wait | Kind::Collective(_)))
}

/// The difference at the first node whose value is another.
fn cause(evidence: &Evidence, first: Divergence, observed: Observed) -> ValueDifference {
    let (before, after) = (&*evidence.before, &*evidence.after);
    let mut evaluated = Evaluated::new(before, after, &evidence.start());
    let words = first.read.and_then(|read| evaluated.divergence((first.before, first.after), Some(read)));
    let hazards: Vec<Hazard> = evaluated.new_hazards().into_iter().cloned().collect();
    let graph = after.graph;
    let reader = graph.name(first.after);
    let read = first.read.and_then(|place| reference(after, first.after, place));
    let made = read.map(|read| behind(after, read, &|id| is_new(evidence, id))).unwrap_or_default();
    let hazard =
        hazards.iter().filter(|h| made.contains(&h.node) || h.node == first.after).min_by_key(|h| h.node);
    let mut nodes = vec![first.after];
    let place = match (graph.node(first.after).op, read) {
        (Op::Output, Some(read)) => {
            nodes[0] = read;
            format!("values part at the output: it returns {}", graph.name(read))
        }
        _ => format!("values part at {reader}"),
    };
    nodes.extend(read.filter(|read| !nodes.contains(read)));
    let bucket = Bucket::find(after, &made);
    let title = match (hazard, &bucket, read) {
        (Some(hazard), ..) => {
            nodes.insert(0, hazard.node);
            format!("{place}, since {}", hazard.tell(graph))
        }
        (None, Some(bucket), Some(read)) => match bucket.disorder(evidence, &first, read) {
            Some((sent, taken)) => format!(
                "{place}: {} packs what it needs as part {sent}, and it reads part {taken} of {} (the first part is 0)",
                graph.name(bucket.pack),
                graph.name(bucket.launch)
            ),
            None => place,
        },
        _ => place,
    };
    nodes.extend(bucket.iter().flat_map(|bucket| [bucket.pack, bucket.launch]));
    // Who waits for it gets what it sent.
    nodes
        .extend(after.collectives.launch_at(first.after).iter().flat_map(|&at| &after.collectives.waits[at]));
    let mut names: Vec<String> = Vec::new();
    for node in nodes {
        let name = graph.name(node).to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let lines = (node_line(before.graph, first.before), node_line(graph, first.after));
    let words = match (words, lines.0 == lines.1) {
        (None, true) => evaluated.divergence((first.before, first.after), None),
        (words, _) => words,
    };
    let (expected, found) = match words {
        Some(words) => (format!("there it comes from {}", words.expected), words.text),
        None if is_received(evidence, &first) => {
            let found = "its rank sends the same, and it receives other values: they come from other ranks, or meet otherwise";
            ("it receives what the ranks sent then".to_string(), found.to_string())
        }
        None => lines,
    };
    let about = About::Values;
    ValueDifference { title, nodes: names, expected, found, about, observed, is_cause: true }
}

/// The rewired references that read another value, and whose readers make another one of it; how it differs.
fn wrong_rewires(evidence: &Evidence, [before, after]: [&RankRun; 2]) -> Vec<(Rewire, String)> {
    let mut evaluated = None;
    let mut wrong = Vec::new();
    for rewire in &evidence.correspondence.rewires {
        let Some(twin) = evidence.correspondence.after_of[rewire.user.index()] else { continue };
        let (user, twin) = (rewire.user.index(), twin.index());
        let read = |run: &RankRun, at: usize| run.reads.get(at)?.get(rewire.place).copied();
        let (Some(was), Some(is)) = (read(before, user), read(after, twin)) else { continue };
        let is_output = evidence.before.graph.node(rewire.user).op == Op::Output;
        // Who only views memory may do so before it is written.
        let is_early =
            is.poisoned > 0 && evidence.after.storages().accesses_by(NodeId(twin as u32)).is_empty();
        if was == is
            || before.trace.get(user) == after.trace.get(twin) && !is_output
            || is_early && !is_output
        {
            continue;
        }
        let (old, new) = (&*evidence.before, &*evidence.after);
        let evaluated = evaluated.get_or_insert_with(|| Evaluated::new(old, new, &evidence.start()));
        let words = evaluated.divergence((rewire.user, NodeId(twin as u32)), Some(rewire.place));
        wrong.push((*rewire, words.map_or("it holds other values".to_string(), |words| words.text)));
    }
    wrong
}

/// A new collective, and the new node that packs what it sends.
struct Bucket {
    launch: NodeId,
    pack: NodeId,
}

impl Bucket {
    /// The nearest new collective among nodes, and of the nodes before it the one that takes the most.
    fn find(after: &AnalyzedGraph, made: &BTreeSet<NodeId>) -> Option<Bucket> {
        let is_launch = |id: &&NodeId| after.collectives.launch_at(**id).is_some();
        let launch = *made.iter().rev().find(is_launch)?;
        let parts = |&&id: &&NodeId| after.edges.inputs(id).len();
        let pack = *made.range(..launch).rev().max_by_key(parts)?;
        (after.edges.inputs(pack).len() > 1).then_some(Bucket { launch, pack })
    }

    /// The part of the packed tensor that holds what the reader is to get, and the part that it reads; `None` where
    /// they agree, or where that is not plain.
    fn disorder(&self, evidence: &Evidence, first: &Divergence, read: NodeId) -> Option<(usize, i64)> {
        let (before, after) = (&*evidence.before, &*evidence.after);
        let was_read = reference(before, first.before, first.read?)?;
        let is_gone = |id: NodeId| evidence.correspondence.after_of[id.index()].is_none();
        let gone = behind(before, was_read, &is_gone);
        let member = gone.iter().rev().find_map(|&id| before.collectives.launch_at(id))?;
        let &[input] = &before.collectives.calls[member].inputs[..] else { return None };
        let sent: BTreeSet<NodeId> = sources(before, input, &is_gone)
            .into_iter()
            .filter_map(|id| evidence.correspondence.after_of[id.index()])
            .collect();
        let mut parts = Vec::new();
        after.graph.for_each_input(self.pack, &mut |part| parts.push(part));
        let holds = |part: &NodeId| !sources(after, *part, &|id| is_new(evidence, id)).is_disjoint(&sent);
        let mut holding = parts.iter().enumerate().filter(|(_, part)| holds(part));
        let (Some((part, _)), None) = (holding.next(), holding.next()) else { return None };
        let taken = taken(after, read, self.launch)?;
        (taken != part as i64).then_some((part, taken))
    }
}

/// The number of the item that a value is taken as from what a collective gives.
fn taken(after: &AnalyzedGraph, read: NodeId, launch: NodeId) -> Option<i64> {
    let mut at = read;
    while at > launch {
        let kind = after.ops.call(after.graph, at).map(|info| info.kind);
        if let (Some(Kind::GetItem), Some(Value::Int(item))) = (kind, after.graph.arg(at, 1)) {
            return Some(item);
        }
        at = *after.edges.inputs(at).first().filter(|&&input| input < at)?;
    }
    None
}

fn is_new(evidence: &Evidence, id: NodeId) -> bool {
    evidence.correspondence.before_of[id.index()].is_none()
}

/// The `place`-th reference of a node, repeated ones counted.
fn reference(side: &AnalyzedGraph, node: NodeId, place: usize) -> Option<NodeId> {
    let mut references = Vec::new();
    side.graph.for_each_input(node, &mut |input| references.push(input));
    references.get(place).copied()
}

/// A node and those that its value is made of, as far back as `wanted` ones lead.
fn behind(side: &AnalyzedGraph, node: NodeId, wanted: &dyn Fn(NodeId) -> bool) -> BTreeSet<NodeId> {
    let mut found = BTreeSet::new();
    let mut open = vec![node];
    while let Some(id) = open.pop() {
        if wanted(id) && found.insert(id) {
            open.extend(side.edges.inputs(id));
        }
    }
    found
}

/// The nodes that a value is made of through `passed` nodes, these aside.
fn sources(side: &AnalyzedGraph, node: NodeId, passed: &dyn Fn(NodeId) -> bool) -> BTreeSet<NodeId> {
    match passed(node) {
        false => BTreeSet::from([node]),
        true => {
            let passed_by = behind(side, node, passed);
            let inputs = passed_by.iter().flat_map(|&id| side.edges.inputs(id).iter().copied());
            inputs.filter(|&id| !passed(id)).collect()
        }
    }
}
