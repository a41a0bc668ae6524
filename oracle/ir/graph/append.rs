//! Putting the nodes of one graph behind those of another.
//!
//! # The idea
//!
//! A graph that is built in pieces has, once they are put together, the same ids as one that is built in one go. A
//! table gives ids in order of first appearance. So each table of the piece is gone through in the order of its ids:
//! what the graph has already keeps its id there, and the rest follows in the order in which it would have come.
//!
//! # What it does not do
//!
//! It takes the nodes and what they refer to, and nothing that a graph says of itself: name, world, symbols, ordering
//! edges, renames, clusters and kept fields of the file stay behind.

use super::{
    Dim, Expr, ExprId, Graph, Holder, Node, NodeId, Out, Span, Str, Tags, TagsId, TargetId, Tensor, TensorId,
    Value,
};

/// What the ids of the piece are in the graph.
struct Ids {
    strings: Vec<Str>,
    exprs: Vec<ExprId>,
    /// The first node of each node's name.
    nodes: Vec<NodeId>,
    /// Where the arenas of the graph ended.
    values: u32,
    outs: u32,
    tensors: u32,
}

impl Ids {
    fn string(&self, id: Str) -> Str {
        self.strings[id.index()]
    }

    fn expr(&self, id: ExprId) -> ExprId {
        self.exprs[id.0 as usize]
    }

    fn dim(&self, dim: Dim) -> Dim {
        match dim {
            Dim::Static(_) => dim,
            Dim::Symbolic(expr) => Dim::Symbolic(self.expr(expr)),
        }
    }

    fn values(&self, span: Span) -> Span {
        moved(span, self.values)
    }

    fn outs(&self, span: Span) -> Span {
        moved(span, self.outs)
    }

    fn tensor(&self, id: TensorId) -> TensorId {
        TensorId(id.0 + self.tensors)
    }

    fn out(&self, out: Out) -> Out {
        match out {
            Out::Absent | Out::None | Out::Int(_) => out,
            Out::Tensor(tensor) => Out::Tensor(self.tensor(tensor)),
            Out::SymInt(expr) => Out::SymInt(self.expr(expr)),
            Out::SymBool(expr) => Out::SymBool(self.expr(expr)),
            Out::Other(text) => Out::Other(self.string(text)),
            Out::Tuple(span) => Out::Tuple(self.outs(span)),
            Out::Dict(span) => Out::Dict(self.outs(span)),
            Out::Key(text) => Out::Key(self.string(text)),
        }
    }

    /// `first` finds the first node of a name.
    fn value(&self, value: Value, first: impl Fn(Str) -> Option<NodeId>) -> Value {
        match value {
            Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Dtype(_) => value,
            Value::Str(text) => Value::Str(self.string(text)),
            Value::Node(node) => Value::Node(self.nodes[node.index()]),
            Value::Dangling(name) => {
                let name = self.string(name);
                first(name).map_or(Value::Dangling(name), Value::Node)
            }
            Value::List(span) => Value::List(self.values(span)),
            Value::Device(text) => Value::Device(self.string(text)),
            Value::MemoryFormat(text) => Value::MemoryFormat(self.string(text)),
            Value::Layout(text) => Value::Layout(self.string(text)),
            Value::Complex(span) => Value::Complex(self.values(span)),
            Value::Slice(span) => Value::Slice(self.values(span)),
            Value::Symbolic(expr) => Value::Symbolic(self.expr(expr)),
            Value::Dict(span) => Value::Dict(self.values(span)),
            Value::Function(name) => Value::Function(self.string(name)),
        }
    }
}

fn moved(span: Span, by: u32) -> Span {
    if span.is_empty() { Span::EMPTY } else { Span { start: span.start + by, len: span.len } }
}

impl Graph {
    /// Puts the nodes of `piece` behind those of this graph, as if they had been built here. Where both have a node of
    /// one name, the earlier one keeps the references; a reference of the piece to a name that only this graph has
    /// becomes one to that node. Returns what each string of the piece is here.
    pub(crate) fn append(&mut self, piece: &Graph) -> Vec<Str> {
        let strings: Vec<Str> = piece.strings.iter().map(|text| self.strings.intern(text)).collect();
        let string = |id: Str| strings[id.index()];
        let targets: Vec<TargetId> =
            piece.targets.iter().map(|&text| self.target_named(string(text))).collect();
        let exprs: Vec<ExprId> = piece
            .exprs
            .iter()
            .map(|expr| self.intern_expr(Expr { text: string(expr.text), hint: expr.hint }))
            .collect();
        let tags: Vec<Option<TagsId>> = piece
            .tags
            .iter()
            .map(|tags| {
                self.intern_tags(Tags {
                    recompute: tags.recompute.map(string),
                    partitioner_tag: tags.partitioner_tag.map(string),
                    custom: tags.custom.map(string),
                    extra: tags.extra.map(string),
                    ..*tags
                })
            })
            .collect();
        let mut ids = Ids {
            strings,
            exprs,
            nodes: Vec::with_capacity(piece.nodes.len()),
            values: self.values.len() as u32,
            outs: self.outs.len() as u32,
            tensors: self.tensors.len() as u32,
        };
        let mut sizes = Vec::new();
        let mut dims = Vec::with_capacity(piece.dims.len());
        for list in &piece.dims {
            sizes.clear();
            sizes.extend(list.iter().map(|&dim| ids.dim(dim)));
            dims.push(self.intern_dims(&sizes));
        }
        self.tensors.extend(piece.tensors.iter().map(|tensor| Tensor {
            shape: dims[tensor.shape.0 as usize],
            stride: dims[tensor.stride.0 as usize],
            device: ids.string(tensor.device),
            storage_bytes: tensor.storage_bytes.map(|bytes| ids.dim(bytes)),
            ..*tensor
        }));
        self.outs.extend(piece.outs.iter().map(|&out| ids.out(out)));
        for node in &piece.nodes {
            let name = ids.string(node.name);
            let id = self.push_node(Node {
                name,
                op: node.op,
                target: targets[node.target.0 as usize],
                args: ids.values(node.args),
                kwargs: ids.values(node.kwargs),
                out: ids.out(node.out),
                tags: node.tags.and_then(|id| tags[id.0.get() as usize - 1]),
                stack: node.stack.map(|text| ids.string(text)),
                module: node.module.map(|text| ids.string(text)),
                desc: node.desc.map(|text| ids.string(text)),
                extra: node.extra.map(|text| ids.string(text)),
            });
            ids.nodes.push(self.named(name).unwrap_or(id));
        }
        let first = |name: Str| self.by_name.get(name.index()).copied().flatten();
        self.values.extend(piece.values.iter().map(|&value| ids.value(value, first)));
        self.unknown.extend(piece.unknown.iter().filter_map(|(&holder, &json)| match holder {
            Holder::Tensor(tensor) => Some((Holder::Tensor(ids.tensor(tensor)), ids.string(json))),
            Holder::Group(_) | Holder::Symbol(_) => None,
        }));
        ids.strings
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::{Dim, Dtype, Expr, Graph, Holder, Op, Out, Tags, Tensor, Value};

    /// A node: its name and the names that it refers to. Everything else about it follows from the number.
    type Entry = (&'static str, &'static [&'static str], i64);

    fn built(entries: &[Entry]) -> Graph {
        let mut graph = Graph::default();
        for &(name, inputs, number) in entries {
            let id = graph.push(name, Op::Call, &format!("target{}", number % 2));
            let text = graph.intern(&format!("s{number}"));
            let expr = graph.intern_expr(Expr { text, hint: Some(number) });
            let mut args = vec![Value::Str(text), Value::Symbolic(expr), Value::Int(number)];
            for input in inputs {
                let input = graph.intern(input);
                args.push(graph.named(input).map_or(Value::Dangling(input), Value::Node));
            }
            let list = graph.list(&args);
            let empty = graph.list(&[]);
            let args = graph.push_values(&[list, empty, Value::Device(text)]);
            let shape = graph.intern_dims(&[Dim::Static(number), Dim::Symbolic(expr)]);
            let stride = graph.intern_sizes(&[2, 1]);
            let storage_bytes = Some(Dim::Symbolic(expr));
            let tensor = graph.push_tensor(Tensor {
                shape,
                stride,
                dtype: Dtype::F32,
                requires_grad: None,
                device: text,
                storage: None,
                offset: 0,
                storage_bytes,
                is_guessed: false,
            });
            graph.set_unknown_fields(Holder::Tensor(tensor), &format!("{{\"x\":{number}}}"));
            let out = graph.push_outs(&[Out::Tensor(tensor), Out::SymInt(expr), Out::Key(text)]);
            let tags =
                graph.intern_tags(Tags { custom: Some(text), seq_nr: Some(number % 2), ..Tags::default() });
            let node = graph.node_mut(id);
            (node.args, node.out, node.tags, node.stack) = (args, Out::Tuple(out), tags, Some(text));
        }
        graph
    }

    /// However the nodes are divided, the graph is the one that is built in one go.
    #[test]
    fn pieces_make_the_graph_that_is_built_in_one_go() {
        let entries: [Entry; 7] = [
            ("a", &["late"], 1),
            ("b", &["a", "missing"], 2),
            // Its table of strings begins otherwise than that of the nodes before.
            ("c", &["b", "a"], 2),
            // A name twice: the reference after it is one to the first.
            ("a", &["a"], 1),
            ("d", &["a", "c"], 3),
            ("late", &["d", "late"], 1),
            ("output", &["late", "s2"], 4),
        ];
        let mut whole = built(&entries);
        whole.resolve_references();
        for first in 0..=entries.len() {
            for second in first..=entries.len() {
                let mut graph = built(&entries[..first]);
                for piece in [&entries[first..second], &entries[second..]] {
                    graph.append(&built(piece));
                }
                graph.resolve_references();
                assert!(graph.is_identical(&whole), "cut at {first} and {second}:\n{graph:?}\n{whole:?}");
            }
        }
    }

    #[test]
    fn strings_of_the_piece_are_told() {
        let mut graph = built(&[("a", &[], 1), ("b", &[], 2)]);
        let piece = built(&[("c", &["b"], 2)]);
        let strings = graph.append(&piece);
        let texts: Vec<&str> = strings.iter().map(|&id| graph.text(id)).collect();
        assert!(texts.iter().copied().eq(piece.strings().iter()));
    }

    #[test]
    fn identical_is_about_everything() {
        let graph = built(&[("a", &["b"], 1), ("b", &["a"], 2)]);
        assert!(graph.is_identical(&graph.clone()));
        let changes: [fn(&mut Graph); 5] = [
            |graph| graph.name.push('x'),
            |graph| _ = graph.intern("new"),
            |graph| _ = graph.intern_sizes(&[9]),
            |graph| _ = graph.push("a", Op::Call, "target1"),
            |graph| graph.extra.push(Default::default()),
        ];
        for (index, change) in changes.iter().enumerate() {
            let mut other = graph.clone();
            change(&mut other);
            assert!(!graph.is_identical(&other), "change {index}");
        }
    }
}
