//! What the interpreter asks of a domain of values.
//!
//! A tensor is an array of 64-bit *cells*. The interpreter moves cells and never looks inside: views, copies,
//! concatenations, gathers and the movement of collectives are the same for every domain. A [`Domain`] says what
//! a cell is, how it falls into parts when memory is read under another element size, and what the computing
//! operators give.
//!
//! Laws of a domain, which the tests of each domain check:
//! 1. `join(split(c)) = c`.
//! 2. Everything is a function of its arguments: the same call gives the same cells on every rank and in every
//!    run.
//! 3. Results are computed element by element where the operator is: element i of a pointwise result depends on
//!    element i of the operands alone.

use super::number::Number;
use crate::graph::{Dtype, NodeId};
use crate::ops::{Binary, Reduce, Unary};

/// Why a step gives no value.
#[derive(Clone, PartialEq, Debug)]
pub enum Trouble {
    /// The oracle cannot compute it.
    Refuse(String),
    /// The operator itself would raise an error.
    Raise(String),
    /// An argument has no value: its node has not run, or no node has its name.
    Undefined(Option<NodeId>),
    /// Members of a group do not start the same collective: how.
    Apart(String),
}

/// The result of a step or of a part of one.
pub type Outcome<T> = Result<T, Trouble>;

/// [`Trouble::Refuse`] with a formatted reason.
macro_rules! refuse {
    ($($text:tt)*) => { $crate::domain::Trouble::Refuse(format!($($text)*)) };
}

/// [`Trouble::Raise`] with a formatted reason.
macro_rules! raise {
    ($($text:tt)*) => { $crate::domain::Trouble::Raise(format!($($text)*)) };
}

pub(crate) use {raise, refuse};

/// An operand of a pointwise function: as many elements as the result, or one number for all.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// One cell per element.
    Cells(&'a [u64]),
    /// One number for all elements. PyTorch keeps its precision until the operator has computed.
    Number(Number),
}

/// How a quotient is rounded to an integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Rounding {
    True,
    Floor,
    Trunc,
    /// The same, with every step of the computation rounded to the operands' dtype: so PyTorch divides tensors of
    /// 16-bit floats by each other, if the divisor has more than one element.
    FloorSteps,
    TruncSteps,
}

/// A function of corresponding elements. The operands have one dtype; comparisons and predicates give bools.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pointwise {
    /// One operand. Of `gelu`, whether it is the tanh approximation.
    Unary(Unary, bool),
    /// Two operands; `alpha` multiplies the second one of `Add` and `Sub`.
    Binary(Binary, Number, Rounding),
    /// a * b + c, rounded once.
    Fma,
    /// Condition (bools), value if true, value if false.
    Where,
    /// The complex conjugate.
    Conj,
    /// A function without kernel, by its key (operator and constants), and the dtype of its results.
    Opaque(u64, Dtype),
}

/// A reduction over ranks by a collective.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum RankReduce {
    Sum,
    Avg,
    Max,
    Min,
    Product,
    Band,
    Bor,
    Bxor,
}

impl RankReduce {
    /// The name that nodes use.
    pub fn name(self) -> &'static str {
        match self {
            RankReduce::Sum => "sum",
            RankReduce::Avg => "avg",
            RankReduce::Max => "max",
            RankReduce::Min => "min",
            RankReduce::Product => "product",
            RankReduce::Band => "band",
            RankReduce::Bor => "bor",
            RankReduce::Bxor => "bxor",
        }
    }

    /// The inverse of [`RankReduce::name`].
    pub fn parse(name: &str) -> Option<RankReduce> {
        use RankReduce::*;
        [Sum, Avg, Max, Min, Product, Band, Bor, Bxor].into_iter().find(|op| op.name() == name)
    }
}

/// A random draw per element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Draw {
    /// Uniform in [0, 1).
    Uniform,
    /// Standard normal (approximately, in Numbers).
    Normal,
    /// 1 with this probability, else 0.
    Bernoulli(f64),
    /// Of an operator that is not modelled, by its key.
    Opaque(u64),
}

/// The sizes of a batch of matrix products: `batch` times (m x k) by (k x n).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct MatmulSize {
    pub batch: usize,
    pub m: usize,
    pub k: usize,
    pub n: usize,
    /// Whether both were vectors, whose product libraries compute in another order than that of matrices.
    pub of_vectors: bool,
}

/// What is added to a matrix product before it is rounded: beta * bias + alpha * product.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Addend<'a> {
    pub bias: &'a [u64],
    pub beta: Number,
    pub alpha: Number,
}

/// A kind of value. See the module for its laws. It is asked through a table of its functions, as a call computes many
/// elements: so kernels are compiled once, and not for each domain.
pub trait Domain: Sync {
    /// Its name, for people.
    fn name(&self) -> &'static str;

    /// Whether an element that was computed in one dtype is another one where it is seen under another dtype. It is where cells
    /// are bits.
    fn tells_dtypes_apart(&self) -> bool {
        false
    }

    /// Whatever is asked from here on is asked for this node.
    fn enter(&self, _node: NodeId) {}

    /// The lower and the upper half of a cell that stands for `bytes` bytes.
    fn split(&self, cell: u64, bytes: u8) -> (u64, u64);

    /// A cell of `bytes` bytes from its halves.
    fn join(&self, low: u64, high: u64, bytes: u8) -> u64;

    /// Element `index` of the graph input with this key.
    fn input(&self, key: u64, index: u64, dtype: Dtype) -> u64;

    /// A number as an element.
    fn constant(&self, number: Number, dtype: Dtype) -> u64;

    /// Elements of dtype `from` as elements of dtype `to`.
    fn cast(&self, cells: &[u64], from: Dtype, to: Dtype) -> Outcome<Vec<u64>>;

    /// An element as a Python number.
    fn number(&self, cell: u64, dtype: Dtype) -> Number;

    /// Elements as integers that can select others; `None` where the domain does not know them.
    fn integers(&self, cells: &[u64], dtype: Dtype) -> Option<Vec<i64>>;

    /// Elements as integers that select others, each with whether it might be another one; `None` where the domain does not
    /// know them.
    fn indices(&self, cells: &[u64], dtype: Dtype) -> Option<Vec<(i64, bool)>> {
        Some(self.integers(cells, dtype)?.into_iter().map(|index| (index, false)).collect())
    }

    /// The element of `of` that an index selects that might be any of theirs. `from_end`: one that is negative counts from
    /// the end.
    fn by_index(&self, index: u64, from_end: bool, dtype: Dtype, of: &[u64]) -> u64 {
        let _ = (index, from_end, dtype);
        of.first().copied().unwrap_or_default()
    }

    /// A pointwise function of `count` elements. `dtype` is that of the operands.
    fn pointwise(
        &self,
        function: Pointwise,
        dtype: Dtype,
        operands: &[Operand],
        count: usize,
    ) -> Outcome<Vec<u64>>;

    /// Reduces each run of `run` elements to one. `Any` and `All` take and give bools.
    fn reduce(&self, op: Reduce, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>>;

    /// Running sums over each run of `run` elements.
    fn cumsum(&self, dtype: Dtype, cells: &[u64], run: usize) -> Outcome<Vec<u64>>;

    /// Matrix products of row-major operands.
    fn matmul(
        &self,
        size: MatmulSize,
        dtype: Dtype,
        a: &[u64],
        b: &[u64],
        addend: Option<Addend>,
        out: Dtype,
    ) -> Outcome<Vec<u64>>;

    /// Reduces over ranks, element by element; the parts are in the order of the group.
    fn across_ranks(&self, op: RankReduce, dtype: Dtype, parts: &[&[u64]]) -> Outcome<Vec<u64>>;

    /// `count` random elements. `key` says which execution of which rank draws.
    fn draw(&self, draw: Draw, key: u64, dtype: Dtype, count: usize) -> Outcome<Vec<u64>>;

    /// Output `output` of an operator without kernel: a function of `key` (the operator with all its inputs) and
    /// the element's position. `what` names the operator for a refusal.
    fn uninterpreted(
        &self,
        key: u64,
        output: u64,
        dtype: Dtype,
        count: usize,
        what: &str,
    ) -> Outcome<Vec<u64>>;

    /// Whether operators without kernel can be executed.
    fn interprets_everything(&self) -> bool;
}
