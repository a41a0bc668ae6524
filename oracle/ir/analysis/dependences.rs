//! All reasons why one node of a list must come before another, one edge per pair, each with its origin.
//!
//! # The idea
//!
//! A reordering is harmless if it keeps the order of every two nodes that depend on one another. They do if
//! - the second takes the value of the first (at any depth of its arguments), or an ordering edge says so;
//! - both touch the same bytes and one of them writes ([`conflicts`](super::conflicts)). A wait counts as the end
//!   of what its collective began: the collective's inputs are read and its result is written until then, so
//!   whoever overwrites the former or touches the latter after the wait must stay after it;
//! - both draw random numbers;
//! - both have an effect. Assertions among themselves may change places: they only stop the program.
//!
//! Of several reasons for one pair the first in this list is told. The relation is sparse: a pair whose order
//! follows from others need not be in it. [`Dependences`] is an [`EdgeSource`](super::EdgeSource).
//!
//! Whether something holds for certain is part of each origin. Both the certain edges alone and all edges
//! together have the closure that they should have, so a rule may take either.
//!
//! # What it does not do
//!
//! The order of communication within a group is no dependence of one rank's graph; it is what ranks must agree
//! on. [`Options::communication_order`] adds it for passes that keep it. Reasons that rest on the order of the
//! list (all but data and ordering edges) mean little for a list that is not topological.

use super::collectives::{Collectives, GroupName};
use super::conflicts::conflicts;
use super::draws::Draws;
use super::edges::{Edges, Rows};
use super::origin::{Origin, Origins};
use super::storages::Storages;
use crate::graph::{Graph, NodeId};
use crate::ops::{Kind, Ops};
use petgraph::visit;
use rustc_hash::FxHashMap;

/// What counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether to add what may or may not be a dependence: unknown operators, bytes that are not known.
    pub uncertain: bool,
    /// Whether to keep the order of launches on each process group.
    pub communication_order: bool,
}

impl Default for Options {
    /// Everything that may be a dependence; no order of communication.
    fn default() -> Options {
        Options { uncertain: true, communication_order: false }
    }
}

/// The dependences of one graph.
#[derive(Clone, Debug, Default)]
pub struct Dependences {
    before: Rows,
    /// Parallel to the entries of `before`.
    origins: Vec<Origin>,
    after: Rows,
}

impl Dependences {
    /// Collects the dependences of `graph`. Linear in its size.
    pub fn new(
        graph: &Graph,
        ops: &Ops,
        edges: &Edges,
        storages: &Storages,
        collectives: &Collectives,
        options: Options,
    ) -> Dependences {
        let n = graph.len();
        let mut list = List { pairs: Vec::with_capacity(3 * n), origins: Vec::with_capacity(3 * n) };
        for id in graph.ids() {
            edges.inputs(id).iter().for_each(|&input| list.add(input, id, Origin::Data));
            edges.ordered_before(id).iter().for_each(|&first| list.add(first, id, Origin::Ordering));
        }
        for conflict in conflicts(storages) {
            if conflict.certain || options.uncertain {
                list.add(conflict.before, conflict.after, conflict.origin(storages));
            }
        }
        states(graph, ops, options.uncertain, &mut list);
        if options.communication_order {
            let mut last: FxHashMap<GroupName, NodeId> = FxHashMap::default();
            for call in &collectives.calls {
                if let Some(before) = last.insert(call.group, call.node) {
                    list.add(before, call.node, Origin::Communication);
                }
            }
        }
        list.into_rows(n)
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.before.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of edges.
    pub fn count(&self) -> usize {
        self.origins.len()
    }

    /// What must come before `id`, and why.
    pub fn before(&self, id: NodeId) -> impl ExactSizeIterator<Item = (NodeId, Origin)> {
        self.before.range(id).zip(self.before.of(id)).map(|(i, &before)| (before, self.origins[i]))
    }

    /// What must come after `id`.
    pub fn after(&self, id: NodeId) -> &[NodeId] {
        self.after.of(id)
    }
}

impl Origins for Dependences {
    fn origin(&self, before: NodeId, after: NodeId) -> Option<Origin> {
        self.before(after).find(|&(node, _)| node == before).map(|(_, origin)| origin)
    }
}

/// Edges to be sorted; the first of several for one pair counts.
struct List {
    /// (after, before)
    pairs: Vec<(NodeId, NodeId)>,
    origins: Vec<Origin>,
}

impl List {
    fn add(&mut self, before: NodeId, after: NodeId, origin: Origin) {
        self.pairs.push((after, before));
        self.origins.push(origin);
    }

    fn into_rows(self, n: usize) -> Dependences {
        let all = Rows::sort(n, &self.pairs);
        let mut seen = vec![u32::MAX; n];
        let (mut pairs, mut origins) = (Vec::with_capacity(all.len()), Vec::with_capacity(all.len()));
        for i in all {
            let (after, before) = self.pairs[i as usize];
            if seen[before.index()] != after.0 {
                seen[before.index()] = after.0;
                pairs.push((after, before));
                origins.push(self.origins[i as usize]);
            }
        }
        let before = Rows::build(n, &pairs);
        Dependences { after: before.turned(), before, origins }
    }
}

/// Random draws and effects: chains through the list.
fn states(graph: &Graph, ops: &Ops, uncertain: bool, list: &mut List) {
    let draws = Draws::new(graph, ops);
    let mut random = vec![Chain::default(); draws.generators().max(1)];
    let mut effect = Chain::default();
    for id in graph.ids() {
        let Some(info) = ops.call(graph, id) else { continue };
        // An unknown operator may do anything.
        let known = info.kind != Kind::Unknown;
        if !known && !uncertain {
            continue;
        }
        // It may draw from any generator.
        let drawn = draws.of(id).map(|draw| draw.generator as usize);
        for (_, chain) in random.iter_mut().enumerate().filter(|(n, _)| !known || drawn == Some(*n)) {
            chain.change(id, known, &mut |before, certain| {
                list.add(before, id, Origin::Random { certain });
            });
        }
        if info.kind == Kind::Assert {
            effect.look(id, &mut |before, certain| list.add(before, id, Origin::Effect { certain }));
        } else if info.effect && info.kind != Kind::Resize {
            effect.change(id, known, &mut |before, certain| list.add(before, id, Origin::Effect { certain }));
        }
    }
}

/// The nodes that change a state outside the graph, and those that only look at it.
#[derive(Clone, Default)]
struct Chain {
    /// The last change that is certain, and the last one after it that may be.
    certain: Option<NodeId>,
    maybe: Option<NodeId>,
    /// Looks since the last certain change, and how many of them the last uncertain change has met.
    looks: Vec<NodeId>,
    met: usize,
}

impl Chain {
    fn change(&mut self, id: NodeId, certain: bool, add: &mut impl FnMut(NodeId, bool)) {
        let looks = if certain { 0 } else { self.met };
        self.looks[looks..].iter().for_each(|&look| add(look, certain));
        self.maybe.into_iter().for_each(|before| add(before, false));
        if certain {
            self.certain.into_iter().for_each(|before| add(before, true));
            *self = Chain { certain: Some(id), ..Chain::default() };
        } else {
            if self.maybe.is_none() {
                self.certain.into_iter().for_each(|before| add(before, false));
            }
            (self.maybe, self.met) = (Some(id), self.looks.len());
        }
    }

    fn look(&mut self, id: NodeId, add: &mut impl FnMut(NodeId, bool)) {
        self.maybe.into_iter().for_each(|before| add(before, false));
        self.certain.into_iter().for_each(|before| add(before, true));
        self.looks.push(id);
    }
}

impl visit::GraphBase for Dependences {
    type NodeId = NodeId;
    type EdgeId = (NodeId, NodeId);
}

impl visit::NodeCount for Dependences {
    fn node_count(&self) -> usize {
        self.len()
    }
}

impl visit::NodeIndexable for Dependences {
    fn node_bound(&self) -> usize {
        self.len()
    }

    fn to_index(&self, id: NodeId) -> usize {
        id.index()
    }

    fn from_index(&self, index: usize) -> NodeId {
        NodeId(index as u32)
    }
}

impl<'a> visit::IntoNeighbors for &'a Dependences {
    type Neighbors = std::iter::Copied<std::slice::Iter<'a, NodeId>>;

    fn neighbors(self, id: NodeId) -> Self::Neighbors {
        self.after.of(id).iter().copied()
    }
}

impl<'a> visit::IntoNeighborsDirected for &'a Dependences {
    type NeighborsDirected = std::iter::Copied<std::slice::Iter<'a, NodeId>>;

    fn neighbors_directed(self, id: NodeId, direction: petgraph::Direction) -> Self::NeighborsDirected {
        match direction {
            petgraph::Direction::Outgoing => self.after.of(id).iter().copied(),
            petgraph::Direction::Incoming => self.before.of(id).iter().copied(),
        }
    }
}
