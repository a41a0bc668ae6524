//! Shape rules: what an operator says of its results, from what is recorded of its inputs.
//!
//! # The idea
//!
//! [`infer`] applies the rule of a node's operator to the recorded shapes, strides and dtypes of its inputs. A
//! rule says only what PyTorch guarantees: a size that depends on a symbol or on data is [`Size::Unknown`], and
//! strides are stated where PyTorch fixes them (views, elementwise results, fresh contiguous results). [`check`]
//! compares the rule with what the graph records about the node itself.
//!
//! What views show is computed here for everybody: [`windows`] decodes the arguments of a call, and [`Window`] has the
//! arithmetic. The evaluators hand in the numbers that they hold.
//!
//! A graph as written down may be inconsistent; each node is judged by itself, so one fault is reported once
//! and not again at every later node.
//!
//! # What it does not do
//!
//! It does not judge devices or process groups.

mod call;
mod check;
mod collective;
mod create;
mod layout;
mod matmul;
mod moves;
mod number;
mod opaque;
mod packing;
mod pieces;
mod pointwise;
mod promote;
mod record;
mod reduce;
mod retype;
mod size;
mod view;
mod window;

pub use check::{ShapeFault, check};
pub use layout::{is_contiguous, strides_of_symbolic_view, view as strides_of_view};
pub use packing::{Misplaced, Packing};
pub use promote::{DEFAULT_FLOAT, ResultType, can_cast, promote};
pub use record::{complete, complete_inputs, leaves_strides_open, record, row_major_strides};
pub use size::{Size, Sizes, known};
pub use view::{window, windows};
pub use window::{Given, NoWindow, Shown, Viewed, Window, Windows, dimension};

use super::{ArityError, Kind, OpInfo, Ops, Random};
use crate::graph::{Dtype, Graph, NodeId, Op};
use call::{Call, Rule, Stop, fault};
pub(super) use window::misfit;

/// What a rule says of a node's results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Inferred {
    /// Nothing: the operator is not computed, or the result depends on what is not known.
    Undecided,
    /// The operator returns nothing.
    Nothing,
    /// One result.
    One(Output),
    /// A tuple or list of results.
    Many(Vec<Output>),
}

/// What a rule says of one result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Nothing.
    Undecided,
    /// It is `None`.
    None,
    /// A tensor.
    Tensor(TensorMeta),
    /// A Python number; its value if it is an integer that the rule knows.
    Number(Size),
}

/// What a rule says of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorMeta {
    /// Sizes.
    pub shape: Sizes,
    /// Strides in elements, one per dimension, where the rule fixes them. Those of dimensions of size 1 mean
    /// nothing, nor do any if the tensor has no elements.
    pub stride: Option<Sizes>,
    /// Offset in its storage, in elements.
    pub offset: Size,
    /// Element type, where decided.
    pub dtype: Option<Dtype>,
}

/// An operator cannot take the arguments that a node gives it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ShapeError {
    /// The arguments do not fit the schema.
    #[error(transparent)]
    Arguments(#[from] ArityError),
    /// They fit, but the operator refuses them: a statement such as `cannot view [4, 3] as [5]`.
    #[error("{0}")]
    Statement(String),
}

/// What the rule of `node`'s operator says of its results. Nodes other than calls are undecided.
pub fn infer(graph: &Graph, ops: &Ops, node: NodeId) -> Result<Inferred, ShapeError> {
    if graph.node(node).op != Op::Call {
        return Ok(Inferred::Undecided);
    }
    match rule(graph, ops.get(graph, node), node) {
        Ok(inferred) => Ok(inferred),
        Err(Stop::Undecided) => Ok(Inferred::Undecided),
        Err(Stop::Fault(error)) => Err(error),
    }
}

fn rule(graph: &Graph, info: &OpInfo, node: NodeId) -> Rule<Inferred> {
    match info.kind {
        Kind::GetItem => return number::getitem(graph, node),
        Kind::Number(op) => return Ok(number::computed(graph, node, op)),
        _ => {}
    }
    let schema = info.schema.as_ref().ok_or(Stop::Undecided)?;
    let call = Call::new(graph, node, info, schema)?;
    let inferred = match info.kind {
        Kind::View(kind) => view::infer(&call, kind)?,
        Kind::Move(kind) => moves::infer(&call, kind)?,
        Kind::Cast => moves::cast(&call)?,
        Kind::Fill(kind) => create::fill(&call, kind)?,
        Kind::Arange => create::arange(&call)?,
        Kind::Random(Random::Like | Random::Opaque | Random::Attention) => opaque::infer(&call)?,
        Kind::Random(kind) => create::random(&call, kind)?,
        Kind::Unary(kind) => pointwise::unary(&call, kind)?,
        Kind::Binary(kind) => pointwise::binary(&call, kind)?,
        Kind::Where | Kind::MaskedFill | Kind::Clamp | Kind::Fma | Kind::Pointwise => {
            pointwise::others(&call)?
        }
        Kind::Reduce(kind) => reduce::infer(&call, kind)?,
        Kind::Cumsum => reduce::cumsum(&call)?,
        Kind::Matmul(kind) => matmul::infer(&call, kind)?,
        Kind::Collective(kind) => collective::infer(&call, kind)?,
        Kind::Wait => collective::wait(&call)?,
        Kind::SymSize | Kind::SymNumel | Kind::SymStride => number::of_tensor(&call)?,
        Kind::Item => Inferred::One(Output::Number(Size::Unknown)),
        Kind::Assert | Kind::Effect | Kind::Resize | Kind::Sync(_) => Inferred::Nothing,
        Kind::Opaque => opaque::infer(&call)?,
        Kind::Unknown | Kind::GetItem | Kind::Number(_) => Inferred::Undecided,
    };
    create::placed(&call, graph.node(node).out, &inferred)?;
    written(&call, inferred)
}

/// Where the result is written into an argument (in place, or `out=`), it is that argument; the rule's result
/// must fit it.
fn written(call: &Call, inferred: Inferred) -> Rule<Inferred> {
    if call.schema.returns.is_empty() {
        return Ok(Inferred::Nothing);
    }
    let [result] = call.schema.returns.as_slice() else { return Ok(inferred) };
    if !result.write {
        return Ok(inferred);
    }
    let Some(target) = call.schema.params.iter().find(|p| p.write && p.alias == result.alias) else {
        return Ok(inferred);
    };
    if target.ty != "Tensor" {
        return Ok(Inferred::Many(call.tensors(&target.name)?.into_iter().map(Output::Tensor).collect()));
    }
    let into = call.tensor(&target.name)?;
    if let Inferred::One(Output::Tensor(made)) = &inferred {
        let fits = made.shape.len() == into.shape.len()
            && !made.shape.iter().zip(&into.shape).any(|(&a, &b)| a.differs(b));
        if !fits {
            return fault(format!(
                "{} is {}, but the result is {}",
                target.name,
                call.text(&into.shape),
                call.text(&made.shape)
            ));
        }
        if let (Some(from), Some(to)) = (made.dtype, into.dtype)
            && !can_cast(from, to)
        {
            return fault(format!("{} is {}, but the result is {}", target.name, to.name(), from.name()));
        }
    }
    Ok(Inferred::One(Output::Tensor(into)))
}

/// One fresh or viewed tensor as the result.
fn one(tensor: TensorMeta) -> Rule<Inferred> {
    Ok(Inferred::One(Output::Tensor(tensor)))
}

/// Several tensors as the result.
fn many(tensors: impl IntoIterator<Item = TensorMeta>) -> Rule<Inferred> {
    Ok(Inferred::Many(tensors.into_iter().map(Output::Tensor).collect()))
}
