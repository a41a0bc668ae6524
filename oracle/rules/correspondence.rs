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

use super::Side;
use crate::graph::{Graph, NodeId, Op};
use crate::ops::Kind;

/// A new launch and the launches of the graph before that it stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Merge {
    /// Index of the new launch in the collectives of the graph after.
    pub launch: usize,
    /// Indices of its members in the collectives of the graph before, in wait order.
    pub members: Vec<usize>,
}

/// A place where a surviving node reads something else than before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    /// Where surviving nodes read something else.
    pub rewires: Vec<Rewire>,
    /// Surviving nodes whose references do not line up with before, or whose other arguments changed.
    pub changed: Vec<NodeId>,
}

impl Correspondence {
    /// Compares two graphs.
    pub fn new(before: &Side, after: &Side) -> Correspondence {
        let mut this = Correspondence::by_name(before.graph, after.graph);
        this.find_rewires(before.graph, after.graph);
        this.find_merges(before, after);
        this
    }

    /// The merge that a launch before became a member of; the first if there are several.
    pub fn merge_of(&self, launch: usize) -> Option<usize> {
        let (_, merges) = self.carried_by.iter().find(|(l, _)| *l == launch)?;
        merges.first().copied()
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
        for id in before.ids() {
            let Some(twin) = self.after_of[id.index()] else { continue };
            old.clear();
            new.clear();
            before.for_each_input(id, &mut |n| old.push(n));
            after.for_each_input(twin, &mut |n| new.push(n));
            if old.len() != new.len() || !same_constants(before, id, after, twin) {
                self.changed.push(id);
                continue;
            }
            for (place, (&o, &n)) in old.iter().zip(&new).enumerate() {
                if self.after_of[o.index()] != Some(n) {
                    self.rewires.push(Rewire { user: id, place, old: o, new: n });
                }
            }
        }
    }

    fn find_merges(&mut self, before: &Side, after: &Side) {
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
                    for &merge in &delivered[new.index()] {
                        if !merges.contains(&merge) {
                            merges.push(merge);
                        }
                    }
                }
            }
            merges.sort_unstable();
        }
        if carried.iter().any(|(_, merges)| merges.is_empty()) {
            self.find_unread(before, after, &launches, &is_new, &mut carried);
        }
        let mut merges: Vec<Merge> =
            launches.iter().map(|&launch| Merge { launch, members: Vec::new() }).collect();
        for (launch, into) in &carried {
            for &merge in into {
                merges[merge].members.push(*launch);
            }
        }
        self.merges = merges;
        self.carried_by = carried;
    }

    /// The erased nodes that hold a launch's value: the launch, its waits, and what was erased with them.
    fn erased_values(&self, before: &Side, launch: usize) -> Vec<NodeId> {
        let mut values = vec![before.collectives.calls[launch].node];
        let mut i = 0;
        while i < values.len() {
            for &user in before.edges.users(values[i]) {
                let is_launch = before.collectives.launch_at(user).is_some();
                if self.after_of[user.index()].is_none() && !is_launch && !values.contains(&user) {
                    values.push(user);
                }
            }
            i += 1;
        }
        values
    }

    /// Finds the launches of members whose value no surviving node reads, by their inputs.
    fn find_unread(
        &self,
        before: &Side,
        after: &Side,
        launches: &[usize],
        is_new: &dyn Fn(NodeId) -> bool,
        carried: &mut [(usize, Vec<usize>)],
    ) {
        // What each new launch packs. A tensor is claimed once, a bucket's result once for each of its members.
        let mut packed: Vec<Packed> =
            launches.iter().map(|&l| packed_by(after, l, launches, is_new)).collect();
        for i in 0..carried.len() {
            for merge in carried[i].1.clone() {
                self.claim(before, carried, carried[i].0, &mut packed[merge]);
            }
        }
        // In wait order, as buckets are filled; what a member sends may come from a bucket that was found just now.
        for i in 0..carried.len() {
            if !carried[i].1.is_empty() {
                continue;
            }
            let launch = carried[i].0;
            let call = &before.collectives.calls[launch];
            let fits = |merge: &usize| {
                let new = &after.collectives.calls[launches[*merge]];
                new.kind == call.kind && new.group.to_string() == call.group.to_string()
            };
            let mut merges = (0..launches.len()).filter(fits);
            if let Some(merge) = merges.find(|&m| self.claim(before, carried, launch, &mut packed[m])) {
                carried[i].1.push(merge);
            }
        }
    }

    /// Takes what a launch sends out of what a new launch packs; false if it is not there, or no place is left.
    fn claim(
        &self,
        before: &Side,
        carried: &[(usize, Vec<usize>)],
        launch: usize,
        packed: &mut Packed,
    ) -> bool {
        let (nodes, launches) = self.payload(before, launch);
        let left = packed.bytes.saturating_sub(sent_bytes(before, launch));
        if packed.slots == 0 || left < 0 {
            return false;
        }
        let place = |node: &NodeId| packed.nodes.iter().position(|other| other == node);
        let from = || carried.iter().filter(|(l, _)| launches.contains(l)).flat_map(|(_, merges)| merges);
        match nodes.iter().find_map(place) {
            Some(at) => {
                packed.nodes.remove(at);
            }
            None if from().any(|merge| packed.merges.contains(merge)) => {}
            None => return false,
        }
        (packed.slots, packed.bytes) = (packed.slots - 1, left);
        true
    }

    /// What a launch sends, in the nodes after, the likeliest first: its input, what a cast before it converts, or
    /// what erased nodes before it were made from; and the erased launches whose value it sends.
    fn payload(&self, before: &Side, launch: usize) -> (Vec<NodeId>, Vec<usize>) {
        let (mut nodes, mut launches) = (Vec::new(), Vec::new());
        let Some(&input) = before.collectives.calls[launch].inputs.first() else { return (nodes, launches) };
        let is_cast = before.ops.call(before.graph, input).is_some_and(|info| info.kind == Kind::Cast);
        // The input itself first: it is the likeliest.
        let mut queue = vec![input];
        if is_cast {
            queue.extend(before.edges.inputs(input).first());
        }
        let mut at = 0;
        while let Some(&id) = queue.get(at) {
            at += 1;
            let mut found = Vec::new();
            match (self.after_of[id.index()], before.collectives.launch_at(id)) {
                (Some(twin), _) => {
                    nodes.push(twin);
                    // Packing that was taken apart may have other users, and stay.
                    if self.after_of[input.index()].is_none() && moves(before, id) {
                        found.extend_from_slice(before.edges.inputs(id));
                    }
                }
                (None, Some(launch)) => launches.push(launch),
                (None, None) => found.extend_from_slice(before.edges.inputs(id)),
            }
            // Of several waits for one value the first one stands for all.
            let is_wait = |id| before.ops.call(before.graph, id).is_some_and(|info| info.kind == Kind::Wait);
            if is_wait(id) && self.after_of[id.index()].is_none() {
                let values = before.edges.inputs(id).iter();
                found.extend(
                    values.flat_map(|&value| before.edges.users(value)).filter(|&&user| is_wait(user)),
                );
            }
            for next in found {
                if !queue.contains(&next) {
                    queue.push(next);
                }
            }
        }
        (nodes, launches)
    }
}

/// For each node after, the merges (indices into `launches`) whose value it holds: forward from each launch
/// through new nodes, and through new writes to whoever reads the written storage, up to the next launch.
fn delivered_by(after: &Side, launches: &[usize], is_new: &dyn Fn(NodeId) -> bool) -> Vec<Vec<usize>> {
    let mut delivered: Vec<Vec<usize>> = vec![Vec::new(); after.graph.len()];
    for (merge, &launch) in launches.iter().enumerate() {
        let mut stack = vec![after.collectives.calls[launch].node];
        while let Some(id) = stack.pop() {
            if delivered[id.index()].contains(&merge) {
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
                for reader in after.showing_writes_of(id) {
                    visit(reader);
                }
            }
        }
    }
    delivered
}

/// Whether a node only moves elements.
fn moves(side: &Side, id: NodeId) -> bool {
    side.ops.call(side.graph, id).is_some_and(|info| {
        matches!(info.kind, Kind::View(_) | Kind::Move(_) | Kind::GetItem | Kind::Cast | Kind::Fill(_))
    })
}

/// What a new launch packs.
struct Packed {
    /// Surviving nodes; one that is packed twice is listed twice.
    nodes: Vec<NodeId>,
    /// Merges whose results it packs.
    merges: Vec<usize>,
    /// Members that it can still have: the elements of the longest list among the nodes that pack.
    slots: usize,
    /// Bytes that it sends for members that are not known yet.
    bytes: i64,
}

/// The bytes that a launch sends, all its inputs together.
fn sent_bytes(side: &Side, launch: usize) -> i64 {
    let inputs = side.collectives.calls[launch].inputs.iter();
    let bytes = |&input: &NodeId| side.graph.bytes(side.graph.tensor_of(input)?);
    inputs.filter_map(bytes).fold(0, i64::saturating_add)
}

/// What a new launch packs: backward through new nodes, and to the new writers of what is read, up to surviving nodes
/// and other launches.
fn packed_by(after: &Side, launch: usize, launches: &[usize], is_new: &dyn Fn(NodeId) -> bool) -> Packed {
    let mut packed =
        Packed { nodes: Vec::new(), merges: Vec::new(), slots: 1, bytes: sent_bytes(after, launch) };
    let mut seen = vec![false; after.graph.len()];
    let call = &after.collectives.calls[launch];
    let mut stack: Vec<NodeId> = call.inputs.iter().rev().copied().collect();
    seen[call.node.index()] = true;
    while let Some(id) = stack.pop() {
        if !is_new(id) {
            packed.nodes.push(id);
            continue;
        }
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        if let Some(other) = after.collectives.launch_at(id) {
            packed.merges.extend(launches.iter().position(|&l| l == other));
            continue;
        }
        let mut inputs = Vec::new();
        after.graph.for_each_input(id, &mut |input| inputs.push(input));
        packed.slots = packed.slots.max(inputs.len());
        stack.extend(inputs.into_iter().rev());
        stack.extend(after.writers_of(id).into_iter().filter(|&w| is_new(w)));
    }
    packed
}

/// Whether two nodes have the same arguments, references aside.
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
