//! Constants that one graph reads and the other does not.
//!
//! A pass may compute with a constant's contents and leave the constant out. The file of a graph does not say what its
//! constants hold, so what depends on such a constant may be the same although it is made in another way. Differences
//! there are no evidence. Where both graphs read a constant, it is taken to hold anything, as inputs do.

use super::values::{Observed, ValueDifference, ValueResult};
use super::{AnalyzedGraph, Code, Evidence};
use crate::graph::{NodeId, Op, Out};
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashSet;

/// What depends on constants that only one of two graphs reads.
pub(super) struct Folded {
    /// One of these constants.
    constant: String,
    /// Names of the nodes in either graph that depend on one.
    names: FxHashSet<String>,
    /// Names of the outputs after, where nothing of the kind stands before or after.
    free: FxHashSet<String>,
    /// Whether such a node writes memory.
    writes: bool,
}

impl Folded {
    /// `None` where both graphs read the same constants.
    pub(super) fn new(evidence: &Evidence) -> Option<Folded> {
        let (before, after) = (&*evidence.before, &*evidence.after);
        let (old, new) = (constants(before), constants(after));
        let only = |of: &[(String, NodeId)], others: &[(String, NodeId)]| -> Vec<(String, NodeId)> {
            let is_other = |(name, _): &&(String, NodeId)| !others.iter().any(|(other, _)| other == name);
            of.iter().filter(is_other).cloned().collect()
        };
        let (gone, made) = (only(&old, &new), only(&new, &old));
        let constant = gone.first().or(made.first())?.0.clone();
        let mut folded =
            Folded { constant, names: FxHashSet::default(), free: FxHashSet::default(), writes: false };
        let of_before = folded.add(before, &gone);
        let of_after = folded.add(after, &made);
        let depends = |(old, new): (&NodeId, &NodeId)| {
            of_before.contains(old.index()) || of_after.contains(new.index())
        };
        if let (Some(a), Some(b)) = (before.graph.output(), after.graph.output()) {
            let (old, new) = (before.graph.inputs(a), after.graph.inputs(b));
            let (dependent, free): (Vec<_>, Vec<_>) = old.iter().zip(&new).partition(|&pair| depends(pair));
            let name = |(_, new): (&NodeId, &NodeId)| after.graph.name(*new).to_string();
            folded.free = free.into_iter().map(name).collect();
            for pair in dependent {
                folded.free.remove(&name(pair));
                folded.names.insert(name(pair));
            }
        }
        Some(folded)
    }

    /// Adds what depends on these constants.
    fn add(&mut self, side: &AnalyzedGraph, constants: &[(String, NodeId)]) -> FixedBitSet {
        let mut dependent = FixedBitSet::with_capacity(side.graph.len());
        let mut open: Vec<NodeId> = constants.iter().map(|(_, id)| *id).collect();
        while let Some(id) = open.pop() {
            if !dependent.put(id.index()) {
                self.names.insert(side.graph.name(id).to_string());
                self.writes |= side.ops.call(side.graph, id).is_some_and(|info| info.writes());
                open.extend(side.edges.users(id));
            }
        }
        dependent
    }

    /// Leaves out the differences that may come of what a constant holds.
    pub(super) fn excuse(&self, result: &mut ValueResult) {
        let ValueResult::Different(differences) = result else { return };
        let may_be_equal = |difference: &ValueDifference| match difference.observed {
            Observed::Effects => true,
            Observed::State => self.writes,
            // Where values part first, two nodes of one name are meant.
            Observed::Outputs => difference
                .nodes
                .iter()
                .any(|name| self.names.contains(name) && (difference.is_cause || !self.free.contains(name))),
        };
        differences.retain(|difference| !may_be_equal(difference));
        if differences.is_empty() {
            let why = format!(
                "only one of the graphs reads the constant {}, and the file does not say what it holds",
                self.constant
            );
            *result = ValueResult::Unknown(Code::ConstantNotKnown.because(why));
        }
    }
}

/// The constants that somebody reads.
fn constants(side: &AnalyzedGraph) -> Vec<(String, NodeId)> {
    let graph = side.graph;
    let is_read = |id: &NodeId| {
        let node = graph.node(*id);
        node.op == Op::GetAttr && matches!(node.out, Out::Tensor(_)) && !side.edges.users(*id).is_empty()
    };
    graph.ids().filter(is_read).map(|id| (graph.target(id).to_string(), id)).collect()
}
