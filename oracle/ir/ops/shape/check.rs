//! What a graph records about a node's results, against the rule of its operator.

use super::size::text;
use super::{Inferred, Output, ShapeError, Size, TensorMeta, infer};
use crate::graph::{Dim, Dtype, Graph, NodeId, Op, Out, Tensor};
use crate::ops::{Kind, Move, OpInfo, Ops, Unary};
use std::fmt;

/// A recorded result, or the call itself, is not what the operator's rule says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ShapeFault {
    /// The operator cannot take these arguments.
    Refused(ShapeError),
    /// The number of results.
    Count {
        /// As recorded.
        recorded: usize,
        /// By the rule.
        rule: usize,
    },
    /// Another kind of thing, for example a number where the operator returns a tensor.
    Sort {
        /// Which result.
        result: usize,
        /// As recorded.
        recorded: &'static str,
        /// By the rule.
        rule: &'static str,
    },
    /// The shape.
    Shape {
        /// Which result.
        result: usize,
        /// As recorded.
        recorded: String,
        /// By the rule; `?` for a size that it does not decide.
        rule: String,
    },
    /// The element type.
    Dtype {
        /// Which result.
        result: usize,
        /// As recorded.
        recorded: Dtype,
        /// By the rule.
        rule: Dtype,
    },
    /// The strides.
    Stride {
        /// Which result.
        result: usize,
        /// The shape.
        shape: String,
        /// As recorded.
        recorded: String,
        /// By the rule.
        rule: String,
    },
    /// The offset of a view in its storage.
    Offset {
        /// Which result.
        result: usize,
        /// As recorded.
        recorded: i64,
        /// By the rule.
        rule: i64,
    },
    /// The offset of a result in new memory, which begins with it.
    Begins {
        /// As recorded.
        recorded: i64,
    },
    /// The value of an integer.
    Value {
        /// Which result.
        result: usize,
        /// As recorded.
        recorded: i64,
        /// By the rule.
        rule: i64,
    },
}

impl ShapeFault {
    /// Whether it may be none where inputs have other strides.
    pub fn may_follow_from_strides(&self) -> bool {
        matches!(self, ShapeFault::Refused(_) | ShapeFault::Stride { .. } | ShapeFault::Offset { .. })
    }
}

impl fmt::Display for ShapeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let which = |result: &usize| match result {
            0 => String::new(),
            n => format!("result {n} "),
        };
        match self {
            ShapeFault::Refused(error) => write!(f, "{error}"),
            ShapeFault::Count { recorded, rule } => {
                write!(f, "recorded with {recorded} results, but the operator returns {rule}")
            }
            ShapeFault::Sort { result, recorded, rule } => {
                write!(f, "{}recorded as {recorded}, but the operator returns {rule}", which(result))
            }
            ShapeFault::Shape { result, recorded, rule } => {
                write!(f, "{}recorded as {recorded}, but the operator returns {rule}", which(result))
            }
            ShapeFault::Dtype { result, recorded, rule } => {
                let (recorded, rule) = (recorded.name(), rule.name());
                write!(f, "{}recorded as {recorded}, but the operator returns {rule}", which(result))
            }
            ShapeFault::Stride { result, shape, recorded, rule } => write!(
                f,
                "{}recorded as {shape} with strides {recorded}, but the operator returns strides {rule}",
                which(result)
            ),
            ShapeFault::Offset { result, recorded, rule } => {
                write!(f, "{}recorded at offset {recorded}, but the view starts at {rule}", which(result))
            }
            ShapeFault::Begins { recorded } => {
                write!(
                    f,
                    "recorded at offset {recorded}, but the operator returns new memory, from its start"
                )
            }
            ShapeFault::Value { result, recorded, rule } => {
                write!(f, "{}recorded as {recorded}, but the operator returns {rule}", which(result))
            }
        }
    }
}

/// What is recorded about `node`, against the rule of its operator. What is not recorded or not decided is not
/// judged.
pub fn check(graph: &Graph, ops: &Ops, node: NodeId) -> Vec<ShapeFault> {
    let mut faults = Vec::new();
    let recorded = graph.node(node).out;
    // Only the offset of a view means something, and that of an item, which is where its tuple says.
    let info = ops.get(graph, node);
    let is_view = info.is_view() || info.kind == Kind::GetItem;
    if let Out::Tensor(tensor) = recorded
        && graph.node(node).op == Op::Call
        && is_new(info)
        && graph.tensor(tensor).offset != 0
    {
        faults.push(ShapeFault::Begins { recorded: graph.tensor(tensor).offset });
    }
    match infer(graph, ops, node) {
        Err(error) => faults.push(ShapeFault::Refused(error)),
        Ok(Inferred::Undecided | Inferred::Nothing) => {}
        Ok(Inferred::One(output)) => compare(graph, 0, recorded, &output, is_view, &mut faults),
        Ok(Inferred::Many(outputs)) => match recorded {
            Out::Tuple(span) if span.len() == outputs.len() => {
                for (i, (&out, output)) in graph.outs(span).iter().zip(&outputs).enumerate() {
                    compare(graph, i, out, output, is_view, &mut faults);
                }
            }
            Out::Tuple(span) => faults.push(ShapeFault::Count { recorded: span.len(), rule: outputs.len() }),
            Out::Tensor(_) => faults.push(ShapeFault::Count { recorded: 1, rule: outputs.len() }),
            _ => {}
        },
    }
    faults
}

/// Whether the result is certainly new memory. Operators that may hand back their input where it already is what they
/// make, or copy all memory that it lies in, are not: `_unsafe_view`, `copy`, `slice_scatter`, a dropout that does
/// nothing and the floor of integers.
fn is_new(info: &OpInfo) -> bool {
    let computes = match info.kind {
        Kind::Unary(kind) => !matches!(kind, Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc),
        Kind::Move(kind) => kind == Move::Clone,
        Kind::Fill(_) | Kind::Arange | Kind::Cast | Kind::Reduce(_) | Kind::Matmul(_) => true,
        kind => kind.is_elementwise(),
    };
    let schema = info.schema.as_ref();
    let is_fresh = schema.is_some_and(|schema| schema.returns.iter().all(|result| result.alias.is_none()));
    computes && is_fresh && info.undeclared_aliases().is_empty()
}

fn sort(out: Out) -> Option<&'static str> {
    match out {
        Out::Tensor(_) => Some("a tensor"),
        Out::Int(_) | Out::SymInt(_) => Some("a number"),
        Out::Tuple(_) => Some("a tuple"),
        Out::Absent | Out::None | Out::SymBool(_) | Out::Other(_) | Out::Dict(_) | Out::Key(_) => None,
    }
}

fn compare(
    graph: &Graph,
    result: usize,
    recorded: Out,
    rule: &Output,
    is_view: bool,
    faults: &mut Vec<ShapeFault>,
) {
    let expected = match rule {
        Output::Undecided | Output::None => return,
        Output::Tensor(_) => "a tensor",
        Output::Number(_) => "a number",
    };
    if let Some(found) = sort(recorded).filter(|&s| s != expected) {
        faults.push(ShapeFault::Sort { result, recorded: found, rule: expected });
        return;
    }
    match (recorded, rule) {
        (Out::Tensor(tensor), Output::Tensor(rule)) => {
            let recorded = graph.tensor(tensor);
            compare_tensors(graph, result, recorded, rule, faults);
            if is_view
                && let Size::Known(rule) = rule.offset
                && recorded.offset != rule
            {
                faults.push(ShapeFault::Offset { result, recorded: recorded.offset, rule });
            }
        }
        (Out::Int(recorded), &Output::Number(Size::Known(rule))) if recorded != rule => {
            faults.push(ShapeFault::Value { result, recorded, rule });
        }
        _ => {}
    }
}

fn compare_tensors(
    graph: &Graph,
    result: usize,
    recorded: &Tensor,
    rule: &TensorMeta,
    faults: &mut Vec<ShapeFault>,
) {
    if let Some(rule) = rule.dtype.filter(|&rule| rule != recorded.dtype) {
        faults.push(ShapeFault::Dtype { result, recorded: recorded.dtype, rule });
    }
    let (shape, of) = (graph.dims(recorded.shape), graph.dims(recorded.stride));
    let differs = |dim: Dim, size: Size| Size::from(dim).differs(size);
    let show = |dims: &[Dim]| text(graph, &dims.iter().map(|&dim| dim.into()).collect::<Vec<Size>>());
    if shape.len() != rule.shape.len() || shape.iter().zip(&rule.shape).any(|(&a, &b)| differs(a, b)) {
        let (recorded, rule) = (show(shape), text(graph, &rule.shape));
        faults.push(ShapeFault::Shape { result, recorded, rule });
        return;
    }
    let Some(by) = &rule.stride else { return };
    if shape.contains(&Dim::Static(0)) {
        return;
    }
    let matter = |i: &usize| shape.get(*i) != Some(&Dim::Static(1));
    let wrong = of.len() != by.len() || (0..of.len()).filter(matter).any(|i| differs(of[i], by[i]));
    if wrong {
        let (shape, recorded, rule) = (show(shape), show(of), text(graph, by));
        faults.push(ShapeFault::Stride { result, shape, recorded, rule });
    }
}
