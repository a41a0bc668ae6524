//! What became of what: which nodes survived a pass, and which launches were merged into which.
//!
//! # The idea
//!
//! A node *survives* if the graph after has a node of the same name, operation and target. Everything else of the
//! graph before was *erased*, everything else of the graph after is *new*. A new launch is a bucket's collective.
//! Its members are found from both ends, without trusting any record of the pass:
//!
//! - *from the users*: who read an erased member's value now reads something else; going back from there through
//!   new nodes (and through new writes to the storage that is read) one arrives at the launch that delivers it;
//! - *from the inputs*, for members that nobody reads: going back from the launch through new nodes one arrives
//!   at the tensors that it packs; a member's input, or what its folded cast converts, is among them.
//!
//! It needs no order and no acyclicity, so it works on the broken graphs that rules must explain.
//!
//! # What it does not do
//!
//! It does not say that values are right: whether a user reads *its* piece is decided by values.

use super::AnalyzedGraph;
use super::unread::Unread;
use crate::graph::{Graph, NodeId, Op};
use crate::ops::{Ops, Word, spelled};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;

/// A new launch and the launches of the graph before that it stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Merge {
    /// Index of the new launch in the collectives of the graph after.
    pub launch: usize,
    /// Indices of its members in the collectives of the graph before, in wait order.
    pub members: Vec<usize>,
    /// Whether these are the members beyond doubt: not where several launches that nobody reads send alike, so that
    /// they might change places with those of another launch.
    pub certain: bool,
}

/// A place where a surviving node reads something else than before.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rewire {
    /// The reader, in the graph before.
    pub user: NodeId,
    /// Its position there among its references, counted with repetition.
    pub place: usize,
    /// What it read, in the graph before.
    pub old: NodeId,
    /// What it reads, in the graph after.
    pub new: NodeId,
}

/// What became of what.
#[derive(Clone, Debug, Default)]
pub struct Correspondence {
    /// For each node before, the surviving node after.
    pub after_of: Vec<Option<NodeId>>,
    /// For each node after, the node before that it is.
    pub before_of: Vec<Option<NodeId>>,
    /// New launches with their members; a launch without members is listed too.
    pub merges: Vec<Merge>,
    /// For each launch before that was erased: the merges that carry it (empty: lost).
    pub carried_by: Vec<(usize, Vec<usize>)>,
    /// The first of them, where there is one.
    first_merge: FxHashMap<usize, usize>,
    /// Where surviving nodes read something else.
    pub rewires: Vec<Rewire>,
    /// Surviving nodes whose references do not line up with before, or whose other arguments changed.
    pub changed: Vec<NodeId>,
}

impl Correspondence {
    /// Compares two graphs.
    pub fn new(before: &AnalyzedGraph, after: &AnalyzedGraph) -> Correspondence {
        let mut this = Correspondence::of_nodes(before.graph, after.graph);
        this.find_merges(before, after);
        this
    }

    /// Compares the nodes of two graphs, without regard to their communication.
    pub(super) fn of_nodes(before: &Graph, after: &Graph) -> Correspondence {
        let mut this = Correspondence::by_name(before, after);
        this.find_rewires(before, after);
        this
    }

    /// The merge that a launch before became a member of; the first if there are several.
    pub fn merge_of(&self, launch: usize) -> Option<usize> {
        self.first_merge.get(&launch).copied()
    }

    fn by_name(before: &Graph, after: &Graph) -> Correspondence {
        let mut this = Correspondence {
            after_of: vec![None; before.len()],
            before_of: vec![None; after.len()],
            ..Correspondence::default()
        };
        for id in before.ids() {
            let Some(twin) = after.find(before.name(id)) else { continue };
            let (old, new) = (before.node(id), after.node(twin));
            let same = old.op == new.op && (old.op != Op::Call || before.target(id) == after.target(twin));
            if same && this.before_of[twin.index()].is_none() {
                this.after_of[id.index()] = Some(twin);
                this.before_of[twin.index()] = Some(id);
            }
        }
        this
    }

    fn find_rewires(&mut self, before: &Graph, after: &Graph) {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        let calls = Calls::new(before, after);
        for id in before.ids() {
            let Some(twin) = self.after_of[id.index()] else { continue };
            old.clear();
            new.clear();
            before.for_each_input(id, &mut |n| old.push(n));
            after.for_each_input(twin, &mut |n| new.push(n));
            if old.len() != new.len() || !calls.same_constants(id, twin) {
                self.changed.push(id);
                continue;
            }
            for (place, (&o, &n)) in old.iter().zip(&new).enumerate() {
                // A reference past the end of the list leads to no node that could have survived.
                if self.after_of.get(o.index()).copied().flatten() != Some(n) {
                    self.rewires.push(Rewire { user: id, place, old: o, new: n });
                }
            }
        }
    }

    fn find_merges(&mut self, before: &AnalyzedGraph, after: &AnalyzedGraph) {
        let is_new = |id: NodeId| self.before_of[id.index()].is_none();
        let launches: Vec<usize> =
            (0..after.collectives.calls.len()).filter(|&l| is_new(after.collectives.calls[l].node)).collect();
        let delivered = delivered_by(after, &launches, &is_new);

        // Erased launches, in wait order: the order in which their first wait stands in the list.
        let mut erased: Vec<usize> = (0..before.collectives.calls.len())
            .filter(|&l| self.after_of[before.collectives.calls[l].node.index()].is_none())
            .collect();
        erased.sort_by_key(|&l| before.collectives.waits[l].first().map_or(u32::MAX, |w| w.0));

        let mut rewired = vec![Vec::new(); before.graph.len()];
        for rewire in &self.rewires {
            rewired[rewire.old.index()].push(rewire.new);
        }
        let mut carried: Vec<(usize, Vec<usize>)> = erased.iter().map(|&l| (l, Vec::new())).collect();
        for (launch, merges) in &mut carried {
            for value in self.erased_values(before, *launch) {
                for new in &rewired[value.index()] {
                    merges.extend(&delivered[new.index()]);
                }
            }
            merges.sort_unstable();
            merges.dedup();
        }
        let mut doubtful = Vec::new();
        if carried.iter().any(|(_, merges)| merges.is_empty()) {
            doubtful = Unread::new(self, before, after, &launches, &is_new).find(&mut carried);
        }
        let mut merges: Vec<Merge> =
            launches.iter().map(|&launch| Merge { launch, members: Vec::new(), certain: true }).collect();
        for (launch, into) in &carried {
            for &merge in into {
                merges[merge].members.push(*launch);
            }
        }
        doubtful.into_iter().for_each(|merge: usize| merges[merge].certain = false);
        self.first_merge =
            carried.iter().filter_map(|(launch, merges)| Some((*launch, *merges.first()?))).collect();
        self.merges = merges;
        self.carried_by = carried;
    }

    /// The erased nodes that hold a launch's value: the launch, its waits, and what was erased with them.
    fn erased_values(&self, before: &AnalyzedGraph, launch: usize) -> Vec<NodeId> {
        let mut values = vec![before.collectives.calls[launch].node];
        let mut seen: FxHashSet<NodeId> = values.iter().copied().collect();
        let mut i = 0;
        while i < values.len() {
            for &user in before.edges.users(values[i]) {
                let is_launch = before.collectives.launch_at(user).is_some();
                if self.after_of[user.index()].is_none() && !is_launch && seen.insert(user) {
                    values.push(user);
                }
            }
            i += 1;
        }
        values
    }
}

/// For each node after, the merges (indices into `launches`) whose value it holds: forward from each launch
/// through new nodes, and through new writes to whoever reads the written storage, up to the next launch.
fn delivered_by(
    after: &AnalyzedGraph,
    launches: &[usize],
    is_new: &dyn Fn(NodeId) -> bool,
) -> Vec<Vec<usize>> {
    let mut delivered: Vec<Vec<usize>> = vec![Vec::new(); after.graph.len()];
    let mut seen_storages = FxHashSet::default();
    for (merge, &launch) in launches.iter().enumerate() {
        let mut stack = vec![after.collectives.calls[launch].node];
        seen_storages.clear();
        while let Some(id) = stack.pop() {
            if delivered[id.index()].last() == Some(&merge) {
                continue;
            }
            delivered[id.index()].push(merge);
            let mut visit = |next: NodeId| {
                if is_new(next) && after.collectives.launch_at(next).is_none() {
                    stack.push(next);
                }
            };
            for &user in after.edges.users(id) {
                visit(user);
            }
            if after.collectives.launch_at(id).is_none() {
                let written = after.written_by(id).filter(|&storage| seen_storages.insert(storage));
                written.flat_map(|storage| after.shown_by(storage)).for_each(|&reader| visit(reader));
            }
        }
    }
    delivered
}

/// Calls of two graphs, held against each other as their operators understand them.
pub(super) struct Calls<'g> {
    before: &'g Graph,
    after: &'g Graph,
    ops: OnceCell<(Ops, Ops)>,
}

impl<'g> Calls<'g> {
    pub(super) fn new(before: &'g Graph, after: &'g Graph) -> Calls<'g> {
        Calls { before, after, ops: OnceCell::new() }
    }

    /// The words of a call before.
    pub(super) fn old(&self, old: NodeId) -> Vec<Word<'_>> {
        spelled(self.before, &self.ops().0, old)
    }

    /// The words of a call after.
    pub(super) fn new_one(&self, new: NodeId) -> Vec<Word<'_>> {
        spelled(self.after, &self.ops().1, new)
    }

    fn ops(&self) -> &(Ops, Ops) {
        self.ops.get_or_init(|| (Ops::of(self.before), Ops::of(self.after)))
    }

    /// Whether two nodes have the same arguments, references aside, and refer to nodes in the same places.
    pub(super) fn same_constants(&self, old: NodeId, new: NodeId) -> bool {
        if same_constants(self.before, old, self.after, new) {
            return true;
        }
        let (a, b) = (self.old(old), self.new_one(new));
        same_words(&a, &b) && is_in_order(self.before, old, &a) && is_in_order(self.after, new, &b)
    }

    /// Whether two nodes have the same arguments, where references mean names.
    pub(super) fn same_arguments(&self, old: NodeId, new: NodeId) -> bool {
        fn name<'a>(graph: &'a Graph, word: &Word<'a>) -> Option<&'a str> {
            match *word {
                Word::Node(id) if id.index() < graph.len() => Some(graph.name(id)),
                Word::Dangling(name) => Some(name),
                _ => None,
            }
        }
        let (a, b) = (self.old(old), self.new_one(new));
        let same = |(a, b): (&Word, &Word)| match a.is_reference() && b.is_reference() {
            true => name(self.before, a) == name(self.after, b),
            false => a == b,
        };
        a.len() == b.len() && a.iter().zip(&b).all(same)
    }
}

/// Whether two calls are spelled alike, whatever nodes they refer to.
pub(super) fn same_words(a: &[Word], b: &[Word]) -> bool {
    let same = |(a, b): (&Word, &Word)| a == b || (a.is_reference() && b.is_reference());
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// Whether a call refers to nodes in the order of its words: by keyword they may stand in any.
fn is_in_order(graph: &Graph, id: NodeId, words: &[Word]) -> bool {
    let mut nodes = words.iter().filter_map(|word| if let Word::Node(id) = word { Some(*id) } else { None });
    let mut is = true;
    graph.for_each_input(id, &mut |input| is &= nodes.next() == Some(input));
    is
}

/// Whether two nodes are written with the same arguments, references aside.
pub(super) fn same_constants(a: &Graph, x: NodeId, b: &Graph, y: NodeId) -> bool {
    let (p, q) = (a.args(x), b.args(y));
    let constants = p.len() == q.len() && p.iter().zip(q).all(|(&v, &w)| same_value(a, v, b, w));
    let (mut k, mut l) = (a.kwargs(x), b.kwargs(y));
    constants
        && k.len() == l.len()
        && k.by_ref().zip(l.by_ref()).all(|((n, v), (m, w))| n == m && same_value(a, v, b, w))
}

fn same_value(a: &Graph, v: crate::graph::Value, b: &Graph, w: crate::graph::Value) -> bool {
    use crate::graph::Value::*;
    match (v, w) {
        (Node(_) | Dangling(_), Node(_) | Dangling(_)) => true,
        (List(s), List(t)) | (Slice(s), Slice(t)) | (Dict(s), Dict(t)) | (Complex(s), Complex(t)) => {
            let (s, t) = (a.values(s), b.values(t));
            s.len() == t.len() && s.iter().zip(t).all(|(&v, &w)| same_value(a, v, b, w))
        }
        (Str(s), Str(t))
        | (Device(s), Device(t))
        | (MemoryFormat(s), MemoryFormat(t))
        | (Layout(s), Layout(t))
        | (Function(s), Function(t)) => a.text(s) == b.text(t),
        (Symbolic(s), Symbolic(t)) => {
            let (s, t) = (a.expr(s), b.expr(t));
            a.text(s.text) == b.text(t.text) && s.hint == t.hint
        }
        (Float(x), Float(y)) => x.to_bits() == y.to_bits(),
        (v, w) => v == w,
    }
}
