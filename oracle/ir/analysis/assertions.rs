//! Assertions that stop no run which the others let through.
//!
//! An assertion does nothing but stop a run. So one that cannot fail, or that another assertion implies, may come and go.
//! What cannot fail: what a record says of a tensor, a constant that is true, and a comparison of numbers that is
//! always so. Comparisons of integers are brought into the form `sum >= 0`, in which a sum implies those that are larger
//! by a number.
//!
//! Numbers are known by the nodes that compute them, not by their records, which a pass may have left behind.
//!
//! # What it does not do
//!
//! Tensors are compared by node: of two equal ones it does not know that they are equal.

use super::storages::{Mode, Storages};
use super::{Collectives, Edges};
use crate::expression::at_least_zero;
use crate::graph::{Graph, NodeId, Out, Value};
use crate::ops::{Fill, Kind, Move, Number, OpInfo, Ops};
use rustc_hash::{FxHashMap, FxHashSet};

/// Calls followed from one condition. Conditions are small.
const DEEPEST: u32 = 16;

/// The assertions without which a graph stops as often as with them.
pub fn redundant_assertions(graph: &Graph, ops: &Ops) -> FxHashSet<NodeId> {
    let mut redundant = FxHashSet::default();
    let mut asserted: Vec<Asserted> = Vec::new();
    // Other effects are seen before a later assertion stops the run.
    let mut stretch = 0u32;
    let mut storages: Option<Storages> = None;
    for id in graph.ids() {
        let Some(info) = ops.call(graph, id) else { continue };
        if asserts_a_record(info, graph, id) {
            redundant.insert(id);
        } else if info.kind == Kind::Assert {
            let storages = storages.get_or_insert_with(|| {
                let (edges, collectives) = (Edges::new(graph), Collectives::new(graph, ops));
                Storages::new(graph, ops, &edges, &collectives, Mode::Physical)
            });
            let conditions = Conditions { graph, ops, storages };
            let condition = graph.argument(id, 0, "self").map_or(Condition::Unknown, |of| conditions.of(of));
            asserted.push(Asserted { id, stretch, condition });
        } else if info.acts() {
            stretch += 1;
        }
    }
    // By the part of a sum that is no number, the numbers that are asserted beside it.
    let mut known: FxHashMap<&str, Vec<(i64, u32, NodeId)>> = FxHashMap::default();
    for Asserted { id, stretch, condition } in &asserted {
        if let Condition::AtLeastZero(sums) = condition {
            sums.iter()
                .for_each(|(sum, number)| known.entry(sum).or_default().push((*number, *stretch, *id)));
        }
    }
    let mut same: FxHashMap<NodeId, u32> = FxHashMap::default();
    for Asserted { id, stretch, condition } in &asserted {
        let is_implied = match condition {
            Condition::True => true,
            Condition::Unknown => false,
            // The first of those that take one value stays.
            Condition::Of(node) => *same.entry(*node).or_insert(id.0) != id.0,
            // Of equal ones the first stays, and the others do not count on one another.
            Condition::AtLeastZero(sums) => sums.iter().all(|(sum, number)| {
                let others = known.get(&**sum).into_iter().flatten();
                let implies = |&(other, place, by): &(i64, u32, NodeId)| {
                    by != *id
                        && other <= *number
                        && place <= *stretch
                        && (other < *number || place < *stretch || by < *id)
                };
                (sum == "0" && *number >= 0) || others.copied().any(|other| implies(&other))
            }),
        };
        if is_implied {
            redundant.insert(*id);
        }
    }
    redundant
}

/// The conditions on symbols that a graph asserts, as they are recorded.
pub fn asserted_conditions(graph: &Graph) -> Vec<String> {
    let ops = Ops::of(graph);
    let is_asserted = |id: &NodeId| ops.call(graph, *id).is_some_and(|info| info.kind == Kind::Assert);
    let condition = |id: NodeId| {
        let expr = match graph.arg(id, 0)? {
            Value::Symbolic(expr) => expr,
            Value::Node(node) => match graph.node(node).out {
                Out::SymBool(expr) => expr,
                _ => return None,
            },
            _ => return None,
        };
        Some(graph.text(graph.expr(expr).text).to_string())
    };
    graph.ids().filter(is_asserted).filter_map(condition).collect()
}

/// An assertion.
struct Asserted {
    id: NodeId,
    /// How many other effects take place before it.
    stretch: u32,
    condition: Condition,
}

/// What an assertion asserts.
enum Condition {
    /// What is always true.
    True,
    /// That none of these sums is negative when its number is added.
    AtLeastZero(Vec<(String, i64)>),
    /// That the value of a node is true.
    Of(NodeId),
    /// What may be another thing each time.
    Unknown,
}

/// Reads conditions off a graph.
struct Conditions<'a> {
    graph: &'a Graph,
    ops: &'a Ops,
    storages: &'a Storages,
}

impl Conditions<'_> {
    fn of(&self, value: Value) -> Condition {
        match value {
            Value::Node(node) if node.index() < self.graph.len() && !self.storages.shows_written(node) => {
                let sums = self.text(value, DEEPEST).and_then(|text| at_least_zero(&text));
                match sums {
                    _ if self.is_true(node, DEEPEST) => Condition::True,
                    Some(sums) => Condition::AtLeastZero(sums),
                    None => Condition::Of(node),
                }
            }
            _ if is_nonzero(value) => Condition::True,
            _ => Condition::Unknown,
        }
    }

    /// Whether a tensor that nobody writes was filled with what is true.
    fn is_true(&self, node: NodeId, depth: u32) -> bool {
        let Some(info) = self.ops.call(self.graph, node).filter(|_| depth > 0) else { return false };
        let schema = info.schema.as_ref();
        let given = |name: &str| self.graph.argument(node, schema?.param(name)?, name);
        match info.kind {
            Kind::Fill(Fill::Ones) => true,
            Kind::Fill(Fill::Full) => ["fill_value", "s"].into_iter().find_map(given).is_some_and(is_nonzero),
            Kind::View(_) | Kind::Move(Move::Clone) => match self.graph.arg(node, 0) {
                Some(Value::Node(of)) => !self.storages.shows_written(of) && self.is_true(of, depth - 1),
                _ => false,
            },
            _ => false,
        }
    }

    /// An integer, or a comparison of integers, over nodes that are called `v0`, `v1`, ...
    fn text(&self, value: Value, depth: u32) -> Option<String> {
        let node = match value {
            Value::Int(number) => return Some(number.to_string()),
            Value::Node(node) if node.index() < self.graph.len() && depth > 0 => node,
            _ => return None,
        };
        let sign = match self.ops.call(self.graph, node).map(|info| info.kind) {
            Some(Kind::Number(Number::Add)) => "+",
            Some(Kind::Number(Number::Sub)) => "-",
            Some(Kind::Number(Number::Mul)) => "*",
            Some(Kind::Number(Number::Eq)) => "==",
            Some(Kind::Number(Number::Lt)) => "<",
            Some(Kind::Number(Number::Le)) => "<=",
            Some(Kind::Number(Number::Gt)) => ">",
            Some(Kind::Number(Number::Ge)) => ">=",
            _ => return matches!(self.graph.node(node).out, Out::SymInt(_)).then(|| format!("v{}", node.0)),
        };
        let operand = |at| self.text(self.graph.arg(node, at)?, depth - 1);
        let (left, right) = (operand(0)?, operand(1)?);
        Some(match self.graph.node(node).out {
            Out::SymBool(_) => format!("{left} {sign} {right}"),
            _ => format!("({left} {sign} {right})"),
        })
    }
}

fn is_nonzero(value: Value) -> bool {
    match value {
        Value::Bool(truth) => truth,
        Value::Int(number) => number != 0,
        _ => false,
    }
}

/// Whether a call asserts of a tensor what is recorded of it, and so cannot fail. Source: `remove_assert_ops` in
/// `torch/_inductor/fx_passes/post_grad.py` of PyTorch 2.15, which removes such calls.
fn asserts_a_record(info: &OpInfo, graph: &Graph, id: NodeId) -> bool {
    let Some(Value::Node(of)) = graph.argument(id, 0, "a") else { return false };
    let Some(tensor) = graph.tensor_of(of) else { return false };
    let given = |at, name| graph.argument(id, at, name).filter(|value| *value != Value::None);
    let are = |value: Value, sizes: Option<Vec<i64>>| match (value, sizes) {
        (Value::List(span), Some(sizes)) => {
            graph.values(span).iter().copied().eq(sizes.into_iter().map(Value::Int))
        }
        _ => false,
    };
    info.target == "aten._assert_tensor_metadata.default"
        && given(1, "size").is_none_or(|size| are(size, graph.sizes(tensor.shape)))
        && given(2, "stride").is_none_or(|stride| are(stride, graph.sizes(tensor.stride)))
        && given(3, "dtype").is_none_or(|dtype| dtype == Value::Dtype(tensor.dtype))
        && given(4, "device").is_none_or(|device| device == Value::Device(tensor.device))
        && given(5, "layout")
            .is_none_or(|layout| matches!(layout, Value::Layout(name) if graph.text(name) == "strided"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text;

    /// The names of the assertions that are redundant.
    fn redundant(text: &str) -> Vec<String> {
        let graph = text::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}")).graph;
        let found = redundant_assertions(&graph, &Ops::of(&graph));
        graph.ids().filter(|id| found.contains(id)).map(|id| graph.name(id).to_string()).collect()
    }

    fn of_numbers(lines: &str) -> Vec<String> {
        let head = "symbol u0 unbacked\nk = input : i64[]\nn = item(k) : symint(u0)\n";
        redundant(&format!("{head}{lines}output k\n"))
    }

    #[test]
    fn a_comparison_implies_a_weaker_one() {
        let found = of_numbers(
            "c = operator.ge(n, 0) : symbool(\"u0 >= 0\")\na = assert_scalar(c, \"\")\n\
             d = operator.lt(2, n) : symbool(\"2 < u0\")\nb = assert_scalar(d, \"\")\n\
             e = operator.le(n, 5) : symbool(\"u0 <= 5\")\nf = assert_scalar(e, \"\")\n",
        );
        assert_eq!(found, ["a"]);
        let equal = of_numbers(
            "c = operator.eq(n, 4) : symbool(\"Eq(u0, 4)\")\na = assert_scalar(c, \"\")\n\
             d = operator.lt(n, 5) : symbool(\"u0 < 5\")\nb = assert_scalar(d, \"\")\n\
             e = operator.gt(n, 4) : symbool(\"u0 > 4\")\nf = assert_scalar(e, \"\")\n",
        );
        assert_eq!(equal, ["b"]);
    }

    #[test]
    fn of_equal_ones_the_first_stays() {
        let found = of_numbers(
            "c = operator.ge(n, 1) : symbool(\"u0 >= 1\")\na = assert_scalar(c, \"\")\n\
             d = operator.gt(n, 0) : symbool(\"u0 > 0\")\nb = assert_scalar(d, \"\")\n",
        );
        assert_eq!(found, ["b"]);
    }

    #[test]
    fn a_record_is_not_believed() {
        let found = of_numbers(
            "c = operator.ge(n, 5) : symbool(\"u0 >= 0\")\na = assert_scalar(c, \"\")\n\
             d = operator.ge(n, 2) : symbool(\"u0 >= 2\")\nb = assert_scalar(d, \"\")\n",
        );
        assert_eq!(found, ["b"]);
    }

    #[test]
    fn a_constant_is_true_where_nobody_writes_it() {
        let head = "x = input : bool[]\nc = full([], True, dtype=bool) : bool[]\n";
        let tail = "a = aten._assert_async.msg(c, \"\")\noutput x\n";
        assert_eq!(redundant(&format!("{head}{tail}")), ["a"]);
        assert!(redundant(&format!("{head}w = aten.copy_.default(c, x) : bool[]\n{tail}")).is_empty());
        assert_eq!(
            redundant("x = input : f32[]\na = aten._assert_scalar.default(True, \"\")\noutput x\n"),
            ["a"]
        );
        assert!(
            redundant("x = input : f32[]\na = aten._assert_scalar.default(False, \"\")\noutput x\n")
                .is_empty()
        );
    }
}
