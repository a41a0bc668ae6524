//! The graph: data only.
//!
//! One representation serves both levels. An FX-like graph is a list of nodes with argument values, output
//! metadata and tags. A scheduler graph is the same list with ordering edges, renames (a mutation gives a
//! buffer a new name) and clusters (grouped nodes).
//!
//! # The idea
//!
//! *List order is meaning.* A node's id is its position in the list; an interpreter executes in that order. A
//! pass may leave the list unsorted until it is repaired, so a graph can hold a reference to a later node, to
//! its own node, or to a name that does not exist: these are faults that
//! [`validate`](crate::analysis::validate) reports, not states that cannot be written down.
//!
//! Nodes are small and fixed in size. Everything of variable length lives in arenas of the graph: strings,
//! argument values, shapes. A graph is changed through an [`Editor`], which keeps ids stable while nodes are
//! inserted, moved and erased, and gives back a compact graph.
//!
//! # What it does not do
//!
//! It knows nothing of operators (see [`ops`](crate::ops)) and derives nothing (see
//! [`analysis`](crate::analysis)): no edges, no storages, no reachability.

mod append;
mod bodies;
mod compare;
mod edit;
pub mod layout;
mod sized;
mod span;
mod strings;
mod tensor;
mod transcribe;
mod unknown;
mod value;
mod world;

pub use bodies::Bodies;
pub use edit::Editor;
pub use layout::contiguous_strides;
pub use span::Span;
pub use strings::{Str, Strings};
pub use tensor::{Dim, DimsId, Dtype, DtypeClass, Expr, ExprId, Out, StorageId, Tensor, TensorId};
pub use transcribe::Transcriber;
pub use unknown::Holder;
pub use value::{NodeId, Value};
pub use world::{Group, MOST_RANKS, Places, World, WorldFault};

use crate::limits::Limit;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::num::NonZeroU32;
use std::sync::Arc;

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// A graph input.
    Placeholder,
    /// A call of an operator.
    Call,
    /// An attribute of the module (a constant, or the body of a higher-order operator).
    GetAttr,
    /// The graph's output.
    Output,
}

impl Op {
    /// FX's name.
    pub fn name(self) -> &'static str {
        match self {
            Op::Placeholder => "placeholder",
            Op::Call => "call_function",
            Op::GetAttr => "get_attr",
            Op::Output => "output",
        }
    }
}

/// One of a graph's distinct targets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TargetId(pub u32);

/// A node. Its variable parts are spans of the graph's arenas.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Node {
    /// Unique name.
    pub name: Str,
    /// What it is.
    pub op: Op,
    /// What it calls.
    pub target: TargetId,
    /// Positional arguments, in the value arena.
    pub args: Span,
    /// Keyword arguments, in the value arena: a `Value::Str` key and its value alternate.
    pub kwargs: Span,
    /// What it returns.
    pub out: Out,
    /// Its tags, if it has any: an index for [`Graph::tags`].
    pub tags: Option<TagsId>,
    /// Where it comes from in the user's program.
    pub stack: Option<Str>,
    /// Innermost module path.
    pub module: Option<Str>,
    /// Descriptor of a graph input.
    pub desc: Option<Str>,
    /// Fields of a file that this version does not know: a JSON object, kept as text.
    pub extra: Option<Str>,
}

impl Node {
    /// Without arguments, tags or result.
    pub fn new(name: Str, op: Op, target: TargetId) -> Node {
        Node {
            name,
            op,
            target,
            args: Span::EMPTY,
            kwargs: Span::EMPTY,
            out: Out::Absent,
            tags: None,
            stack: None,
            module: None,
            desc: None,
            extra: None,
        }
    }
}

/// An entry of a graph's table of tag sets. Counted from 1, so that an absent one takes no room.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TagsId(NonZeroU32);

/// The tags of a node, as `node.meta` holds them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tags {
    /// `recompute`: `MUST_SAVE`, `PREFER_RECOMPUTE`, ...
    pub recompute: Option<Str>,
    /// `partitioner_tag`: `is_forward`, `is_backward`, ...
    pub partitioner_tag: Option<Str>,
    /// `custom`: JSON text.
    pub custom: Option<Str>,
    /// Further tags: a JSON object, kept as text.
    pub extra: Option<Str>,
    /// `ac_graph_id`.
    pub ac_graph_id: Option<i64>,
    /// `seq_nr`.
    pub seq_nr: Option<i64>,
    /// `autograd_backward`.
    pub autograd_backward: Option<bool>,
    /// `is_gradient_acc`.
    pub is_gradient_acc: Option<bool>,
}

/// A symbol that expressions may use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// Its name, for example `u0`.
    pub name: String,
    /// The value it had when traced.
    pub hint: Option<i64>,
    /// Lower and upper bound, as text (`int_oo` is infinity).
    pub range: (String, String),
    /// Whether it stands for data rather than for a size known at trace time.
    pub unbacked: bool,
}

/// A bound of a symbol as PyTorch prints it; infinities lie beyond all numbers of 64 bits. `None` for anything else.
pub fn bound_of(text: &str) -> Option<i128> {
    match text {
        "oo" | "int_oo" => Some(i128::MAX),
        "-oo" | "-int_oo" => Some(i128::MIN),
        number => number.parse().ok(),
    }
}

/// An edge that orders two nodes without passing a value: it does not keep storage alive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct OrderingEdge {
    /// Must run first.
    pub before: NodeId,
    /// Must run later.
    pub after: NodeId,
}

/// A new name for a buffer that was mutated (scheduler level).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rename {
    /// The node that mutates, and so introduces the new name.
    pub by: NodeId,
    /// The node whose buffer it renames.
    pub of: NodeId,
}

/// Nodes that a pass treats as one: contiguous in the list, in a valid schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Its nodes.
    pub members: Vec<NodeId>,
}

/// A graph with the world it runs in.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Name of the graph.
    pub name: String,
    /// `forward`, `backward`, `joint`, `inference`, `train_step`, or empty.
    pub kind: String,
    /// Ranks and process groups.
    pub world: World,
    /// Symbols of symbolic sizes.
    pub symbols: Vec<Symbol>,
    /// What holds of the symbols wherever the graph runs: comparisons such as `Eq(s0, 2*s1)`.
    pub guards: Vec<String>,
    /// Edges that order only.
    pub ordering: Vec<OrderingEdge>,
    /// Renames of mutated buffers.
    pub renames: Vec<Rename>,
    /// Grouped nodes.
    pub clusters: Vec<Cluster>,
    /// The bodies of higher-order operators, by the attribute of the module that holds each. An attribute that is not
    /// here has a body that nobody recorded.
    pub subgraphs: Bodies,
    /// Schema facts that a file states about its targets: JSON text by target name.
    pub facts: Vec<(String, String)>,
    /// Top-level fields of a file that the passes do not read: JSON text by key.
    pub extra: Vec<(String, String)>,

    nodes: Vec<Node>,
    strings: Strings,
    targets: Vec<Str>,
    target_of: Vec<Option<TargetId>>,
    values: Vec<Value>,
    outs: Vec<Out>,
    tensors: Vec<Tensor>,
    dims: IndexSet<Box<[Dim]>, FxBuildHasher>,
    exprs: IndexSet<Expr, FxBuildHasher>,
    tags: IndexSet<Tags, FxBuildHasher>,
    by_name: Vec<Option<NodeId>>,
    unknown: FxHashMap<Holder, Str>,
}

/// Appending.
impl Graph {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> Graph {
        Graph { name: name.into(), ..Graph::default() }
    }

    /// An empty graph with room for `nodes` nodes.
    pub fn with_capacity(nodes: usize) -> Graph {
        Graph {
            nodes: Vec::with_capacity(nodes),
            values: Vec::with_capacity(4 * nodes),
            tensors: Vec::with_capacity(nodes),
            strings: Strings::with_capacity(2 * nodes),
            ..Graph::default()
        }
    }

    /// The id of a string.
    pub fn intern(&mut self, text: &str) -> Str {
        self.strings.intern(text)
    }

    /// The id of a target.
    pub fn intern_target(&mut self, target: &str) -> TargetId {
        let text = self.strings.intern(target);
        self.target_named(text)
    }

    /// The id of the target with this text.
    pub fn target_named(&mut self, text: Str) -> TargetId {
        if self.target_of.len() <= text.index() {
            self.target_of.resize(text.index() + 1, None);
        }
        *self.target_of[text.index()].get_or_insert_with(|| {
            self.targets.push(text);
            TargetId(self.targets.len() as u32 - 1)
        })
    }

    /// Stores a list of argument values.
    pub fn push_values(&mut self, values: &[Value]) -> Span {
        let start = self.values.len();
        self.values.extend_from_slice(values);
        Span::of(start..self.values.len())
    }

    /// Stores a list as one value.
    pub fn list(&mut self, values: &[Value]) -> Value {
        Value::List(self.push_values(values))
    }

    /// A list of integers as one value.
    pub fn int_list(&mut self, ints: &[i64]) -> Value {
        let start = self.values.len();
        self.values.extend(ints.iter().map(|&n| Value::Int(n)));
        Value::List(Span::of(start..self.values.len()))
    }

    /// Stores the parts of a tuple or mapping.
    pub fn push_outs(&mut self, outs: &[Out]) -> Span {
        let start = self.outs.len();
        self.outs.extend_from_slice(outs);
        Span::of(start..self.outs.len())
    }

    /// The id of a list of sizes or strides.
    pub fn intern_dims(&mut self, dims: &[Dim]) -> DimsId {
        if let Some(i) = self.dims.get_index_of(dims) {
            return DimsId(i as u32);
        }
        DimsId(self.dims.insert_full(dims.into()).0 as u32)
    }

    /// The id of a list of known sizes or strides.
    pub fn intern_sizes(&mut self, sizes: &[i64]) -> DimsId {
        let dims: Vec<Dim> = sizes.iter().map(|&n| Dim::Static(n)).collect();
        self.intern_dims(&dims)
    }

    /// The id of a symbolic expression.
    pub fn intern_expr(&mut self, expr: Expr) -> ExprId {
        ExprId(self.exprs.insert_full(expr).0 as u32)
    }

    /// The id of a set of tags; `None` for the empty set.
    pub fn intern_tags(&mut self, tags: Tags) -> Option<TagsId> {
        if tags == Tags::default() {
            return None;
        }
        NonZeroU32::new(self.tags.insert_full(tags).0 as u32 + 1).map(TagsId)
    }

    /// Stores a tensor.
    pub fn push_tensor(&mut self, tensor: Tensor) -> TensorId {
        self.tensors.push(tensor);
        TensorId(self.tensors.len() as u32 - 1)
    }

    /// How many tensors have been stored.
    pub fn tensor_count(&self) -> usize {
        self.tensors.len()
    }

    /// A contiguous tensor of known sizes with its own storage, as one output.
    pub fn contiguous(&mut self, sizes: &[i64], dtype: Dtype, device: Str) -> Out {
        let shape = self.intern_sizes(sizes);
        let stride = self.intern_sizes(&contiguous_strides(sizes));
        let tensor = Tensor {
            shape,
            stride,
            dtype,
            requires_grad: None,
            device,
            storage: None,
            offset: 0,
            storage_bytes: None,
            is_guessed: false,
        };
        Out::Tensor(self.push_tensor(tensor))
    }

    /// Appends a node without arguments, tags or result; fill these in through the returned node.
    pub fn push(&mut self, name: &str, op: Op, target: &str) -> NodeId {
        let name = self.strings.intern(name);
        let target = self.intern_target(target);
        self.push_node(Node::new(name, op, target))
    }

    /// Appends a node. If its name is taken, the earlier node keeps the name's references.
    pub fn push_node(&mut self, node: Node) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        let slot = node.name.index();
        if self.by_name.len() <= slot {
            self.by_name.resize(slot + 1, None);
        }
        self.by_name[slot].get_or_insert(id);
        id
    }

    /// Turns every dangling reference whose name some node has into a reference to that node. A reader that
    /// meets names before their nodes calls this once at the end.
    pub fn resolve_references(&mut self) {
        for value in &mut self.values {
            if let Value::Dangling(name) = *value
                && let Some(&Some(node)) = self.by_name.get(name.index())
            {
                *value = Value::Node(node);
            }
        }
    }
}

/// Renumbering.
impl Graph {
    /// Replaces every reference to a node, in arguments, ordering edges, renames and clusters. A builder that
    /// numbers nodes before it knows their positions calls this once at the end.
    pub fn map_references(&mut self, mut position: impl FnMut(NodeId) -> NodeId) {
        for value in &mut self.values {
            if let Value::Node(node) = value {
                *node = position(*node);
            }
        }
        for edge in &mut self.ordering {
            *edge = OrderingEdge { before: position(edge.before), after: position(edge.after) };
        }
        for rename in &mut self.renames {
            *rename = Rename { by: position(rename.by), of: position(rename.of) };
        }
        for member in self.clusters.iter_mut().flat_map(|cluster| &mut cluster.members) {
            *member = position(*member);
        }
    }
}

/// Reading.
impl Graph {
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All node ids, in list order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// All nodes, in list order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// A node, to be changed in place. Its name must stay.
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    /// The name of a node.
    pub fn name(&self, id: NodeId) -> &str {
        self.strings.text(self.nodes[id.index()].name)
    }

    /// The target of a node.
    pub fn target(&self, id: NodeId) -> &str {
        self.target_text(self.nodes[id.index()].target)
    }

    /// The text of a target.
    pub fn target_text(&self, target: TargetId) -> &str {
        self.strings.text(self.targets[target.0 as usize])
    }

    /// The id of a target, if the graph knows it.
    pub fn find_target(&self, target: &str) -> Option<TargetId> {
        self.target_of.get(self.strings.find(target)?.index()).copied().flatten()
    }

    /// All distinct targets, placeholders' and the output's included; a [`TargetId`] is the position here.
    pub fn targets(&self) -> impl ExactSizeIterator<Item = &str> {
        self.targets_from(0)
    }

    /// The targets but for so many of the first.
    pub fn targets_from(&self, first: usize) -> impl ExactSizeIterator<Item = &str> {
        self.targets.get(first..).unwrap_or(&[]).iter().map(|&t| self.strings.text(t))
    }

    /// The first node with this name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.named(self.strings.find(name)?)
    }

    /// The first node whose name is this string.
    pub fn named(&self, name: Str) -> Option<NodeId> {
        self.by_name.get(name.index()).copied().flatten()
    }

    /// A string.
    pub fn text(&self, id: Str) -> &str {
        self.strings.text(id)
    }

    /// The string table.
    pub fn strings(&self) -> &Strings {
        &self.strings
    }

    /// The positional arguments of a node.
    pub fn args(&self, id: NodeId) -> &[Value] {
        &self.values[self.nodes[id.index()].args.range()]
    }

    /// One positional argument of a node.
    pub fn arg(&self, id: NodeId, index: usize) -> Option<Value> {
        self.args(id).get(index).copied()
    }

    /// What two graphs with the same inputs call one input or one constant; `None` for anything else.
    pub fn given_name(&self, id: NodeId) -> Option<String> {
        match self.node(id).op {
            Op::Placeholder => {
                let inputs = self.ids().take_while(|&input| input < id);
                let place = inputs.filter(|&input| self.node(input).op == Op::Placeholder).count();
                Some(format!("input {place}"))
            }
            Op::GetAttr => Some(format!("attribute {}", self.target(id))),
            Op::Call | Op::Output => None,
        }
    }

    /// The keyword arguments of a node, in order.
    pub fn kwargs(&self, id: NodeId) -> impl ExactSizeIterator<Item = (&str, Value)> {
        self.values[self.nodes[id.index()].kwargs.range()].chunks_exact(2).map(|pair| match pair[0] {
            Value::Str(key) => (self.strings.text(key), pair[1]),
            _ => ("", pair[1]),
        })
    }

    /// One keyword argument of a node.
    pub fn kwarg(&self, id: NodeId, key: &str) -> Option<Value> {
        self.kwargs(id).find(|(k, _)| *k == key).map(|(_, v)| v)
    }

    /// The argument for a parameter, given by its position or by its name.
    pub fn argument(&self, id: NodeId, position: usize, name: &str) -> Option<Value> {
        self.arg(id, position).or_else(|| self.kwarg(id, name))
    }

    /// The elements of a list, tuple, mapping, slice or complex value.
    pub fn values(&self, span: Span) -> &[Value] {
        &self.values[span.range()]
    }

    /// The parts of a tuple or mapping.
    pub fn outs(&self, span: Span) -> &[Out] {
        &self.outs[span.range()]
    }

    /// A stored tensor.
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.0 as usize]
    }

    /// A stored tensor, to be changed in place.
    pub fn tensor_mut(&mut self, id: TensorId) -> &mut Tensor {
        &mut self.tensors[id.0 as usize]
    }

    /// The single tensor that a node returns, if that is what it returns.
    pub fn tensor_of(&self, id: NodeId) -> Option<&Tensor> {
        match self.nodes[id.index()].out {
            Out::Tensor(tensor) => Some(self.tensor(tensor)),
            _ => None,
        }
    }

    /// Whether nobody recorded the strides of what a node returns, or of a part of it, and no rule tells them.
    pub fn is_guessed(&self, id: NodeId) -> bool {
        let out = self.nodes.get(id.index()).map(|node| node.out);
        out.is_some_and(|out| self.tensors_of(out).into_iter().any(|tensor| self.tensor(tensor).is_guessed))
    }

    /// The shapes of the tensors that a node returns; `None` for those with a symbolic size.
    pub fn shapes_of(&self, id: NodeId) -> Vec<Option<Vec<i64>>> {
        let all = self.tensors_of(self.node(id).out);
        all.into_iter().map(|tensor| self.sizes(self.tensor(tensor).shape)).collect()
    }

    /// The tensors of a result, those of lists in it too, in order.
    pub fn tensors_of(&self, out: Out) -> Vec<TensorId> {
        match out {
            Out::Tensor(id) => vec![id],
            Out::Tuple(span) => self.outs(span).iter().flat_map(|&one| self.tensors_of(one)).collect(),
            _ => Vec::new(),
        }
    }

    /// The expressions that a result is recorded with: symbolic numbers, and sizes and strides of tensors.
    pub fn exprs_of(&self, out: Out) -> Vec<ExprId> {
        match out {
            Out::SymInt(expr) | Out::SymBool(expr) => vec![expr],
            Out::Tuple(span) | Out::Dict(span) => {
                self.outs(span).iter().flat_map(|&one| self.exprs_of(one)).collect()
            }
            Out::Tensor(id) => {
                let tensor = self.tensor(id);
                self.exprs_in(tensor.shape).chain(self.exprs_in(tensor.stride)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The sizes or strides that are symbolic.
    pub fn exprs_in(&self, dims: DimsId) -> impl Iterator<Item = ExprId> {
        self.dims(dims).iter().filter_map(|dim| match *dim {
            Dim::Symbolic(expr) => Some(expr),
            Dim::Static(_) => None,
        })
    }

    /// The first of a node and what it takes whose strides are [guessed](Self::is_guessed).
    pub fn guess_behind(&self, id: NodeId) -> Option<NodeId> {
        std::iter::once(id).chain(self.inputs(id)).find(|&node| self.is_guessed(node))
    }

    /// The `index`-th tensor of what a node returns (`None` in a tuple counts as a place).
    pub fn tensor_at(&self, id: NodeId, index: usize) -> Option<&Tensor> {
        match self.nodes[id.index()].out {
            Out::Tensor(tensor) if index == 0 => Some(self.tensor(tensor)),
            Out::Tuple(span) => match self.outs(span).get(index) {
                Some(&Out::Tensor(tensor)) => Some(self.tensor(tensor)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Sizes or strides.
    pub fn dims(&self, id: DimsId) -> &[Dim] {
        &self.dims[id.0 as usize]
    }

    /// Sizes or strides, if all of them are known.
    pub fn sizes(&self, id: DimsId) -> Option<Vec<i64>> {
        self.dims(id).iter().map(|d| d.known()).collect()
    }

    /// A symbolic expression.
    pub fn expr(&self, id: ExprId) -> Expr {
        self.exprs[id.0 as usize]
    }

    /// A size as a number: itself, or its hint.
    pub fn hint(&self, dim: Dim) -> Option<i64> {
        match dim {
            Dim::Static(n) => Some(n),
            Dim::Symbolic(expr) => self.expr(expr).hint,
        }
    }

    /// How what the graph returns is nested, `_` for each value: `[_, [_, _]]`; and how many values there are.
    pub fn nesting(&self) -> (String, usize) {
        fn walk(graph: &Graph, values: &[Value], text: &mut String) -> usize {
            let mut count = 0;
            for (place, &value) in values.iter().enumerate() {
                text.push_str(if place > 0 { ", " } else { "" });
                count += match value {
                    Value::List(span) | Value::Dict(span) => {
                        text.push('[');
                        let count = walk(graph, graph.values(span), text);
                        text.push(']');
                        count
                    }
                    _ => {
                        text.push('_');
                        1
                    }
                };
            }
            count
        }
        let mut text = String::new();
        let args = self.output().map_or(&[][..], |output| self.args(output));
        let count = walk(self, args, &mut text);
        (text, count)
    }

    /// The number of elements of a tensor, symbolic sizes by their hints; `None` without a hint or when it
    /// does not fit 64 bits.
    pub fn numel(&self, tensor: &Tensor) -> Option<i64> {
        self.dims(tensor.shape).iter().try_fold(1i64, |n, &d| n.checked_mul(self.hint(d)?))
    }

    /// The size of a tensor's elements in bytes; `None` as for [`Graph::numel`].
    pub fn bytes(&self, tensor: &Tensor) -> Option<i64> {
        self.numel(tensor)?.checked_mul(i64::from(tensor.dtype.itemsize()))
    }

    /// The tags of a node.
    pub fn tags(&self, id: NodeId) -> Option<&Tags> {
        self.nodes[id.index()].tags.map(|tags| &self.tags[tags.0.get() as usize - 1])
    }

    /// Calls `visit` with every node that `id` refers to, in argument order (positional arguments before
    /// keyword arguments, nested values in place), as often as it is referred to.
    pub fn for_each_input(&self, id: NodeId, visit: &mut impl FnMut(NodeId)) {
        let node = self.node(id);
        for span in [node.args, node.kwargs] {
            self.for_each_reference(span, visit);
        }
    }

    fn for_each_reference(&self, span: Span, visit: &mut impl FnMut(NodeId)) {
        for &value in self.values(span) {
            match value {
                Value::Node(node) => visit(node),
                Value::List(inner) | Value::Slice(inner) | Value::Dict(inner) => {
                    self.for_each_reference(inner, visit);
                }
                _ => {}
            }
        }
    }

    /// The distinct nodes that `id` refers to, in order of first appearance.
    pub fn inputs(&self, id: NodeId) -> Vec<NodeId> {
        // A short list is searched faster than a set.
        const SHORT: usize = 16;
        let mut inputs = Vec::new();
        let mut seen: FxHashSet<NodeId> = FxHashSet::default();
        self.for_each_input(id, &mut |input| {
            if inputs.len() == SHORT {
                seen.extend(&inputs);
            }
            let is_new = if inputs.len() < SHORT { !inputs.contains(&input) } else { seen.insert(input) };
            if is_new {
                inputs.push(input);
            }
        });
        inputs
    }

    /// Calls `visit` with every name that `id` refers to and no node has.
    pub fn for_each_dangling(&self, id: NodeId, visit: &mut impl FnMut(&str)) {
        fn walk(graph: &Graph, span: Span, visit: &mut impl FnMut(&str)) {
            for &value in graph.values(span) {
                match value {
                    Value::Dangling(name) => visit(graph.text(name)),
                    Value::List(inner) | Value::Slice(inner) | Value::Dict(inner) => {
                        walk(graph, inner, visit)
                    }
                    _ => {}
                }
            }
        }
        let node = self.node(id);
        for span in [node.args, node.kwargs] {
            walk(self, span, visit);
        }
    }

    /// All symbolic expressions.
    pub fn exprs(&self) -> impl ExactSizeIterator<Item = &Expr> {
        self.exprs.iter()
    }

    /// Whether any size or argument is symbolic.
    pub fn has_expressions(&self) -> bool {
        !self.exprs.is_empty()
    }

    /// The group of a world that a node stands for, as in a graph compiled on one rank for all: the one that its
    /// record or its name says, or the only one, if it has as many ranks as the call that takes the node states.
    pub fn group_of<'w>(&self, world: &'w World, node: NodeId, size: Option<i64>) -> Option<&'w Group> {
        let recorded = match self.nodes.get(node.index())?.out {
            Out::Other(text) => world.group(self.text(text)),
            _ => None,
        };
        let only = || match &world.groups[..] {
            [only] if size.is_none_or(|size| size == i64::from(only.size)) => Some(only),
            _ => None,
        };
        recorded.or_else(|| world.group(self.name(node))).or_else(only)
    }

    /// The body that an attribute of the module holds.
    pub fn subgraph(&self, attribute: &str) -> Option<&Arc<Graph>> {
        self.subgraphs.get(attribute)
    }

    /// How many nodes there are with each body in the place of every call that takes it.
    pub fn expanded(&self) -> u64 {
        if self.subgraphs.is_empty() {
            return self.len() as u64;
        }
        // One body may belong to many graphs.
        fn size(graph: &Graph, known: &mut FxHashMap<*const Graph, u64>) -> u64 {
            let sizes: FxHashMap<&str, u64> = graph
                .subgraphs
                .iter()
                .map(|(name, body)| {
                    let of_body = Arc::as_ptr(body);
                    let size = known.get(&of_body).copied().unwrap_or_else(|| size(body, known));
                    known.insert(of_body, size);
                    (name.as_str(), size)
                })
                .collect();
            let taken = |id: NodeId| {
                let attributes =
                    graph.inputs(id).into_iter().filter(|&input| graph.node(input).op == Op::GetAttr);
                attributes
                    .filter_map(|input| sizes.get(graph.target(input)))
                    .fold(0, |a, &b| u64::saturating_add(a, b))
            };
            graph.ids().map(|id| taken(id).saturating_add(1)).fold(0, u64::saturating_add)
        }
        size(self, &mut FxHashMap::default())
    }

    /// An error where bodies stand too deep inside one another, or are too large in the places of their calls. Readers
    /// ask this once, of the whole graph, and see to it themselves that their own stack suffices.
    pub fn check_bodies(&self) -> Result<(), String> {
        match self.expanded() > Limit::Expanded.standard() && !self.subgraphs.is_empty() {
            true => Err(format!("bodies in the places of their calls: the limit is {}", Limit::Expanded)),
            false => Ok(()),
        }
    }

    /// The output node: the last node that is one.
    pub fn output(&self) -> Option<NodeId> {
        self.ids().rev().find(|&id| self.node(id).op == Op::Output)
    }

    /// Bytes that this graph holds on to, table overhead included (an estimate from capacities).
    pub fn memory(&self) -> usize {
        use std::mem::size_of;
        let text: usize = self.strings.text_bytes();
        let raw: usize =
            self.facts.iter().chain(&self.extra).map(|(k, v)| k.capacity() + v.capacity() + 48).sum();
        self.nodes.capacity() * size_of::<Node>()
            + self.values.capacity() * size_of::<Value>()
            + self.outs.capacity() * size_of::<Out>()
            + self.tensors.capacity() * size_of::<Tensor>()
            + self.dims.iter().map(|d| d.len() * size_of::<Dim>() + 32).sum::<usize>()
            + self.exprs.capacity() * (size_of::<Expr>() + 16)
            + self.tags.capacity() * (size_of::<Tags>() + 16)
            + self.by_name.capacity() * size_of::<Option<NodeId>>()
            + self.target_of.capacity() * size_of::<Option<TargetId>>()
            + self.ordering.capacity() * size_of::<OrderingEdge>()
            + self.subgraphs.iter().map(|(name, body)| name.capacity() + body.memory()).sum::<usize>()
            + text
            + raw
    }

    /// The same graph under other names.
    pub fn with_names(&self, name: impl Fn(NodeId) -> String) -> Graph {
        let mut graph = self.clone();
        graph.by_name.iter_mut().for_each(|slot| *slot = None);
        for id in self.ids() {
            let text = graph.strings.intern(&name(id));
            graph.nodes[id.index()].name = text;
            if graph.by_name.len() <= text.index() {
                graph.by_name.resize(text.index() + 1, None);
            }
            graph.by_name[text.index()].get_or_insert(id);
        }
        graph
    }

    /// Gives back what arenas hold in reserve.
    pub fn shrink_to_fit(&mut self) {
        self.nodes.shrink_to_fit();
        self.values.shrink_to_fit();
        self.outs.shrink_to_fit();
        self.tensors.shrink_to_fit();
        self.dims.shrink_to_fit();
        self.exprs.shrink_to_fit();
        self.tags.shrink_to_fit();
        self.targets.shrink_to_fit();
        self.facts.shrink_to_fit();
        self.extra.shrink_to_fit();
        self.ordering.shrink_to_fit();
        self.by_name.shrink_to_fit();
        self.target_of.shrink_to_fit();
        self.strings.shrink_to_fit();
    }
}
