//! Which collectives may share a bucket.
//!
//! # Formal statement
//!
//! A set of buckets is legal if the graph with *all* of them contracted at once, the starts of each bucket to
//! one node and its waits to another, has no cycle. That is decided one bucket at a time, on the graph with the
//! buckets before it contracted: a bucket keeps the graph free of cycles if and only if no path connects two
//! of its starts, nor two of its waits. Edges are data edges, ordering edges, and whatever hazards the caller
//! states. So the members of one bucket are independent in the current graph, and no cycle runs through
//! several buckets either.
//!
//! PyTorch 2.15 tests less: only paths from the members to the candidate, along data edges, and within one
//! kind of collective on the graph as it was before this kind's first merge. On graphs whose list is sorted
//! and that hold one kind this is the same.
//!
//! # How
//!
//! A topological order of the contracted graph is kept. What the open bucket reaches, and what reaches it, is
//! searched no further than a question needs: nodes are taken in order until the candidate's place. Contracting a
//! bucket moves, within the stretch of the order between its first and its last member, everything that follows
//! a member behind everything that does not. Each costs the stretch that the bucket spans, not the graph.

use crate::analysis::EdgeSource;
use crate::graph::NodeId;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const NONE: u32 = u32::MAX;

/// Rows of node numbers.
#[derive(Clone, Debug)]
struct Rows {
    start: Vec<u32>,
    node: Vec<u32>,
}

impl Rows {
    fn new(n: usize, row: impl Fn(NodeId, &mut Vec<u32>)) -> Rows {
        let mut rows = Rows { start: vec![0], node: Vec::with_capacity(2 * n) };
        for i in 0..n as u32 {
            row(NodeId(i), &mut rows.node);
            rows.start.push(rows.node.len() as u32);
        }
        rows
    }

    fn of(&self, node: u32) -> &[u32] {
        &self.node[self.start[node as usize] as usize..self.start[node as usize + 1] as usize]
    }
}

/// The contracted graph and the open bucket.
#[derive(Clone, Debug)]
pub struct Legality {
    after: Rows,
    before: Rows,
    /// The node that stands for each node: itself, or the first member of its bucket.
    class: Vec<u32>,
    /// Members of contracted buckets, by the node that stands for them.
    members: FxHashMap<u32, Vec<u32>>,
    /// Position in the topological order, of nodes that stand for themselves or for a bucket.
    place: Vec<u32>,
    /// The order; `NONE` where a contraction left a gap.
    order: Vec<u32>,
    /// Whether some wait must follow something else than its collective.
    ordered_waits: bool,
    starts: Frontier,
    waits: Frontier,
}

impl Legality {
    /// Of a graph whose list is sorted by these edges. `waits` are the waits that may be merged.
    pub fn new<G: EdgeSource>(edges: G, waits: &[NodeId]) -> Legality {
        let n = edges.node_count();
        let after = Rows::new(n, |id, row| row.extend(edges.after(id).map(|next| next.0)));
        let before = Rows::new(n, |id, row| row.extend(edges.before(id).map(|previous| previous.0)));
        let identity: Vec<u32> = (0..n as u32).collect();
        Legality {
            ordered_waits: waits.iter().any(|w| before.of(w.0).len() > 1),
            after,
            before,
            class: identity.clone(),
            members: FxHashMap::default(),
            place: identity.clone(),
            order: identity,
            starts: Frontier::new(n),
            waits: Frontier::new(n),
        }
    }

    /// Begins an empty bucket.
    pub fn open(&mut self) {
        self.starts.open();
        self.waits.open();
    }

    /// A member of the open bucket that a path connects with `start`, or whose wait a path connects with
    /// `wait`: the start or wait of that member.
    pub fn conflict(&mut self, start: NodeId, wait: NodeId) -> Option<NodeId> {
        let mut starts = std::mem::take(&mut self.starts);
        let mut found = starts.conflict(self, start.0);
        self.starts = starts;
        if found.is_none() && self.ordered_waits {
            let mut waits = std::mem::take(&mut self.waits);
            found = waits.conflict(self, wait.0);
            self.waits = waits;
        }
        found.map(NodeId)
    }

    /// Puts a collective into the open bucket.
    pub fn add(&mut self, start: NodeId, wait: NodeId) {
        let mut starts = std::mem::take(&mut self.starts);
        starts.add(self, start.0);
        self.starts = starts;
        if self.ordered_waits {
            let mut waits = std::mem::take(&mut self.waits);
            waits.add(self, wait.0);
            self.waits = waits;
        }
    }

    /// Makes one node of the starts of a bucket, and one of its waits. No path may connect two of either; the
    /// open bucket is forgotten.
    pub fn contract(&mut self, starts: &[NodeId], waits: &[NodeId]) {
        self.open();
        self.contract_set(starts);
        if self.ordered_waits {
            self.contract_set(waits);
        }
    }

    fn contract_set(&mut self, set: &[NodeId]) {
        let mut set: Vec<u32> = set.iter().map(|id| self.class[id.index()]).collect();
        set.sort_unstable_by_key(|&c| self.place[c as usize]);
        set.dedup();
        let (Some(&first), Some(&last)) = (set.first(), set.last()) else { return };
        if first == last {
            return;
        }
        let (low, high) = (self.place[first as usize], self.place[last as usize]);
        // What follows a member within the stretch, and the members themselves.
        let mut follows = vec![false; (high - low + 1) as usize];
        let mut is_member = follows.clone();
        set.iter().for_each(|&class| is_member[(self.place[class as usize] - low) as usize] = true);
        let mut stack = set.clone();
        while let Some(class) = stack.pop() {
            self.for_each_next(class, true, &mut |next| {
                let place = self.place[next as usize];
                if (low..=high).contains(&place) && !follows[(place - low) as usize] {
                    follows[(place - low) as usize] = true;
                    stack.push(next);
                }
            });
        }
        let stretch: Vec<u32> = self.order[low as usize..=high as usize].to_vec();
        let part = |moved: bool| {
            let (follows, is_member) = (&follows, &is_member);
            let others = stretch.iter().enumerate().filter(|&(i, &class)| class != NONE && !is_member[i]);
            others.filter(move |&(i, _)| follows[i] == moved).map(|(_, &class)| class)
        };
        let mut order: Vec<u32> = part(false).chain([first]).chain(part(true)).collect();
        order.resize(stretch.len(), NONE);
        for (i, &class) in order.iter().enumerate() {
            self.order[low as usize + i] = class;
            if class != NONE {
                self.place[class as usize] = low + i as u32;
            }
        }
        let mut all = Vec::new();
        for class in set {
            match self.members.remove(&class) {
                Some(members) => all.extend(members),
                None => all.push(class),
            }
        }
        for &member in &all {
            self.class[member as usize] = first;
        }
        self.members.insert(first, all);
    }

    /// Calls `visit` with every class right after (or before) a class, other than itself.
    fn for_each_next(&self, class: u32, forward: bool, visit: &mut impl FnMut(u32)) {
        let rows = if forward { &self.after } else { &self.before };
        let own = [class];
        let members = self.members.get(&class).map_or(&own[..], |members| &members[..]);
        for &member in members {
            for &next in rows.of(member) {
                let next = self.class[next as usize];
                if next != class {
                    visit(next);
                }
            }
        }
    }
}

/// What a growing set of nodes reaches, and what reaches it, as far as was asked.
#[derive(Clone, Debug, Default)]
struct Frontier {
    /// For each node the bucket that last marked it, below and above, and the member it was reached from.
    below: Marks,
    above: Marks,
    bucket: u32,
    forward: BinaryHeap<Reverse<(u32, u32)>>,
    backward: BinaryHeap<(u32, u32)>,
}

#[derive(Clone, Debug, Default)]
struct Marks {
    bucket: Vec<u32>,
    member: Vec<u32>,
}

impl Marks {
    fn new(n: usize) -> Marks {
        Marks { bucket: vec![0; n], member: vec![NONE; n] }
    }

    fn get(&self, node: u32, bucket: u32) -> Option<u32> {
        (self.bucket[node as usize] == bucket).then(|| self.member[node as usize])
    }

    /// Marks a node; false if it was marked before.
    fn set(&mut self, node: u32, bucket: u32, member: u32) -> bool {
        if self.bucket[node as usize] == bucket {
            return false;
        }
        self.bucket[node as usize] = bucket;
        self.member[node as usize] = member;
        true
    }
}

impl Frontier {
    fn new(n: usize) -> Frontier {
        Frontier { below: Marks::new(n), above: Marks::new(n), bucket: 1, ..Frontier::default() }
    }

    fn open(&mut self) {
        self.bucket += 1;
        self.forward.clear();
        self.backward.clear();
    }

    fn add(&mut self, graph: &Legality, member: u32) {
        let class = graph.class[member as usize];
        self.expand(graph, class, true, member);
        self.expand(graph, class, false, member);
    }

    fn expand(&mut self, graph: &Legality, class: u32, forward: bool, member: u32) {
        graph.for_each_next(class, forward, &mut |next| {
            let place = graph.place[next as usize];
            if forward && self.below.set(next, self.bucket, member) {
                self.forward.push(Reverse((place, next)));
            } else if !forward && self.above.set(next, self.bucket, member) {
                self.backward.push((place, next));
            }
        });
    }

    /// The member that reaches `node` or that `node` reaches.
    fn conflict(&mut self, graph: &Legality, node: u32) -> Option<u32> {
        let class = graph.class[node as usize];
        let place = graph.place[class as usize];
        while let Some(&Reverse((at, next))) = self.forward.peek()
            && at < place
        {
            self.forward.pop();
            if let Some(member) = self.below.get(next, self.bucket) {
                self.expand(graph, next, true, member);
            }
        }
        while let Some(&(at, next)) = self.backward.peek()
            && at > place
        {
            self.backward.pop();
            if let Some(member) = self.above.get(next, self.bucket) {
                self.expand(graph, next, false, member);
            }
        }
        self.below.get(class, self.bucket).or_else(|| self.above.get(class, self.bucket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Edges, check_contraction};
    use crate::graph::{Graph, Op, OrderingEdge, Value};
    use proptest::prelude::*;

    fn graph_of(n: usize, pairs: &[(usize, usize)]) -> Graph {
        let mut graph = Graph::new("g");
        for i in 0..n {
            let inputs: Vec<Value> =
                pairs.iter().filter(|p| p.1 == i).map(|p| Value::Node(NodeId(p.0 as u32))).collect();
            let args = graph.push_values(&inputs);
            let id = graph.push(&format!("n{i}"), Op::Call, "f");
            graph.node_mut(id).args = args;
        }
        graph
    }

    fn with_edges(graph: &mut Graph, pairs: &[(usize, usize)]) {
        graph.ordering.extend(pairs.iter().map(|&(before, after)| OrderingEdge {
            before: NodeId(before as u32),
            after: NodeId(after as u32),
        }));
    }

    #[test]
    fn a_cycle_through_two_buckets() {
        // a1 -> a2, b2 -> b1: each bucket {a1, b1}, {a2, b2} is fine on its own, both are not.
        let graph = graph_of(4, &[(0, 1), (2, 3)]);
        let [a1, a2, b2, b1] = [0, 1, 2, 3].map(NodeId);
        let mut legality = Legality::new(&Edges::new(&graph), &[]);
        legality.open();
        legality.add(a1, a1);
        assert_eq!(legality.conflict(b1, b1), None);
        legality.contract(&[a1, b1], &[]);
        legality.open();
        legality.add(a2, a2);
        assert_eq!(legality.conflict(b2, b2), Some(a2));
    }

    #[test]
    fn waits_are_merged_too() {
        // s0 -> w0 -> x ..> w1, s1 -> w1: the starts are independent, the waits are not.
        let mut graph = graph_of(5, &[(0, 2), (2, 3), (1, 4)]);
        with_edges(&mut graph, &[(3, 4)]);
        let [s0, s1, w0, _, w1] = [0, 1, 2, 3, 4].map(NodeId);
        let mut legality = Legality::new(&Edges::new(&graph), &[w0, w1]);
        legality.open();
        legality.add(s0, w0);
        assert_eq!(legality.conflict(s1, w1), Some(w0));
        legality.open();
        legality.add(s1, w1);
        assert_eq!(legality.conflict(s0, w0), Some(w1));
    }

    /// Edges among up to 16 nodes in list order, data and ordering; a sequence of nodes to bucket, and where
    /// buckets end.
    type Case = (usize, Vec<(usize, usize)>, Vec<(usize, usize)>, Vec<(usize, bool)>);

    fn case() -> impl Strategy<Value = Case> {
        (3usize..16).prop_flat_map(|n| {
            let pair = (0..n, 0..n)
                .prop_filter_map("no self-loop", |(a, b)| (a != b).then_some((a.min(b), a.max(b))));
            let edges = |most| prop::collection::vec(pair.clone(), 0..most);
            let order = Just((0..n).collect::<Vec<_>>()).prop_shuffle();
            let ends = prop::collection::vec(prop::bool::weighted(0.3), n);
            (edges(n), edges(4), order, ends).prop_map(move |(data, ordering, order, ends)| {
                (n, data, ordering, order.into_iter().zip(ends).collect())
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// Every accepted member leaves the jointly contracted graph without a cycle, and every refused one
        /// would have made one, by the independent check of the whole contraction.
        #[test]
        fn accepts_exactly_what_keeps_the_contraction_acyclic((n, data, ordering, queue) in case()) {
            let mut graph = graph_of(n, &data);
            with_edges(&mut graph, &ordering);
            let edges = Edges::new(&graph);
            let mut legality = Legality::new(&edges, &[]);
            let mut closed: Vec<Vec<NodeId>> = Vec::new();
            let mut open: Vec<NodeId> = Vec::new();
            legality.open();
            for (node, end) in queue {
                let node = NodeId(node as u32);
                let mut tried = closed.clone();
                tried.push(open.iter().copied().chain([node]).collect());
                tried.retain(|bucket| bucket.len() > 1);
                let legal = check_contraction(&edges, &tried).is_ok();
                let conflict = legality.conflict(node, node);
                prop_assert_eq!(conflict.is_none(), legal, "{:?} with {:?}, closed {:?}", node, open, closed);
                if let Some(member) = conflict {
                    prop_assert!(open.contains(&member));
                    continue;
                }
                legality.add(node, node);
                open.push(node);
                if end {
                    legality.contract(&open, &[]);
                    legality.open();
                    closed.push(std::mem::take(&mut open));
                }
            }
        }
    }
}
