//! A graph made comparable with another executor: what may be rounded otherwise stays where it arises.
//!
//! # The idea
//!
//! Most operators move elements, or compute each with one rounding: they have one right result, bit for bit. Sums,
//! matrix products, reductions over ranks and transcendental functions do not: nobody promises an order of additions,
//! or the last bit of an exponential. A difference there is none, but what reads it may turn it into any other (a cast
//! to an integer, a comparison). So the result of such a node is returned and read by nobody else: its readers read a
//! new input of the same type. Its operands are returned too, as copies made right before it; from their magnitude
//! follows how far two results may lie apart. All other values stay exact.
//!
//! # How far apart
//!
//! With `u` the unit roundoff of a dtype (2^-24 for f32) and `r` one of the results, two results of
//!
//! - a sum of `n` products of operands whose magnitudes are at most `m1`, `m2`, ... differ by at most
//!   `2 n u' S + 2 u |r|` with `S = n m1 m2 ...`: each of both makes at most `n` roundings of partial sums of at most `S`.
//!   `u'` is that of f32 where 16-bit floats are added on one rank (both sides keep f32 there), else that of the dtype;
//! - a product of `n` numbers by `2 n u |r|`;
//! - a function of one element by `4 u (|r| + m1)`: two units in the last place of each, and the cancellation inside
//!   of functions such as gelu.
//!
//! The larger of 0 and -0 is either: PyTorch's code for one element and for eight at once differ. So the results of a
//! maximum or minimum of floats are equal as numbers, which 0 and -0 are.
//!
//! Where `S` may exceed the largest number of the dtype, the order decides about infinities, and nothing is compared.
//!
//! # What it does not do
//!
//! A node that writes such a result into an argument cannot be cut off; the graph is then not comparable.

use crate::analysis::Collectives;
use crate::analysis::collectives::{CollectiveCall, GroupName};
use crate::graph::{Dtype, DtypeClass, Editor, Graph, NodeId, Op, Out, Value};
use crate::ops::{Binary, Collective, Kind, Matmul, Ops, Reduce, Unary};

/// A graph whose values have one right answer, but for some that are returned.
#[derive(Clone, Debug)]
pub struct Comparable {
    /// The graph. Its outputs are those that it had, followed by what [`Rounded`] counts.
    pub graph: Graph,
    /// Results that may lie apart, in the order in which they are returned.
    pub rounded: Vec<Rounded>,
}

/// A result that two executors may round otherwise.
#[derive(Clone, PartialEq, Debug)]
pub struct Rounded {
    /// The node's name.
    pub name: String,
    /// Which of the added outputs it is.
    pub result: usize,
    /// Which of the added outputs its operands are.
    pub operands: std::ops::Range<usize>,
    /// How it is rounded.
    pub rounding: Inexact,
}

/// How a result comes to be rounded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Inexact {
    /// Additions of so many products, on one rank.
    Sum(u32),
    /// Additions over so many ranks.
    RankSum(u32),
    /// So many multiplications.
    Product(u32),
    /// A function of each element.
    Function,
    /// A choice between elements, of which 0 and -0 are one.
    Choice,
}

/// The unit roundoff and the largest number of a float.
fn precision(dtype: Dtype) -> Option<(f64, f64)> {
    let power = |n: i32| 2f64.powi(n);
    Some(match dtype {
        Dtype::F64 => (power(-53), f64::MAX),
        Dtype::F32 => (power(-24), f64::from(f32::MAX)),
        Dtype::F16 => (power(-11), 65504.0),
        Dtype::BF16 => (power(-8), 3.3e38),
        _ => return None,
    })
}

impl Inexact {
    /// How far two results of dtype `dtype` near `result` may lie apart; `magnitudes` are the largest ones of the
    /// operands. `None` where nothing can be said.
    pub fn tolerance(self, dtype: Dtype, result: f64, magnitudes: &[f64]) -> Option<f64> {
        let (unit, largest) = precision(dtype)?;
        let finite = |x: f64| x.is_finite().then_some(x);
        let size = finite(result)?.abs();
        match self {
            Inexact::Sum(n) | Inexact::RankSum(n) => {
                let n = f64::from(n);
                let most = finite(n * magnitudes.iter().product::<f64>())?;
                let kept = match self {
                    Inexact::Sum(_) => unit.min(2f64.powi(-24)),
                    _ => unit,
                };
                (most < largest / 2.0).then_some(2.0 * n * kept * most + 2.0 * unit * size)
            }
            Inexact::Product(n) => {
                let most = magnitudes.iter().map(|m| m.max(1.0)).product::<f64>();
                (most.powi(n as i32) < largest / 2.0).then_some(2.0 * f64::from(n) * unit * size)
            }
            Inexact::Function => {
                let most = magnitudes.iter().fold(0.0, |a: f64, &b| a.max(b));
                Some(4.0 * unit * (size + finite(most)?))
            }
            Inexact::Choice => Some(0.0),
        }
    }
}

/// How the result of `node` is rounded, with its operands; `None` where it has one right value.
fn rounding(
    graph: &Graph,
    ops: &Ops,
    collectives: &Collectives,
    node: NodeId,
) -> Result<Option<(Inexact, Vec<NodeId>)>, String> {
    let Some(info) = ops.call(graph, node) else { return Ok(None) };
    let first = |of: NodeId| match graph.node(of).out {
        Out::Tuple(outs) => match graph.outs(outs).first() {
            Some(&Out::Tensor(tensor)) => Some(graph.tensor(tensor)),
            _ => None,
        },
        _ => graph.tensor_of(of),
    };
    if first(node).is_none_or(|tensor| tensor.dtype.class() < DtypeClass::Float) {
        return Ok(None);
    }
    let numel = |of: NodeId| first(of).and_then(|tensor| graph.numel(tensor)).unwrap_or(0);
    let not = |what: &str| {
        Err(format!("{} ({what}) has no one right result, and is not cut off", graph.name(node)))
    };
    let operands: Vec<NodeId> = {
        let tensors = graph.inputs(node).into_iter().filter(|&input| graph.tensor_of(input).is_some());
        tensors.collect()
    };
    let found = match info.kind {
        Kind::Reduce(op @ (Reduce::Sum | Reduce::Mean | Reduce::Prod)) => {
            let n = operands.first().map_or(0, |&operand| numel(operand)) / numel(node).max(1);
            let n = u32::try_from(n.max(1)).unwrap_or(u32::MAX);
            if op == Reduce::Prod { Inexact::Product(n) } else { Inexact::Sum(n) }
        }
        Kind::Reduce(Reduce::Amax | Reduce::Amin)
        | Kind::Binary(Binary::Maximum | Binary::Minimum | Binary::ClampMin | Binary::ClampMax)
        | Kind::Clamp => Inexact::Choice,
        Kind::Cumsum => Inexact::Sum(u32::try_from(numel(node).max(1)).unwrap_or(u32::MAX)),
        Kind::Matmul(Matmul::Mm | Matmul::Bmm) => {
            let shape = operands.first().and_then(|&a| graph.tensor_of(a)).map(|t| graph.dims(t.shape));
            let inner = shape.and_then(|shape| shape.last()).and_then(|dim| dim.known()).unwrap_or(0);
            Inexact::Sum(u32::try_from(inner.max(1)).unwrap_or(u32::MAX))
        }
        Kind::Matmul(_) => return not("a matrix product of another form"),
        Kind::Collective(Collective::AllReduce | Collective::ReduceScatter) => {
            let Some(call) = collectives.launch_at(node).map(|launch| &collectives.calls[launch]) else {
                return Ok(None);
            };
            let n = members(graph, call);
            match call.reduce_op.map(str::to_ascii_lowercase).as_deref() {
                // Two numbers are added with one rounding, in either order.
                Some("sum") if n > 2 => Inexact::RankSum(n),
                Some("avg") if n > 1 => Inexact::RankSum(n),
                Some("product") if n > 2 => Inexact::Product(n),
                Some("max" | "min") if n > 1 => Inexact::Choice,
                _ => return Ok(None),
            }
        }
        Kind::Unary(op) if op.is_rational() || op == Unary::Sqrt => return Ok(None),
        Kind::Unary(_) | Kind::Binary(Binary::Pow) => Inexact::Function,
        _ => return Ok(None),
    };
    match info.mutated().next() {
        Some(_) => not("it writes in place"),
        None => Ok(Some((found, operands))),
    }
}

/// How many ranks take part.
fn members(graph: &Graph, call: &CollectiveCall) -> u32 {
    let group = graph.world.groups.iter().find(|group| GroupName::Text(&group.name) == call.group);
    group.map_or(u32::MAX, |group| group.size)
}

/// Makes `graph` comparable, or says which node prevents it. `ops` are its operators.
pub fn comparable(graph: &Graph, ops: &Ops) -> Result<Comparable, String> {
    let collectives = Collectives::new(graph, ops);
    let (mut editor, mut rounded) = (Editor::new(graph), Vec::new());
    let mut added: Vec<Value> = Vec::new();
    // What is read instead of a node, where that is another.
    let mut instead: Vec<NodeId> = graph.ids().collect();
    for node in graph.ids() {
        let Some((how, operands)) = rounding(graph, ops, &collectives, node)? else { continue };
        let from = added.len();
        for &operand in &operands {
            added.push(Value::Node(copy_before(&mut editor, node, instead[operand.index()])));
        }
        let operands = from..added.len();
        for (value, readers) in results(graph, &collectives, node) {
            let name = graph.name(node).to_string();
            rounded.push(Rounded { name, result: added.len(), operands: operands.clone(), rounding: how });
            added.push(Value::Node(readers.first().copied().unwrap_or(value)));
            let stand_in = input_like(&mut editor, value);
            for &reader in &readers {
                instead[reader.index()] = stand_in;
                for user in editor.users(reader).to_vec() {
                    if !readers.contains(&user) {
                        editor.replace_input(user, reader, stand_in);
                    }
                }
            }
        }
    }
    if added.is_empty() {
        return Ok(Comparable { graph: graph.clone(), rounded });
    }
    let Some(output) = graph.output() else { return Err("the graph has no output".into()) };
    let mut returned: Vec<Value> = match editor.graph().args(output) {
        [Value::List(list)] => editor.graph().values(*list).to_vec(),
        values => values.to_vec(),
    };
    returned.extend(added);
    let list = editor.graph_mut().list(&returned);
    editor.set_args(output, &[list]);
    Ok(Comparable { graph: editor.finish(), rounded })
}

/// The tensors that a node gives, each with the nodes through which it is read: itself, or the waits for it.
fn results(graph: &Graph, collectives: &Collectives, node: NodeId) -> Vec<(NodeId, Vec<NodeId>)> {
    let Some(launch) = collectives.launch_at(node) else { return vec![(node, vec![node])] };
    let mut found: Vec<(NodeId, Vec<NodeId>)> = Vec::new();
    for &wait in &collectives.waits[launch] {
        // Back over waits for waits, to the collective or an item of it.
        let mut value = wait;
        while let Some(&Value::Node(of)) = graph.args(value).first() {
            let is_wait = collectives.waits[launch].contains(&of);
            value = of;
            if !is_wait {
                break;
            }
        }
        match found.iter_mut().find(|(known, _)| *known == value) {
            Some((_, waits)) => waits.push(wait),
            None => found.push((value, vec![wait])),
        }
    }
    found
}

/// A contiguous copy of `operand`, made right before `node`.
fn copy_before(editor: &mut Editor, node: NodeId, operand: NodeId) -> NodeId {
    let base = format!("operand_of_{}", editor.graph().name(node));
    let graph = editor.graph_mut();
    let format = Value::MemoryFormat(graph.intern("contiguous_format"));
    let tensor = graph.tensor_of(operand).copied();
    let out = tensor.and_then(|tensor| Some((graph.sizes(tensor.shape)?, tensor)));
    let out = match out {
        Some((sizes, tensor)) => graph.contiguous(&sizes, tensor.dtype, tensor.device),
        None => Out::Absent,
    };
    let args = [Value::Node(operand)];
    editor.insert_before(Some(node), &base, "aten.clone.default", &args, &[("memory_format", format)], out)
}

/// A new input of the type of `value`.
fn input_like(editor: &mut Editor, value: NodeId) -> NodeId {
    let base = format!("instead_of_{}", editor.graph().name(value));
    let out = editor.graph().node(value).out;
    let first = editor.first();
    let id = editor.insert_before(first, &base, &base, &[], &[], out);
    let graph = editor.graph_mut();
    let name = graph.name(id).to_string();
    let target = graph.intern_target(&name);
    let node = graph.node_mut(id);
    (node.op, node.target) = (Op::Placeholder, target);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(text: &str) -> Graph {
        crate::format::text::parse(text.as_bytes()).unwrap().graph
    }

    #[test]
    fn readers_of_a_sum_read_an_input() {
        let before =
            graph("x = input : f32[4, 4]\ny = sum(x, [1])\nz = relu(y)\ni = cast(z, i32)\noutput (z, i)\n");
        let ops = Ops::of(&before);
        let after = comparable(&before, &ops).unwrap();
        let text = crate::format::text::print_graph(&after.graph);
        assert!(text.contains("= relu(instead_of_y)"), "{text}");
        let rounded = &after.rounded[0];
        assert_eq!((rounded.result, rounded.operands.clone()), (1, 0..1));
        assert_eq!((rounded.name.as_str(), rounded.rounding), ("y", Inexact::Sum(4)));
        // What reads a sum and is one itself returns what it reads: the input.
        let chain = graph("x = input : f32[4, 4]\ny = sum(x, [1])\nz = sum(y, [0])\noutput (z)\n");
        let text = crate::format::text::print_graph(&comparable(&chain, &Ops::of(&chain)).unwrap().graph);
        assert!(text.contains("= clone(instead_of_y"), "{text}");
        // Done once, nothing is left to do but to return the same again.
        let again = comparable(&after.graph, &Ops::of(&after.graph)).unwrap();
        assert_eq!(again.rounded[0].rounding, Inexact::Sum(4));
    }

    #[test]
    fn sums_over_three_ranks_are_cut_off_after_the_wait() {
        let text = |ranks: &str| {
            format!(
                "world 3 ranks, groups dp = [{ranks}]\nx = input : f32[4]\nr = all_reduce(x, \"sum\", dp)\n\
                 w = wait(r)\nv = wait(w)\ny = relu(w)\nz = relu(v)\noutput (y, z)\n"
            )
        };
        let before = graph(&text("0 1 2"));
        let after = comparable(&before, &Ops::of(&before)).unwrap();
        let text = crate::format::text::print_graph(&after.graph);
        // A wait for a wait is given the input too, which it passes on.
        assert!(text.contains("= relu(instead_of_r)") && text.contains("= wait(instead_of_r)"), "{text}");
        assert!(text.contains("= wait(r)") && !text.contains("relu(w)"), "{text}");
    }

    #[test]
    fn what_lies_apart_and_what_does_not() {
        let sum = Inexact::Sum(4);
        let near = sum.tolerance(Dtype::F32, 10.0, &[5.0]).unwrap();
        assert!(near > 4e-6 && near < 2e-5, "{near}");
        // A 16-bit sum on one rank is rounded once, over ranks at each step.
        let one = sum.tolerance(Dtype::BF16, 10.0, &[5.0]).unwrap();
        let ranks = Inexact::RankSum(4).tolerance(Dtype::BF16, 10.0, &[5.0]).unwrap();
        assert!(one < 0.1 && ranks > 0.5, "{one} {ranks}");
        assert_eq!(Inexact::RankSum(4).tolerance(Dtype::F16, 10.0, &[30_000.0]), None);
        assert_eq!(sum.tolerance(Dtype::F32, f64::INFINITY, &[5.0]), None);
        assert_eq!(sum.tolerance(Dtype::I32, 1.0, &[5.0]), None);
        assert_eq!(Inexact::Choice.tolerance(Dtype::F32, 0.0, &[]), Some(0.0));
        let largest = graph("x = input : f32[4]\ny = neg(x)\nz = maximum(x, y)\nv = abs(z)\noutput (v)\n");
        let after = comparable(&largest, &Ops::of(&largest)).unwrap();
        assert_eq!(after.rounded[0].rounding, Inexact::Choice);
        assert!(crate::format::text::print_graph(&after.graph).contains("= abs(instead_of_z)"));
    }
}
