//! Whether two graphs are the same graph, whatever the layout of their arenas.
//!
//! Compared: name, kind, world, symbols, nodes in list order with arguments, results and tags, module and
//! descriptor, ordering edges as a set, renames as a set, clusters. Not compared: where a node came from
//! (`stack`), and what a file carried along (`facts`, `extra`). Floats are equal if they have the same bits or
//! are both NaN.

use super::{DimsId, ExprId, Graph, NodeId, Out, Span, Str, Tensor, Value};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

impl Graph {
    /// A number that graphs without a difference share; others hardly ever do. Linear.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.len().hash(&mut hasher);
        for id in self.ids() {
            self.name(id).hash(&mut hasher);
            self.target(id).hash(&mut hasher);
            self.hash_span(self.node(id).args, &mut hasher);
            self.hash_span(self.node(id).kwargs, &mut hasher);
        }
        hasher.finish()
    }

    fn hash_span(&self, span: Span, hasher: &mut FxHasher) {
        for &value in self.values(span) {
            match value {
                Value::Int(n) => n.hash(hasher),
                Value::Node(node) => node.0.hash(hasher),
                Value::Str(text) => self.text(text).hash(hasher),
                Value::List(inner) => self.hash_span(inner, hasher),
                _ => {}
            }
        }
    }

    /// The first difference to `other`, in words; `None` if they are the same graph.
    pub fn difference(&self, other: &Graph) -> Option<String> {
        differ("name", &self.name, &other.name)
            .or_else(|| differ("world", &self.world, &other.world))
            .or_else(|| self.difference_in_program(other))
    }

    /// The first difference in what is run. What a graph is called, and on which rank it was recorded, is none.
    pub fn difference_in_program(&self, other: &Graph) -> Option<String> {
        self.difference_in_calls(other, &|_| false)
    }

    /// The same, where `is_same` says of a node whether its arguments are the same, though written in another way.
    pub fn difference_in_calls(&self, other: &Graph, is_same: &dyn Fn(NodeId) -> bool) -> Option<String> {
        differ("kind", &self.kind, &other.kind)
            .or_else(|| match self.world.is_same_network(&other.world) {
                true => None,
                false => differ("world", &self.world, &other.world),
            })
            .or_else(|| differ("symbols", &self.symbols, &other.symbols))
            .or_else(|| differ("number of nodes", &self.len(), &other.len()))
            .or_else(|| match self.has_the_nodes_of(other) {
                true => None,
                false => self.ids().find_map(|id| Pair { a: self, b: other }.node_difference(id, is_same)),
            })
            .or_else(|| differ("ordering edges", &sorted_ordering(self), &sorted_ordering(other)))
            .or_else(|| differ("renames", &sorted_renames(self), &sorted_renames(other)))
            .or_else(|| differ("clusters", &self.clusters, &other.clusters))
            .or_else(|| self.difference_in_bodies(other))
    }

    /// In which body of a higher-order operator both graphs differ; bodies that one of them does not record do not
    /// count.
    fn difference_in_bodies(&self, other: &Graph) -> Option<String> {
        self.subgraphs.iter().find_map(|(name, body)| {
            let difference = body.difference(other.subgraph(name)?)?;
            Some(format!("sub-graph {name}: {difference}"))
        })
    }
}

/// Nodes of two graphs.
impl Graph {
    /// Whether both graphs are the same down to the ids that their arenas and tables give, as a graph and its copy are.
    /// Here everything counts.
    pub fn is_identical(&self, other: &Graph) -> bool {
        self.has_the_nodes_of(other)
            && self.name == other.name
            && self.kind == other.kind
            && self.world == other.world
            && self.symbols == other.symbols
            && self.guards == other.guards
            && self.ordering == other.ordering
            && self.renames == other.renames
            && self.clusters == other.clusters
            && self.subgraphs.len() == other.subgraphs.len()
            && self.subgraphs.iter().zip(&other.subgraphs).all(|(a, b)| a.0 == b.0 && a.1.is_identical(&b.1))
            && self.facts == other.facts
            && self.extra == other.extra
            && self.target_of == other.target_of
            && self.by_name == other.by_name
            && self.unknown == other.unknown
    }

    /// Whether the nodes of both graphs, and the arenas behind them, are the same entry for entry, as those of a graph
    /// and of its copy are. Where they are not, the nodes may still be the same.
    fn has_the_nodes_of(&self, other: &Graph) -> bool {
        let same = |(x, y): (&Value, &Value)| match (x, y) {
            // Floats that are equal may differ in their bits.
            (Value::Float(x), Value::Float(y)) => x.to_bits() == y.to_bits(),
            _ => x == y,
        };
        self.nodes == other.nodes
            && self.values.len() == other.values.len()
            && self.values.iter().zip(&other.values).all(same)
            && self.outs == other.outs
            && self.tensors == other.tensors
            && self.targets == other.targets
            && self.dims.iter().eq(&other.dims)
            && self.exprs.iter().eq(&other.exprs)
            && self.tags.iter().eq(&other.tags)
            && self.strings == other.strings
    }

    /// Whether the same is recorded of what `id` returns and of what `twin` of `other` returns.
    pub fn same_result(&self, id: NodeId, other: &Graph, twin: NodeId) -> bool {
        Pair { a: self, b: other }.outs(self.node(id).out, other.node(twin).out)
    }

    /// Whether what two nodes return is recorded with the same sizes and dtypes. Where elements lie is not asked.
    pub fn same_sizes(&self, id: NodeId, other: NodeId) -> bool {
        self.same_out_sizes(self.node(id).out, self.node(other).out)
    }

    /// Whether both graphs make the same calls of tensors of the same sizes, node for node. Names, and where elements lie,
    /// are not asked; -1 in the other one stands for what follows from sizes.
    pub fn has_calls_of(&self, other: &Graph) -> bool {
        let pair = Pair { a: self, b: other };
        let same = |one: Span, another: Span| {
            let mut open = vec![(one, another)];
            while let Some((one, another)) = open.pop() {
                let (one, another) = (self.values(one), other.values(another));
                if one.len() != another.len() {
                    return false;
                }
                for (&one, &another) in one.iter().zip(another) {
                    match (one, another) {
                        (Value::List(one), Value::List(another)) => open.push((one, another)),
                        (Value::Int(_), Value::Int(-1)) => {}
                        _ if pair.values(one, another) => {}
                        _ => return false,
                    }
                }
            }
            true
        };
        self.len() == other.len()
            && self.ids().all(|id| {
                let (x, y) = (self.node(id), other.node(id));
                x.op == y.op
                    && self.target(id) == other.target(id)
                    && same(x.args, y.args)
                    && same(x.kwargs, y.kwargs)
                    && self.shapes_of(id) == other.shapes_of(id)
            })
    }

    fn same_out_sizes(&self, x: Out, y: Out) -> bool {
        match (x, y) {
            (Out::Tensor(x), Out::Tensor(y)) => {
                let (x, y) = (self.tensor(x), self.tensor(y));
                x.dtype == y.dtype && self.dims(x.shape) == self.dims(y.shape)
            }
            (Out::Tuple(x), Out::Tuple(y)) | (Out::Dict(x), Out::Dict(y)) => {
                let (x, y) = (self.outs(x), self.outs(y));
                x.len() == y.len() && x.iter().zip(y).all(|(&x, &y)| self.same_out_sizes(x, y))
            }
            (x, y) => std::mem::discriminant(&x) == std::mem::discriminant(&y),
        }
    }
}

fn differ<T: PartialEq + std::fmt::Debug>(what: &str, a: &T, b: &T) -> Option<String> {
    (a != b).then(|| format!("{what}: {a:?} and {b:?}"))
}

fn sorted_ordering(graph: &Graph) -> Vec<(u32, u32)> {
    let mut edges: Vec<_> = graph.ordering.iter().map(|e| (e.before.0, e.after.0)).collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

fn sorted_renames(graph: &Graph) -> Vec<(u32, u32)> {
    let mut renames: Vec<_> = graph.renames.iter().map(|r| (r.by.0, r.of.0)).collect();
    renames.sort_unstable();
    renames.dedup();
    renames
}

/// Two graphs whose ids cannot be compared with one another.
#[derive(Clone, Copy)]
struct Pair<'a> {
    a: &'a Graph,
    b: &'a Graph,
}

impl Pair<'_> {
    fn node_difference(self, id: NodeId, is_same: &dyn Fn(NodeId) -> bool) -> Option<String> {
        let (x, y) = (self.a.node(id), self.b.node(id));
        let name = self.a.name(id);
        if name != self.b.name(id) {
            return Some(format!("name of node {}: \"{name}\" and \"{}\"", id.0, self.b.name(id)));
        }
        let part = if x.op != y.op {
            "what it is"
        } else if self.a.target(id) != self.b.target(id) {
            "target"
        } else if !self.spans(x.args, y.args) && !is_same(id) {
            "arguments"
        } else if !self.spans(x.kwargs, y.kwargs) && !is_same(id) {
            "keyword arguments"
        } else if !self.outs(x.out, y.out) {
            "result"
        } else if !self.tags(id) {
            "tags"
        } else if !self.optional(x.module, y.module) || !self.optional(x.desc, y.desc) {
            "module or descriptor"
        } else {
            return None;
        };
        Some(format!("{part} of node \"{name}\""))
    }

    fn texts(self, x: Str, y: Str) -> bool {
        self.a.text(x) == self.b.text(y)
    }

    fn optional(self, x: Option<Str>, y: Option<Str>) -> bool {
        x.map(|x| self.a.text(x)) == y.map(|y| self.b.text(y))
    }

    /// Whether two texts of JSON are one, but for the space between their words.
    fn documents(self, x: Option<Str>, y: Option<Str>) -> bool {
        let words = |text: &str| {
            let (mut in_string, mut is_escaped) = (false, false);
            let is_word = |&c: &char| {
                let stays = in_string || !c.is_ascii_whitespace();
                in_string ^= c == '"' && !is_escaped;
                is_escaped = in_string && c == '\\' && !is_escaped;
                stays
            };
            text.chars().filter(is_word).collect::<String>()
        };
        self.optional(x, y) || x.zip(y).is_some_and(|(x, y)| words(self.a.text(x)) == words(self.b.text(y)))
    }

    fn spans(self, x: Span, y: Span) -> bool {
        let (x, y) = (self.a.values(x), self.b.values(y));
        x.len() == y.len() && x.iter().zip(y).all(|(&x, &y)| self.values(x, y))
    }

    fn values(self, x: Value, y: Value) -> bool {
        match (x, y) {
            (Value::Float(x), Value::Float(y)) => x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan()),
            (Value::Str(x), Value::Str(y))
            | (Value::Dangling(x), Value::Dangling(y))
            | (Value::Device(x), Value::Device(y))
            | (Value::MemoryFormat(x), Value::MemoryFormat(y))
            | (Value::Layout(x), Value::Layout(y))
            | (Value::Function(x), Value::Function(y)) => self.texts(x, y),
            (Value::List(x), Value::List(y))
            | (Value::Complex(x), Value::Complex(y))
            | (Value::Slice(x), Value::Slice(y))
            | (Value::Dict(x), Value::Dict(y)) => self.spans(x, y),
            (Value::Symbolic(x), Value::Symbolic(y)) => self.exprs(x, y),
            (Value::None, Value::None) => true,
            (Value::Bool(x), Value::Bool(y)) => x == y,
            (Value::Int(x), Value::Int(y)) => x == y,
            (Value::Node(x), Value::Node(y)) => x == y,
            (Value::Dtype(x), Value::Dtype(y)) => x == y,
            _ => false,
        }
    }

    fn exprs(self, x: ExprId, y: ExprId) -> bool {
        let (x, y) = (self.a.expr(x), self.b.expr(y));
        x.hint == y.hint && self.texts(x.text, y.text)
    }

    fn dims(self, x: DimsId, y: DimsId) -> bool {
        let (x, y) = (self.a.dims(x), self.b.dims(y));
        x.len() == y.len() && x.iter().zip(y).all(|(&x, &y)| self.dim(x, y))
    }

    fn dim(self, x: super::Dim, y: super::Dim) -> bool {
        match (x, y) {
            (super::Dim::Static(x), super::Dim::Static(y)) => x == y,
            (super::Dim::Symbolic(x), super::Dim::Symbolic(y)) => self.exprs(x, y),
            _ => false,
        }
    }

    fn tensors(self, x: &Tensor, y: &Tensor) -> bool {
        let bytes = match (x.storage_bytes, y.storage_bytes) {
            (Some(x), Some(y)) => self.dim(x, y),
            (None, None) => true,
            _ => false,
        };
        bytes
            && (x.dtype, x.requires_grad, x.storage, x.offset)
                == (y.dtype, y.requires_grad, y.storage, y.offset)
            && self.dims(x.shape, y.shape)
            && self.dims(x.stride, y.stride)
            && self.texts(x.device, y.device)
    }

    fn outs(self, x: Out, y: Out) -> bool {
        match (x, y) {
            (Out::Absent, Out::Absent) | (Out::None, Out::None) => true,
            (Out::Tensor(x), Out::Tensor(y)) => self.tensors(self.a.tensor(x), self.b.tensor(y)),
            (Out::Int(x), Out::Int(y)) => x == y,
            (Out::SymInt(x), Out::SymInt(y)) | (Out::SymBool(x), Out::SymBool(y)) => self.exprs(x, y),
            (Out::Other(x), Out::Other(y)) | (Out::Key(x), Out::Key(y)) => self.texts(x, y),
            (Out::Tuple(x), Out::Tuple(y)) | (Out::Dict(x), Out::Dict(y)) => {
                let (x, y) = (self.a.outs(x), self.b.outs(y));
                x.len() == y.len() && x.iter().zip(y).all(|(&x, &y)| self.outs(x, y))
            }
            _ => false,
        }
    }

    fn tags(self, id: NodeId) -> bool {
        match (self.a.tags(id), self.b.tags(id)) {
            (None, None) => true,
            (Some(x), Some(y)) => {
                self.optional(x.recompute, y.recompute)
                    && self.optional(x.partitioner_tag, y.partitioner_tag)
                    && self.documents(x.custom, y.custom)
                    && self.documents(x.extra, y.extra)
                    && x.ac_graph_id == y.ac_graph_id
                    && x.seq_nr == y.seq_nr
                    && x.autograd_backward == y.autograd_backward
                    && x.is_gradient_acc == y.is_gradient_acc
            }
            _ => false,
        }
    }
}
