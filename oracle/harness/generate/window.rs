//! Windows of real graphs: some consecutive nodes, cut out so that they stand alone.
//!
//! What the window takes from before it becomes a graph input; what is used after it becomes an output, unless it is
//! memory that nothing in the window writes. A collective that starts inside is waited for inside: waits that stand
//! behind the window come along. A wait whose collective starts before the window becomes an input. Bodies of
//! higher-order operators come along as they are.
//!
//! Inputs stand for values that may have shared storage in the whole graph; in the window each is a storage of its own.

use crate::analysis::{Collectives, Edges};
use crate::graph::{
    Dim, DimsId, Expr, ExprId, Graph, Node, NodeId, Op, OrderingEdge, Out, Span, Str, Tags, Tensor, Value,
    World,
};
use crate::ops::{Fill, Kind, Ops};
use rustc_hash::FxHashSet;

/// The nodes `start..start + length` of `graph` as a graph of their own. `None` where no call is among them.
pub fn window(graph: &Graph, start: usize, length: usize) -> Option<Graph> {
    let ops = Ops::of(graph);
    let (edges, collectives) = (Edges::new(graph), Collectives::new(graph, &ops));
    let end = start.saturating_add(length).min(graph.len());
    let mut inside = vec![false; graph.len()];
    for id in graph.ids().take(end).skip(start) {
        inside[id.index()] = graph.node(id).op == Op::Call;
    }
    // A result of a tuple, or a wait, cannot stand without what it belongs to.
    for id in graph.ids().take(end).skip(start) {
        let belongs = ops.call(graph, id).is_some_and(|info| matches!(info.kind, Kind::GetItem | Kind::Wait));
        if belongs && edges.inputs(id).iter().any(|input| !inside[input.index()]) {
            inside[id.index()] = false;
        }
    }
    let mut list: Vec<NodeId> = graph.ids().filter(|id| inside[id.index()]).collect();
    if list.is_empty() {
        return None;
    }
    let mut at = 0;
    while at < list.len() {
        let id = list[at];
        at += 1;
        if collectives.launch_of_value(id).is_none() {
            continue;
        }
        for &user in edges.users(id) {
            let completes =
                ops.call(graph, user).is_some_and(|info| matches!(info.kind, Kind::GetItem | Kind::Wait));
            let whole = edges.inputs(user).iter().all(|input| inside[input.index()]);
            if completes && whole && !inside[user.index()] {
                inside[user.index()] = true;
                list.push(user);
            }
        }
    }
    let mut cut = Cut::new(graph);
    let taken = list.iter().flat_map(|&id| edges.inputs(id)).filter(|input| !inside[input.index()]);
    let (constants, inputs): (Vec<NodeId>, Vec<NodeId>) =
        taken.partition(|input| graph.node(**input).op == Op::GetAttr);
    inputs.into_iter().chain(constants).try_for_each(|input| cut.input(input))?;
    for &id in &list {
        cut.call(id);
    }
    let blank = blank(graph, &ops, &edges, &list);
    let outputs: Vec<NodeId> = list
        .iter()
        .copied()
        .filter(|&id| {
            matches!(graph.node(id).out, Out::Tensor(_)) && collectives.launch_of_value(id).is_none()
        })
        .filter(|&id| {
            let users = edges.users(id);
            !blank[id.index()] && (users.is_empty() || users.iter().any(|user| !inside[user.index()]))
        })
        .collect();
    Some(cut.finish(&outputs))
}

/// New memory, and views of it, that nothing in the window writes.
fn blank(graph: &Graph, ops: &Ops, edges: &Edges, window: &[NodeId]) -> Vec<bool> {
    let mut root: Vec<Option<NodeId>> = vec![None; graph.len()];
    let mut written = vec![false; graph.len()];
    for &id in window {
        let Some(info) = ops.call(graph, id) else { continue };
        let inputs = edges.inputs(id);
        if info.kind == Kind::Fill(Fill::Empty) {
            root[id.index()] = Some(id);
        } else if info.is_view() || info.kind == Kind::GetItem {
            root[id.index()] = inputs.first().and_then(|base| root[base.index()]);
        } else if info.writes() {
            inputs
                .iter()
                .filter_map(|input| root[input.index()])
                .for_each(|root| written[root.index()] = true);
        }
    }
    root.into_iter().map(|root| root.is_some_and(|root| !written[root.index()])).collect()
}

/// A graph in the making out of nodes of another.
pub(super) struct Cut<'a> {
    from: &'a Graph,
    into: Graph,
    /// New ids by old ones.
    ids: Vec<Option<NodeId>>,
}

impl<'a> Cut<'a> {
    pub(super) fn new(from: &'a Graph) -> Cut<'a> {
        let mut into = Graph::new(from.name.clone());
        into.subgraphs.clone_from(&from.subgraphs);
        into.kind.clone_from(&from.kind);
        into.world = explicit(&from.world);
        into.symbols.clone_from(&from.symbols);
        into.facts.clone_from(&from.facts);
        Cut { from, into, ids: vec![None; from.len()] }
    }

    /// Makes an input of a node outside, or takes over a constant. `None` for a value that no input can have.
    pub(super) fn input(&mut self, id: NodeId) -> Option<()> {
        if self.ids[id.index()].is_some() {
            return Some(());
        }
        let node = *self.from.node(id);
        if node.op == Op::GetAttr {
            self.call(id);
            return Some(());
        }
        if !matches!(node.out, Out::Tensor(_) | Out::SymInt(_) | Out::Int(_) | Out::SymBool(_)) {
            return None;
        }
        let name = self.from.name(id);
        let new = self.into.push(name, Op::Placeholder, name);
        let out = self.out(node.out);
        self.into.node_mut(new).out = out;
        self.ids[id.index()] = Some(new);
        Some(())
    }

    pub(super) fn call(&mut self, id: NodeId) {
        let node = *self.from.node(id);
        let new = self.into.push(self.from.name(id), node.op, self.from.target(id));
        let (args, kwargs) = (self.span(node.args), self.span(node.kwargs));
        let out = self.out(node.out);
        let tags = self.from.tags(id).cloned();
        let tags = tags.and_then(|tags| {
            let tags = self.tags(tags);
            self.into.intern_tags(tags)
        });
        let (stack, module) = (self.text(node.stack), self.text(node.module));
        let made = self.into.node_mut(new);
        *made = Node { args, kwargs, out, tags, stack, module, ..*made };
        self.ids[id.index()] = Some(new);
    }

    fn text(&mut self, text: Option<Str>) -> Option<Str> {
        text.map(|text| self.into.intern(self.from.text(text)))
    }

    fn string(&mut self, text: Str) -> Str {
        self.into.intern(self.from.text(text))
    }

    fn tags(&mut self, tags: Tags) -> Tags {
        Tags {
            recompute: self.text(tags.recompute),
            partitioner_tag: self.text(tags.partitioner_tag),
            custom: self.text(tags.custom),
            extra: self.text(tags.extra),
            ..tags
        }
    }

    fn span(&mut self, span: Span) -> Span {
        let values: Vec<Value> = self.from.values(span).iter().map(|&value| self.value(value)).collect();
        self.into.push_values(&values)
    }

    fn value(&mut self, value: Value) -> Value {
        match value {
            Value::Node(id) => match self.ids[id.index()] {
                Some(id) => Value::Node(id),
                None => Value::Dangling(self.into.intern(self.from.name(id))),
            },
            Value::Str(text) => Value::Str(self.string(text)),
            Value::Dangling(text) => Value::Dangling(self.string(text)),
            Value::Device(text) => Value::Device(self.string(text)),
            Value::MemoryFormat(text) => Value::MemoryFormat(self.string(text)),
            Value::Layout(text) => Value::Layout(self.string(text)),
            Value::Function(text) => Value::Function(self.string(text)),
            Value::List(span) => Value::List(self.span(span)),
            Value::Slice(span) => Value::Slice(self.span(span)),
            Value::Dict(span) => Value::Dict(self.span(span)),
            Value::Complex(span) => Value::Complex(self.span(span)),
            Value::Symbolic(id) => Value::Symbolic(self.expr(id)),
            other => other,
        }
    }

    fn expr(&mut self, id: ExprId) -> ExprId {
        let expr = self.from.expr(id);
        let text = self.string(expr.text);
        self.into.intern_expr(Expr { text, ..expr })
    }

    fn dims(&mut self, dims: &[Dim]) -> DimsId {
        let dims: Vec<Dim> = dims
            .iter()
            .map(|&dim| match dim {
                Dim::Symbolic(id) => Dim::Symbolic(self.expr(id)),
                known => known,
            })
            .collect();
        self.into.intern_dims(&dims)
    }

    fn out(&mut self, out: Out) -> Out {
        match out {
            Out::Tensor(id) => {
                let old = *self.from.tensor(id);
                let (shape, stride) =
                    (self.dims(self.from.dims(old.shape)), self.dims(self.from.dims(old.stride)));
                let device = self.string(old.device);
                let new = Tensor { shape, stride, device, storage: None, storage_bytes: None, ..old };
                Out::Tensor(self.into.push_tensor(new))
            }
            Out::SymInt(id) => Out::SymInt(self.expr(id)),
            Out::SymBool(id) => Out::SymBool(self.expr(id)),
            Out::Other(text) => Out::Other(self.string(text)),
            Out::Key(text) => Out::Key(self.string(text)),
            Out::Tuple(span) => Out::Tuple(self.outs(span)),
            Out::Dict(span) => Out::Dict(self.outs(span)),
            other => other,
        }
    }

    fn outs(&mut self, span: Span) -> Span {
        let outs: Vec<Out> = self.from.outs(span).iter().map(|&out| self.out(out)).collect();
        self.into.push_outs(&outs)
    }

    pub(super) fn finish(mut self, outputs: &[NodeId]) -> Graph {
        let values: Vec<Value> = outputs.iter().map(|&id| self.value(Value::Node(id))).collect();
        let list = self.into.list(&values);
        let output = self.into.push("output", Op::Output, "output");
        self.into.node_mut(output).args = self.into.push_values(&[list]);
        let constants = self.into.ids().filter(|&id| self.into.node(id).op == Op::GetAttr);
        let used: FxHashSet<String> = constants.map(|id| self.into.target(id).to_string()).collect();
        self.into.subgraphs.retain(|(name, _)| used.contains(name));
        for edge in &self.from.ordering {
            // What is given is there before anything runs.
            if let (Some(before), Some(after)) = (self.ids[edge.before.index()], self.ids[edge.after.index()])
                && self.into.node(after).op != Op::Placeholder
            {
                self.into.ordering.push(OrderingEdge { before, after });
            }
        }
        self.into
    }
}

/// The world with rank lists, or as recorded where there would be too many ranks.
fn explicit(world: &World) -> World {
    world.assume_mesh().unwrap_or_else(|| world.clone())
}
