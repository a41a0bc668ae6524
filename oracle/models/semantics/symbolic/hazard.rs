//! What an evaluation finds wrong on its way: reads of memory that holds nothing yet, writes to memory in flight,
//! values taken before they exist.
//!
//! A hazard alone proves nothing about a pass: a graph may send padding that nobody reads. A hazard that `after` has
//! beyond those of `before` is a fault of the pass.

use super::source::ValueId;
use super::words::range_words;
use crate::graph::{Graph, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;
use std::ops::Range;

/// A hazard at a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hazard {
    /// The node that runs into it.
    pub node: NodeId,
    /// What it is.
    pub kind: HazardKind,
}

/// A kind of hazard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HazardKind {
    /// An operator, a collective or the output reads memory that nothing has been written to.
    ReadsUnwritten {
        /// The input, where it is an argument of its own.
        input: Option<NodeId>,
        /// The first unwritten elements of it, in row-major order, where they can be told.
        elements: Option<Range<i64>>,
    },
    /// It reads memory that a collective in flight will write.
    ReadsInFlight {
        /// The input, where it is an argument of its own.
        input: Option<NodeId>,
        /// The collective, where it can be told.
        launch: Option<NodeId>,
    },
    /// It writes memory that a collective in flight will write.
    WritesInFlight {
        /// The collective.
        launch: NodeId,
    },
    /// The input of a collective has changed between its start and this wait.
    InputChanged {
        /// The collective.
        launch: NodeId,
        /// What it holds now, where that is known, and what was sent.
        values: Option<(ValueId, ValueId)>,
    },
    /// It starts a collective of which nobody awaits a result.
    NeverAwaited,
    /// It takes a value that no node has given yet: the graph cannot be executed.
    Undefined {
        /// The node that gives it; `None` for a name that no node has.
        input: Option<NodeId>,
    },
    /// A collective gathers into the buffer that its input lies in, but the input is not the own rank's slot.
    SlotMisplaced {
        /// First element of the own rank's slot, where the own rank is known.
        expected: Option<i64>,
        /// First element of the input.
        found: i64,
    },
    /// The node states another group size than the world.
    GroupSize {
        /// The size that the node states.
        stated: i64,
        /// The size in the world.
        world: u32,
    },
    /// A recorded storage is smaller than the tensor on it.
    StorageTooSmall {
        /// Bytes that the tensor needs.
        needs: i64,
        /// Bytes that are recorded.
        recorded: i64,
    },
}

/// A hazard as it is counted: the node in words, the operator, the kind.
pub type Sight<'h, K> = (&'h str, &'h str, K);

/// Which hazards after are new: those of one operator and kind that are more than before. Which of them, no count can tell;
/// reports name those whose words nobody knows from before.
pub fn new_sights<'h, K: Copy + Eq + Hash>(before: &[Sight<'h, K>], after: &[Sight<'h, K>]) -> Vec<bool> {
    let mut left: FxHashMap<(&str, K), usize> = FxHashMap::default();
    before.iter().for_each(|&(_, target, kind)| *left.entry((target, kind)).or_default() += 1);
    let known: FxHashSet<&Sight<K>> = before.iter().collect();
    let mut is_new = vec![true; after.len()];
    for is_known in [true, false] {
        let which = after.iter().zip(&mut is_new).filter(|(sight, _)| known.contains(sight) == is_known);
        for (&(_, target, kind), is_new) in which {
            if let Some(count) = left.get_mut(&(target, kind)).filter(|count| **count > 0) {
                *count -= 1;
                *is_new = false;
            }
        }
    }
    is_new
}

/// The hazards of a graph after that the graph before has not.
pub fn new_hazards<'h>(
    (old, before): (&'h Graph, &'h [Hazard]),
    (new, after): (&'h Graph, &'h [Hazard]),
) -> Vec<&'h Hazard> {
    let sights = |graph: &'h Graph, hazards: &'h [Hazard]| -> Vec<Sight<'h, &'static str>> {
        hazards.iter().map(|h| (graph.name(h.node), graph.target(h.node), h.kind.name())).collect()
    };
    let is_new = new_sights(&sights(old, before), &sights(new, after));
    after.iter().zip(is_new).filter(|(_, is_new)| *is_new).map(|(hazard, _)| hazard).collect()
}

impl HazardKind {
    /// A short name, equal for hazards of one kind.
    pub fn name(&self) -> &'static str {
        match self {
            HazardKind::ReadsUnwritten { .. } => "reads unwritten memory",
            HazardKind::ReadsInFlight { .. } => "reads memory in flight",
            HazardKind::WritesInFlight { .. } => "writes memory in flight",
            HazardKind::InputChanged { .. } => "input of a collective in flight changed",
            HazardKind::NeverAwaited => "is never waited for",
            HazardKind::Undefined { .. } => "takes a value before it exists",
            HazardKind::SlotMisplaced { .. } => "gathers in place from a wrong slot",
            HazardKind::GroupSize { .. } => "states a wrong group size",
            HazardKind::StorageTooSmall { .. } => "has a storage that is too small",
        }
    }
}

impl Hazard {
    /// In words.
    pub fn tell(&self, graph: &Graph) -> String {
        let name = graph.name(self.node);
        let of = |input: &Option<NodeId>| input.map_or(String::new(), |i| format!(" of {}", graph.name(i)));
        match &self.kind {
            HazardKind::ReadsUnwritten { input, elements: Some(elements) } => {
                format!(
                    "{name} reads {}{}, which nothing has been written to",
                    range_words(elements),
                    of(input)
                )
            }
            HazardKind::ReadsUnwritten { input, elements: None } => {
                format!("{name} reads elements{}, which nothing has been written to", of(input))
            }
            HazardKind::ReadsInFlight { input, launch } => {
                let launch = launch.map_or("a collective", |l| graph.name(l));
                format!("{name} reads elements{} that {launch} is still writing", of(input))
            }
            HazardKind::WritesInFlight { launch } => {
                format!("{name} writes memory that {} is still writing", graph.name(*launch))
            }
            HazardKind::InputChanged { launch, .. } => {
                format!("the input of {} has changed by the time {name} waits for it", graph.name(*launch))
            }
            HazardKind::NeverAwaited => format!("{name} is never waited for"),
            HazardKind::Undefined { input: Some(input) } => {
                format!("{name} takes {} before it exists", graph.name(*input))
            }
            HazardKind::Undefined { input: None } => format!("{name} takes a value that no node gives"),
            HazardKind::SlotMisplaced { expected: Some(expected), found } => format!(
                "{name} gathers in place from element {found} of its buffer, but the own rank's slot begins at {expected}"
            ),
            HazardKind::SlotMisplaced { expected: None, found } => {
                format!("{name} gathers in place from element {found} of its buffer, which is no rank's slot")
            }
            HazardKind::GroupSize { stated, world } => {
                format!("{name} states {stated} ranks for a group of {world}")
            }
            HazardKind::StorageTooSmall { needs, recorded } => {
                format!("{name} needs {needs} bytes, but its storage is recorded with {recorded}")
            }
        }
    }
}
