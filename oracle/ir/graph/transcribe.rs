//! Copying nodes of one graph into another: strings, shapes, expressions and tags are interned anew, references follow
//! a map.

use super::{Dim, DimsId, Expr, ExprId, Graph, Node, NodeId, Op, Out, Span, Str, Tags, Tensor, Value};

/// Copies nodes of `from` into `to`.
pub struct Transcriber<'a, 'g> {
    /// The graph that is copied from.
    pub from: &'a Graph,
    /// The graph that is copied to.
    pub to: &'g mut Graph,
    /// What stands for each node of `from`.
    pub map: &'a mut [Option<NodeId>],
}

impl Transcriber<'_, '_> {
    /// Appends a copy of `id` under `name`.
    pub fn node(&mut self, id: NodeId, name: &str) -> NodeId {
        let old = *self.from.node(id);
        let name = self.to.intern(name);
        let target = self.to.intern_target(self.from.target(id));
        let node = Node {
            args: self.values(old.args),
            kwargs: self.values(old.kwargs),
            out: self.out(old.out, old.op == Op::Placeholder),
            tags: self.tags(id),
            ..Node::new(name, old.op, target)
        };
        self.to.push_node(node)
    }

    /// Stores copies of several values.
    pub fn values(&mut self, span: Span) -> Span {
        let copies: Vec<Value> = self.from.values(span).iter().map(|&value| self.value(value)).collect();
        self.to.push_values(&copies)
    }

    /// A copy of a value. A reference to what has no counterpart becomes the number that it is, or a dangling one.
    pub fn value(&mut self, value: Value) -> Value {
        match value {
            Value::Node(node) => match self.map.get(node.index()).copied().flatten() {
                Some(new) => Value::Node(new),
                None if let Some(Out::Int(n)) = self.from.nodes().get(node.index()).map(|node| node.out) => {
                    Value::Int(n)
                }
                None if node.index() < self.from.len() => {
                    Value::Dangling(self.to.intern(self.from.name(node)))
                }
                None => Value::Dangling(self.to.intern("?")),
            },
            Value::Str(text) => Value::Str(self.text(text)),
            Value::Dangling(text) => Value::Dangling(self.text(text)),
            Value::Device(text) => Value::Device(self.text(text)),
            Value::MemoryFormat(text) => Value::MemoryFormat(self.text(text)),
            Value::Layout(text) => Value::Layout(self.text(text)),
            Value::Function(text) => Value::Function(self.text(text)),
            Value::List(span) => Value::List(self.values(span)),
            Value::Complex(span) => Value::Complex(self.values(span)),
            Value::Slice(span) => Value::Slice(self.values(span)),
            Value::Dict(span) => Value::Dict(self.values(span)),
            Value::Symbolic(expr) => Value::Symbolic(self.expr(expr)),
            Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Dtype(_) => value,
        }
    }

    fn text(&mut self, text: Str) -> Str {
        self.to.intern(self.from.text(text))
    }

    fn expr(&mut self, expr: ExprId) -> ExprId {
        let Expr { text, hint } = self.from.expr(expr);
        let text = self.text(text);
        self.to.intern_expr(Expr { text, hint })
    }

    fn dims(&mut self, dims: DimsId) -> DimsId {
        let copies: Vec<Dim> = self.from.dims(dims).iter().map(|&dim| self.dim(dim)).collect();
        self.to.intern_dims(&copies)
    }

    fn dim(&mut self, dim: Dim) -> Dim {
        match dim {
            Dim::Static(_) => dim,
            Dim::Symbolic(expr) => Dim::Symbolic(self.expr(expr)),
        }
    }

    /// A copy of a result. Recorded storages are kept for inputs only: the numbers of two graphs have nothing to do
    /// with each other.
    pub fn out(&mut self, out: Out, is_input: bool) -> Out {
        match out {
            Out::Tensor(id) => {
                let old = *self.from.tensor(id);
                let tensor = Tensor {
                    shape: self.dims(old.shape),
                    stride: self.dims(old.stride),
                    device: self.text(old.device),
                    storage: old.storage.filter(|_| is_input),
                    storage_bytes: old.storage_bytes.map(|dim| self.dim(dim)),
                    ..old
                };
                Out::Tensor(self.to.push_tensor(tensor))
            }
            Out::SymInt(expr) => Out::SymInt(self.expr(expr)),
            Out::SymBool(expr) => Out::SymBool(self.expr(expr)),
            Out::Other(text) => Out::Other(self.text(text)),
            Out::Key(text) => Out::Key(self.text(text)),
            Out::Tuple(span) => Out::Tuple(self.outs(span, is_input)),
            Out::Dict(span) => Out::Dict(self.outs(span, is_input)),
            Out::Absent | Out::None | Out::Int(_) => out,
        }
    }

    fn outs(&mut self, span: Span, is_input: bool) -> Span {
        let copies: Vec<Out> = self.from.outs(span).iter().map(|&out| self.out(out, is_input)).collect();
        self.to.push_outs(&copies)
    }

    fn tags(&mut self, id: NodeId) -> Option<super::TagsId> {
        let old = self.from.tags(id)?.clone();
        let tags = Tags {
            recompute: old.recompute.map(|text| self.text(text)),
            partitioner_tag: old.partitioner_tag.map(|text| self.text(text)),
            custom: old.custom.map(|text| self.text(text)),
            extra: old.extra.map(|text| self.text(text)),
            ..old
        };
        self.to.intern_tags(tags)
    }
}
