//! Random graphs that use every variant of the IR, made from a list of choices. They need not make sense.

use graph_oracle::graph::{
    Cluster, Dim, DimsId, Dtype, Expr, ExprId, Graph, Group, Holder, NodeId, Op, OrderingEdge, Out, Rename,
    StorageId, Str, Symbol, Tags, Tensor, Value,
};
use proptest::prelude::*;
use std::sync::Arc;

pub fn arbitrary_graph() -> impl Strategy<Value = Graph> {
    prop::collection::vec(any::<u32>(), 0..1500).prop_map(|choices| Maker::new(&choices).graph())
}

/// Texts that need care in JSON.
const TEXTS: [&str; 8] = [
    "",
    "a",
    "cuda:0",
    "\"quoted\" \\ back",
    // A line break and a tab, as names are held.
    "line\u{fdd0}break\u{fdd1}\u{1}",
    "\u{e9}\u{4e16}\u{1f600}",
    "{\"ref\":1}",
    "inf",
];
const TARGETS: [&str; 5] = [
    "aten.relu.default",
    "aten.split.Tensor",
    "operator.getitem",
    "higher_order.flex_attention",
    "my.op.default",
];
const FLOATS: [f64; 10] =
    [0.0, -0.0, 1.0, 0.1, 1e-5, -1e16, f64::MIN_POSITIVE / 3.0, f64::MAX, f64::INFINITY, f64::NAN];
const INTS: [i64; 5] = [0, -1, 7, i64::MAX, i64::MIN];
/// JSON texts that are kept as they are.
const KEPT: [&str; 4] = ["null", "[1, 2.50]", "{\"a\":{\"b\":\"}\"}}", "123456789012345678901234567890"];

struct Maker<'c> {
    choices: std::iter::Copied<std::slice::Iter<'c, u32>>,
    graph: Graph,
}

impl<'c> Maker<'c> {
    fn new(choices: &'c [u32]) -> Maker<'c> {
        Maker { choices: choices.iter().copied(), graph: Graph::new("") }
    }

    /// A number below `n`; 0 when the choices have run out.
    fn below(&mut self, n: usize) -> usize {
        self.choices.next().unwrap_or(0) as usize % n
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.below(3) == 1 { Some(make(self)) } else { None }
    }

    fn text(&mut self) -> Str {
        let text = self.one(&TEXTS);
        self.graph.intern(text)
    }

    fn graph(mut self) -> Graph {
        self.graph.name = self.one(&TEXTS).to_string();
        self.graph.kind = self.one(&["", "forward", "joint"]).to_string();
        self.world();
        self.extra();
        let nodes = 1 + self.below(30);
        for index in 0..nodes {
            // Now and then a name twice.
            let index = if self.below(20) == 19 { 0 } else { index };
            let name = format!("n{index}{}", self.one(&["", "\"", "\u{e9}"]));
            let op = self.one(&[Op::Call, Op::Placeholder, Op::GetAttr, Op::Output]);
            let target = self.one(&TARGETS);
            self.graph.push(&name, op, target);
        }
        for id in self.graph.ids() {
            self.node(id);
        }
        self.edges();
        self.graph
    }

    /// A node that its name leads to.
    fn any_node(&mut self) -> NodeId {
        let id = NodeId(self.below(self.graph.len()) as u32);
        self.graph.find(self.graph.name(id)).unwrap()
    }

    fn world(&mut self) {
        self.graph.world.ranks = self.maybe(|m| m.below(9) as u32);
        for name in ["0", "dp", "\"tp\""] {
            if self.below(2) == 0 {
                continue;
            }
            let group = Group {
                name: name.to_string(),
                size: self.one(&[1, 8, u32::MAX]),
                recorded_rank: self.maybe(|m| m.below(9) as u32),
                instances: self.one(&[&[][..], &[vec![0, 1]], &[vec![3, 3], vec![]]]).to_vec(),
            };
            self.graph.world.groups.push(group);
            if self.below(4) == 3 {
                let name = self.graph.intern(name);
                self.graph.set_unknown_fields(Holder::Group(name), r#"{"backend":"nccl"}"#);
            }
        }
        for name in ["u0", "s1"] {
            if self.below(2) == 0 {
                continue;
            }
            let hint = self.maybe(|m| m.one(&INTS));
            let range = (self.one(&["0", "-int_oo"]).to_string(), "int_oo".to_string());
            let unbacked = self.below(2) == 1;
            self.graph.symbols.push(Symbol { name: name.to_string(), hint, range, unbacked });
            if self.below(4) == 3 {
                let name = self.graph.intern(name);
                self.graph.set_unknown_fields(Holder::Symbol(name), r#"{"why":[1]}"#);
            }
        }
    }

    fn extra(&mut self) {
        // In the order in which they are written.
        for key in ["source", "torch", "timing", "\"odd\" key"] {
            if self.below(3) == 1 {
                let value = self.one(&KEPT).to_string();
                self.graph.extra.push((key.to_string(), value));
            }
        }
        let mut body = Graph::default();
        body.push("a", Op::Placeholder, "a");
        for _ in 0..self.below(3) {
            let mut outer = Graph::default();
            outer.push("a", Op::Placeholder, "a");
            outer.subgraphs.push(("inner".to_string(), Arc::new(body)));
            body = outer;
        }
        if self.below(3) == 1 {
            self.graph.subgraphs.push(("body".to_string(), Arc::new(body)));
        }
        for target in TARGETS {
            if self.below(3) == 1 {
                self.graph.facts.push((target.to_string(), r#"{"kind":"op", "x":[]}"#.to_string()));
            }
        }
    }

    fn node(&mut self, id: NodeId) {
        let args: Vec<Value> = (0..self.below(4)).map(|_| self.value(3)).collect();
        let args = self.graph.push_values(&args);
        let mut kwargs = Vec::new();
        for key in &TEXTS[..self.below(3)] {
            let key = self.graph.intern(key);
            kwargs.extend([Value::Str(key), self.value(3)]);
        }
        let kwargs = self.graph.push_values(&kwargs);
        let out = if self.below(8) == 7 { Out::Absent } else { self.out(3) };
        let tags = self.maybe(Self::tags).unwrap_or_default();
        let tags = self.graph.intern_tags(tags);
        let (stack, module, desc) = (self.maybe(Self::text), self.maybe(Self::text), self.maybe(Self::text));
        let extra = self.maybe(|m| m.graph.intern(r#"{"line":12,"a b":[ ]}"#));
        let node = self.graph.node_mut(id);
        (node.args, node.kwargs, node.out, node.tags) = (args, kwargs, out, tags);
        (node.stack, node.module, node.desc, node.extra) = (stack, module, desc, extra);
    }

    fn tags(&mut self) -> Tags {
        let kept = self.one(&KEPT);
        Tags {
            recompute: self.maybe(Self::text),
            partitioner_tag: self.maybe(Self::text),
            custom: self.maybe(|m| m.graph.intern(kept)),
            extra: self.maybe(|m| m.graph.intern(r#"{"color":"red"}"#)),
            ac_graph_id: self.maybe(|m| m.one(&INTS)),
            seq_nr: self.maybe(|m| m.one(&INTS)),
            autograd_backward: self.maybe(|m| m.below(2) == 1),
            is_gradient_acc: self.maybe(|m| m.below(2) == 1),
        }
    }

    fn expr(&mut self) -> ExprId {
        let text = self.text();
        let hint = self.maybe(|m| m.one(&INTS));
        self.graph.intern_expr(Expr { text, hint })
    }

    fn value(&mut self, depth: usize) -> Value {
        let leaves = 13;
        match self.below(if depth == 0 { leaves } else { leaves + 4 }) {
            0 => Value::None,
            1 => Value::Bool(self.below(2) == 1),
            2 => Value::Int(self.one(&INTS)),
            3 => Value::Float(self.one(&FLOATS)),
            4 => Value::Str(self.text()),
            5 => Value::Node(self.any_node()),
            6 => {
                let name = format!("missing{}", self.below(2));
                Value::Dangling(self.graph.intern(&name))
            }
            7 => Value::Dtype(self.one(Dtype::ALL)),
            8 => Value::Device(self.text()),
            9 => Value::MemoryFormat(self.text()),
            10 => Value::Layout(self.text()),
            11 => Value::Symbolic(self.expr()),
            12 => Value::Function(self.text()),
            13 => {
                let parts = [Value::Float(self.one(&FLOATS)), Value::Int(self.one(&INTS))];
                Value::Complex(self.graph.push_values(&parts))
            }
            14 => {
                let parts = [self.value(0), self.value(0), self.value(0)];
                Value::Slice(self.graph.push_values(&parts))
            }
            15 => {
                let parts: Vec<Value> = (0..2 * self.below(3)).map(|_| self.value(depth - 1)).collect();
                Value::Dict(self.graph.push_values(&parts))
            }
            _ => {
                let parts: Vec<Value> = (0..self.below(4)).map(|_| self.value(depth - 1)).collect();
                self.graph.list(&parts)
            }
        }
    }

    fn dim(&mut self) -> Dim {
        if self.below(4) == 3 { Dim::Symbolic(self.expr()) } else { Dim::Static(self.below(9) as i64) }
    }

    fn dims(&mut self, rank: usize) -> DimsId {
        let dims: Vec<Dim> = (0..rank).map(|_| self.dim()).collect();
        self.graph.intern_dims(&dims)
    }

    fn tensor(&mut self) -> Out {
        let rank = self.below(4);
        let tensor = Tensor {
            shape: self.dims(rank),
            stride: self.dims(rank),
            dtype: self.one(Dtype::ALL),
            requires_grad: self.maybe(|m| m.below(2) == 1),
            device: self.text(),
            storage: self.maybe(|m| StorageId(m.one(&[0, 5, u32::MAX]))),
            offset: self.one(&[0, 3, i64::MAX]),
            storage_bytes: self.maybe(Self::dim),
            is_guessed: false,
        };
        let id = self.graph.push_tensor(tensor);
        if self.below(9) == 8 {
            self.graph.set_unknown_fields(Holder::Tensor(id), r#"{"layout":"strided"}"#);
        }
        Out::Tensor(id)
    }

    fn out(&mut self, depth: usize) -> Out {
        match self.below(if depth == 0 { 7 } else { 9 }) {
            0 => Out::None,
            1 => Out::Int(self.one(&INTS)),
            2 => Out::SymInt(self.expr()),
            3 => Out::SymBool(self.expr()),
            4 => Out::Other(self.text()),
            5 | 6 => self.tensor(),
            7 => {
                let parts: Vec<Out> = (0..self.below(4)).map(|_| self.out(depth - 1)).collect();
                Out::Tuple(self.graph.push_outs(&parts))
            }
            _ => {
                let pairs = self.below(3);
                let mut parts = Vec::new();
                for _ in 0..pairs {
                    parts.extend([Out::Key(self.text()), self.out(depth - 1)]);
                }
                Out::Dict(self.graph.push_outs(&parts))
            }
        }
    }

    fn edges(&mut self) {
        for _ in 0..self.below(4) {
            let edge = OrderingEdge { before: self.any_node(), after: self.any_node() };
            self.graph.ordering.push(edge);
        }
        for _ in 0..self.below(2) {
            let rename = Rename { by: self.any_node(), of: self.any_node() };
            self.graph.renames.push(rename);
        }
        for _ in 0..self.below(3) {
            let name = self.one(&TEXTS).to_string();
            let members = (0..self.below(3)).map(|_| self.any_node()).collect();
            self.graph.clusters.push(Cluster { name, members });
        }
    }
}
