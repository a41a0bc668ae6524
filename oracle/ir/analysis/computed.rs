//! What a node computes, as a number: by it nodes of two graphs are told to be the same without looking at their names.
//!
//! A node's number is made of its operator, its arguments and, for a node among them, that node's number. So it stands
//! for the whole expression over the inputs of the graph, which count by position. There are two numbers. The *exact*
//! one takes everything in. The *rough* one leaves out numbers and devices, which a compiler may bake in rank by rank.
//!
//! What one rank sends another receives, so messages count by their number in the list alone, whatever they carry.
//!
//! It knows nothing of writes: nodes that read one value before and after a write in place have the same number. Two
//! nodes with different numbers may still be equal. So a number can tell that two graphs launch the same things in
//! another order, and not that they compute the same.

use crate::graph::{Graph, Op, Span, Value};
use crate::ops::{Kind, Ops};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// The numbers of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Computed {
    /// Of everything.
    pub exact: u64,
    /// Without numbers and devices.
    pub rough: u64,
}

/// The numbers of all nodes. Linear in the size of the graph.
pub fn computed(graph: &Graph) -> Vec<Computed> {
    let mut all: Vec<Computed> = Vec::with_capacity(graph.len());
    let ops = Ops::of(graph);
    let (mut inputs, mut messages) = (0u32, 0u32);
    for id in graph.ids() {
        let op = graph.node(id).op;
        let kind = ops.get(graph, id).kind;
        let mut hashing =
            Hashing { graph, known: &all, exact: FxHasher::default(), rough: FxHasher::default() };
        hashing.both(&op);
        if op == Op::Placeholder {
            hashing.both(&inputs);
            inputs += 1;
        } else if matches!(kind, Kind::Collective(collective) if collective.is_message()) {
            hashing.both(&("message", messages));
            messages += 1;
        } else {
            hashing.both(&graph.target(id));
            graph.args(id).iter().for_each(|&value| hashing.value(value));
            for (key, value) in graph.kwargs(id) {
                hashing.both(&key);
                hashing.value(value);
            }
        }
        let computed = Computed { exact: hashing.exact.finish(), rough: hashing.rough.finish() };
        all.push(computed);
    }
    all
}

struct Hashing<'a> {
    graph: &'a Graph,
    /// The numbers of the nodes before.
    known: &'a [Computed],
    exact: FxHasher,
    rough: FxHasher,
}

impl Hashing<'_> {
    fn both(&mut self, what: &impl Hash) {
        what.hash(&mut self.exact);
        what.hash(&mut self.rough);
    }

    fn value(&mut self, value: Value) {
        self.both(&std::mem::discriminant(&value));
        match value {
            Value::None => {}
            Value::Bool(bool) => bool.hash(&mut self.exact),
            Value::Int(int) => int.hash(&mut self.exact),
            Value::Float(float) => float.to_bits().hash(&mut self.exact),
            Value::Device(device) => self.graph.text(device).hash(&mut self.exact),
            Value::Symbolic(expr) => self.graph.text(self.graph.expr(expr).text).hash(&mut self.exact),
            Value::Complex(span) => self.values(span),
            Value::Node(node) => {
                // A reference forward is a fault of the graph; nothing is known of it.
                let known = self.known.get(node.index());
                known.map(|of| of.exact).hash(&mut self.exact);
                known.map(|of| of.rough).hash(&mut self.rough);
            }
            Value::Str(text)
            | Value::Dangling(text)
            | Value::MemoryFormat(text)
            | Value::Layout(text)
            | Value::Function(text) => self.both(&self.graph.text(text)),
            Value::Dtype(dtype) => self.both(&dtype),
            Value::List(span) | Value::Slice(span) | Value::Dict(span) => self.values(span),
        }
    }

    fn values(&mut self, span: Span) {
        self.both(&span.len());
        self.graph.values(span).iter().for_each(|&value| self.value(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text;

    #[test]
    fn names_and_order_do_not_count_and_arguments_do() {
        let of = |body: &str| {
            let text = format!("x = input : f32[4]\ny = input : f32[4]\n{body}\noutput (a, b)");
            let case = text::parse(&text).unwrap_or_else(|e| panic!("{}", e.render(None)));
            let graph = &case.graph;
            let all = computed(graph);
            ["a", "b"].map(|name| all[graph.find(name).unwrap().index()])
        };
        let [a, b] = of("a = add(x, 1)\nb = add(y, 1)");
        assert!(a.exact != b.exact && a.rough != b.rough);
        assert_eq!(of("b = add(x, 1)\na = add(y, 1)"), [b, a]);
        let [c, d] = of("a = add(x, 2)\nb = mul(y, 1)");
        assert!(a.exact != c.exact && a.rough == c.rough && b.rough != d.rough);
    }

    #[test]
    fn a_message_is_the_same_on_both_ends() {
        let of = |message: &str| {
            let text = format!(
                "world 2 ranks, groups pp = [0 1]\nx = input : f32[4]\nm = {message}\nw = wait(m)\ny = relu(w)\noutput (y)"
            );
            let case = text::parse(&text).unwrap_or_else(|e| panic!("{}", e.render(None)));
            computed(&case.graph)[case.graph.find("y").unwrap().index()]
        };
        assert_eq!(of("send(x, 1, 0, pp)"), of("recv(x, 0, 0, pp)"));
        assert_ne!(of("send(x, 1, 0, pp)"), of("neg(x)"));
    }
}
