//! What is known about one graph of a right outcome: the facts that say where an edit is certain.

use super::sources::{Made, Sources, inputs, made};
use crate::analysis::bytes::Overlap;
use crate::analysis::contradictions::{contradicted, contradiction, with_opaque_calls};
use crate::analysis::storages::Mode;
use crate::analysis::{Access, Collectives, Edges, Storages, Touch};
use crate::graph::{DimsId, Dtype, Graph, NodeId, Op, Str, Value};
use crate::ops::{Collective, Kind, OpInfo, Ops};
use fixedbitset::FixedBitSet;

/// Which graph of an outcome it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The only one.
    Whole,
    /// The forward graph of a partition.
    Forward {
        /// How many of its outputs are the program's; the others are saved for backward.
        outputs: usize,
    },
    /// The backward graph of a partition.
    Backward,
}

/// The memory of a graph, where a call that its record contradicts is opaque: a view may read.
fn storages(graph: &Graph, ops: &Ops, edges: &Edges, collectives: &Collectives) -> Storages {
    let Some(graph) = with_opaque_calls(graph, ops, &contradicted(graph)) else {
        return Storages::new(graph, ops, edges, collectives, Mode::Physical);
    };
    let ops = Ops::of(&graph);
    Storages::new(&graph, &ops, edges, &Collectives::new(&graph, &ops), Mode::Physical)
}

/// What is recorded of a tensor, as far as another one can stand in for it.
type Record = (DimsId, DimsId, Dtype, Str);

/// One graph of a right outcome, with what follows from its structure.
pub struct Reading<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Which one of the outcome.
    pub part: Part,
    /// Whether other ranks have graphs of their own, which are not edited.
    pub alone: bool,
    /// Its operators.
    pub ops: Ops,
    /// Its edges.
    pub edges: Edges,
    /// Its communication.
    pub collectives: Collectives<'a>,
    /// Its memory.
    pub storages: Storages,
    /// For each node its twin before the pass: of the same name, operator and record.
    pub(super) twins: Vec<Option<NodeId>>,
    /// What values depend on among the inputs before the pass.
    pub(super) sources: Sources,
    /// What they depend on among the graph's own inputs.
    pub(super) own: Sources,
    live: Vec<bool>,
    alike: Vec<bool>,
}

impl<'a> Reading<'a> {
    /// Looks at a graph that came of `before`; `alone` if other ranks have theirs and keep it.
    pub fn new(before: &Graph, graph: &'a Graph, part: Part, alone: bool) -> Reading<'a> {
        let (ops, edges) = (Ops::of(graph), Edges::new(graph));
        let collectives = Collectives::new(graph, &ops);
        let storages = storages(graph, &ops, &edges, &collectives);
        // What a list means that is not in order, its repair says: then the outcome stands for both.
        let before = if is_in_order(before) { before } else { graph };
        let old = Old::new(before);
        let twins: Vec<Option<NodeId>> = graph.ids().map(|id| twin(before, graph, id)).collect();
        let values = values(before, graph, &twins, part);
        let known = |id: NodeId| values[id.index()].map(|value| old.sources.of(value));
        let sources = Sources::new(graph, &ops, &storages, old.count, &known);
        let own = own(graph, &ops, &storages);
        let alike = alike(graph, &ops, &storages, &|id| twins[id.index()].is_none());
        let mut reading = Reading {
            graph,
            part,
            alone,
            ops,
            edges,
            collectives,
            storages,
            twins,
            sources,
            own,
            live: Vec::new(),
            alike,
        };
        reading.live =
            live(graph, &reading.ops, &reading.storages, &|id| reading.twins[id.index()].is_none());
        // What was dead before the pass is dead after it, even if a bucket joined it with something that is not; and so
        // is what only hands on such values, or stands for readers of them that are gone and were dead.
        let mut is_gone = vec![true; before.len()];
        reading.twins.iter().flatten().for_each(|twin| is_gone[twin.index()] = false);
        let was_read = |operand: NodeId| {
            let readers = values[operand.index()].map_or(&[][..], |value| old.edges.users(value));
            readers.iter().filter(|reader| is_gone[reader.index()]).all(|reader| old.live[reader.index()])
        };
        let mut live = reading.live.clone();
        for id in graph.ids() {
            let is_live = |operand: &NodeId| live[operand.index()] && was_read(*operand);
            let stays = match (reading.twins[id.index()], made(graph, &reading.ops, id)) {
                (Some(twin), _) => old.live[twin.index()],
                (None, Made::OfAll(operands)) => operands.iter().all(is_live),
                (None, Made::Joined(operands)) => operands.is_empty() || operands.iter().any(is_live),
                (None, _) => true,
            };
            live[id.index()] &= stays;
        }
        // And so is what only such nodes read.
        for id in graph.ids().rev().filter(|&id| reading.twins[id.index()].is_none()) {
            let users = reading.edges.users(id);
            let is_read = |user: &NodeId| live[user.index()] || graph.node(*user).op == Op::Output;
            live[id.index()] &= users.is_empty() || users.iter().any(is_read);
        }
        reading.live = live;
        reading
    }

    /// Whether a change of the node's value is seen from outside: it reaches an output or memory of the caller
    /// through operators that depend on it.
    pub fn is_live(&self, id: NodeId) -> bool {
        self.live[id.index()]
    }

    /// Whether a value may be the same on all ranks.
    pub(super) fn is_alike(&self, id: NodeId) -> bool {
        self.alike[id.index()]
    }

    /// The operator of a call.
    pub fn call(&self, id: NodeId) -> Option<&OpInfo> {
        self.ops.call(self.graph, id)
    }

    /// The calls, in list order.
    pub fn calls(&self) -> impl Iterator<Item = (NodeId, &OpInfo)> {
        self.graph.ids().filter_map(|id| Some((id, self.call(id)?)))
    }

    /// Whether a call only computes: it draws nothing, writes nothing, sends nothing, and has no effect. A call that its
    /// record contradicts is opaque: what it computes is not known.
    pub fn is_pure(&self, id: NodeId) -> bool {
        contradiction(self.graph, &self.ops, id).is_none()
            && self.call(id).is_some_and(|info| {
                !info.effect
                    && info.collective().is_none()
                    && info.kind != Kind::Wait
                    && info.kind != Kind::Unknown
                    && !self.ops.draws(self.graph, id)
                    && info.written(self.graph, id).next().is_none()
            })
    }

    /// Whether a call makes a new tensor from the elements of its operands, and only that.
    pub fn is_arithmetic(&self, id: NodeId) -> bool {
        self.is_pure(id)
            && self.call(id).is_some_and(|info| {
                !info.is_view()
                    && (info.kind.is_elementwise() || matches!(info.kind, Kind::Matmul(_) | Kind::Reduce(_)))
            })
    }

    /// Whether the memory that a node shows is written by nobody, and no collective is still to fill it.
    pub fn is_settled(&self, id: NodeId) -> bool {
        !self.storages.shows_written(id) && self.collectives.launch_of_value(id).is_none()
    }

    /// What must be equal for one tensor to stand in for another. Empty tensors stand in for none.
    pub(super) fn record(&self, id: NodeId) -> Option<Record> {
        let tensor = self.graph.tensor_of(id)?;
        (self.graph.numel(tensor)? > 0).then_some((tensor.shape, tensor.stride, tensor.dtype, tensor.device))
    }

    /// The operands that the value of a call depends on.
    pub(super) fn operands(&self, id: NodeId) -> Vec<NodeId> {
        match made(self.graph, &self.ops, id) {
            Made::OfAll(operands) => operands,
            _ => Vec::new(),
        }
    }

    /// The node behind `id` that has the same elements and of which more is known: through the only readers in a row
    /// that the pass made.
    pub(super) fn handed_on(&self, id: NodeId) -> NodeId {
        let mut at = id;
        while self.sources.certain(at).is_clear() && self.twins[at.index()].is_none() {
            match *self.edges.users(at) {
                [reader] if reader > at && self.operands(reader) == [at] => at = reader,
                _ => break,
            }
        }
        at
    }

    /// Known sizes of a tensor.
    pub(super) fn sizes(&self, id: NodeId) -> Option<Vec<i64>> {
        self.graph.sizes(self.graph.tensor_of(id)?.shape)
    }

    /// Whether the elements of a value are different from one another: it comes from an input or a product by moves and
    /// communication that repeat nothing. What is sent twice may be the same on all ranks when it is sent again.
    pub(super) fn is_varied(&self, id: NodeId) -> bool {
        use crate::ops::Move;
        let (mut at, mut is_sent) = (id, false);
        loop {
            if self.graph.node(at).op == Op::Placeholder {
                return true;
            }
            let Some(info) = self.call(at) else { return false };
            match info.kind {
                Kind::Matmul(_) => return !is_sent,
                Kind::View(view) if view.repeats() => return false,
                Kind::View(_) | Kind::Cast | Kind::Move(Move::Clone) | Kind::GetItem | Kind::Wait => {}
                // Not where several tensors are sent together: they may be equal.
                Kind::Collective(
                    Collective::AllGather | Collective::ReduceScatter | Collective::AllReduce,
                ) if self.graph.inputs(at).len() == 1 && !is_sent => is_sent = true,
                _ => return false,
            }
            match self.graph.inputs(at).first() {
                Some(&input) if input < at => at = input,
                _ => return false,
            }
        }
    }

    /// The elements of the tuple that the graph returns.
    pub fn outputs(&self) -> Vec<Value> {
        let Some(output) = self.graph.output() else { return Vec::new() };
        match self.graph.args(output) {
            [Value::List(span)] => self.graph.values(*span).to_vec(),
            args => args.to_vec(),
        }
    }
}

/// Whether every node comes after what it refers to.
fn is_in_order(graph: &Graph) -> bool {
    graph.ids().all(|id| {
        let mut in_order = true;
        graph.for_each_input(id, &mut |input: NodeId| in_order &= input < id);
        in_order
    })
}

/// What is known about the graph before the pass.
struct Old {
    edges: Edges,
    sources: Sources,
    live: Vec<bool>,
    count: usize,
}

impl Old {
    fn new(graph: &Graph) -> Old {
        let (ops, edges) = (Ops::of(graph), Edges::new(graph));
        let collectives = Collectives::new(graph, &ops);
        let storages = Storages::new(graph, &ops, &edges, &collectives, Mode::Physical);
        let (numbers, count) = inputs(graph);
        Old {
            sources: of_inputs(graph, &ops, &storages, &numbers, count),
            live: live(graph, &ops, &storages, &|_| false),
            edges,
            count,
        }
    }
}

fn own(graph: &Graph, ops: &Ops, storages: &Storages) -> Sources {
    let (numbers, count) = inputs(graph);
    of_inputs(graph, ops, storages, &numbers, count)
}

fn of_inputs(
    graph: &Graph,
    ops: &Ops,
    storages: &Storages,
    numbers: &[Option<usize>],
    count: usize,
) -> Sources {
    let known = |id: NodeId| {
        let number = numbers[id.index()]?;
        let mut set = FixedBitSet::with_capacity(count);
        set.insert(number);
        Some((set.clone(), set))
    };
    Sources::new(graph, ops, storages, count, &known)
}

/// The node of the same name before the pass, where it is the same call with the same result.
fn twin(before: &Graph, graph: &Graph, id: NodeId) -> Option<NodeId> {
    let twin = before.find(graph.name(id))?;
    let (node, old) = (graph.node(id), before.node(twin));
    let same_call = node.op == old.op && graph.target(id) == before.target(twin);
    // Backward takes saved values as inputs, under their names.
    let is_saved = node.op == Op::Placeholder && old.op == Op::Call;
    let is_input = node.op == Op::Placeholder && old.op == Op::Placeholder;
    ((same_call || is_saved || is_input) && same_record(before, twin, graph, id)).then_some(twin)
}

/// Whether two nodes return a tensor of the same size and dtype, or none.
fn same_record(before: &Graph, twin: NodeId, graph: &Graph, id: NodeId) -> bool {
    match (before.tensor_of(twin), graph.tensor_of(id)) {
        (Some(old), Some(now)) => old.dtype == now.dtype && before.sizes(old.shape) == graph.sizes(now.shape),
        (None, None) => true,
        _ => false,
    }
}

/// The node before the pass whose value each node has: its twin, or what a twin's reader read in its place.
fn values(before: &Graph, graph: &Graph, twins: &[Option<NodeId>], part: Part) -> Vec<Option<NodeId>> {
    let mut values = twins.to_vec();
    let inputs =
        |graph: &Graph| graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder).collect::<Vec<_>>();
    // Inputs are bound by position, whatever their names; those of backward are what forward hands over.
    for (now, old) in inputs(graph).into_iter().zip(inputs(before)).filter(|_| part != Part::Backward) {
        values[now.index()] = Some(old);
    }
    for id in graph.ids() {
        let Some(twin) = twins[id.index()].filter(|_| graph.node(id).op == Op::Call) else { continue };
        for (now, old) in read_in_place(before, twin, graph, id) {
            values[now.index()].get_or_insert(old);
        }
    }
    if let (Some(now), Some(old)) = (graph.output(), before.output()) {
        for (now, old) in read_in_place(before, old, graph, now) {
            values[now.index()].get_or_insert(old);
        }
    }
    values
}

/// The references of a node, each with that of its twin at the same place; none where their numbers differ.
fn read_in_place(before: &Graph, twin: NodeId, graph: &Graph, id: NodeId) -> Vec<(NodeId, NodeId)> {
    let references = |graph: &Graph, id| {
        let mut list = Vec::new();
        graph.for_each_input(id, &mut |input| list.push(input));
        list
    };
    let (now, old) = (references(graph, id), references(before, twin));
    if now.len() != old.len() {
        return Vec::new();
    }
    now.into_iter().zip(old).collect()
}

/// The nodes whose value reaches an output, or memory that outlives the graph, through operators that depend on it. Of
/// a tensor that is joined with others and then seen in part, nothing is known, and neither of memory that is written;
/// except where the pass made the node: what a bucket carries was there before.
fn live(graph: &Graph, ops: &Ops, storages: &Storages, is_new: &dyn Fn(NodeId) -> bool) -> Vec<bool> {
    let mut live = vec![false; graph.len()];
    // Those of which every element is seen.
    let mut whole = vec![false; graph.len()];
    if let Some(output) = graph.output() {
        graph.for_each_input(output, &mut |returned: NodeId| {
            live[returned.index()] = true;
            whole[returned.index()] = true;
        });
    }
    for id in graph.ids().rev().filter(|&id| graph.node(id).op == Op::Call) {
        let at = id.index();
        let writes =
            storages.accesses_by(id).iter().filter(|access| access.touch.writes() && access.part.certain);
        for write in writes {
            let storage = write.part.storage;
            let external = storages.storage(storage).external;
            // Up to where something else is written in its place.
            let overwrites = |later: &&Access| {
                later.touch == Touch::Write && later.part.bytes.overlap(write.part.bytes) != Overlap::No
            };
            let over = storages.accesses_after(storage, id).find(overwrites).map(|later| later.node);
            let read = storages.accesses_after(storage, id).any(|later| {
                let is_read = !later.touch.writes() && live[later.node.index()] && later.part.certain;
                is_read && over.is_none_or(|over| later.node <= over)
            });
            live[at] |= external || read && is_new(id);
            whole[at] |= external;
        }
        // Nothing is seen of an empty tensor.
        live[at] &= graph.tensor_of(id).is_none_or(|tensor| graph.numel(tensor) != Some(0));
        if !live[at] {
            continue;
        }
        let joins = matches!(made(graph, ops, id), Made::Joined(_));
        if joins && !whole[at] && !is_new(id) {
            continue;
        }
        let whole_operands = whole[at] && !shows_part(graph, ops, id);
        for operand in made(graph, ops, id).operands() {
            if is_new(id) || is_new(operand) || !storages.shows_written(operand) {
                live[operand.index()] = true;
                whole[operand.index()] |= whole_operands;
            }
        }
    }
    live
}

/// For each node whether its value may be the same on all ranks: it does not certainly depend on an input. What was
/// communicated may be, and so may what is written, except where the pass made the node.
fn alike(graph: &Graph, ops: &Ops, storages: &Storages, is_new: &dyn Fn(NodeId) -> bool) -> Vec<bool> {
    let mut alike = vec![true; graph.len()];
    for id in graph.ids() {
        let is_empty = graph.tensor_of(id).is_some_and(|tensor| graph.numel(tensor) == Some(0));
        if is_empty || (storages.shows_written(id) && !is_new(id)) {
            continue;
        }
        if graph.node(id).op == Op::Placeholder {
            alike[id.index()] = false;
        }
        let Some(info) = ops.call(graph, id) else { continue };
        if info.collective().is_some() || info.kind == Kind::Wait {
            continue;
        }
        let operands = match made(graph, ops, id) {
            Made::Unknown if is_new(id) => graph.inputs(id),
            made => made.operands(),
        };
        alike[id.index()] =
            operands.iter().all(|operand| alike.get(operand.index()).is_none_or(|&alike| alike));
    }
    alike
}

/// Whether a call may show only some elements of its operand.
fn shows_part(graph: &Graph, ops: &Ops, id: NodeId) -> bool {
    use crate::ops::{Move, View};
    let Some(info) = ops.call(graph, id) else { return true };
    match info.kind {
        Kind::View(view) => !matches!(
            view,
            View::Sizes
                | View::Permute
                | View::Transpose
                | View::T
                | View::Unsqueeze
                | View::Squeeze
                | View::Expand
                | View::Alias
        ),
        Kind::GetItem => true,
        Kind::Move(which) => {
            matches!(
                which,
                Move::Index | Move::IndexSelect | Move::Gather | Move::Embedding | Move::SplitWithSizesCopy
            )
        }
        _ => false,
    }
}
