//! What an operator does, as far as the oracle needs to know: one variant per meaning, not per overload.
//!
//! Variants are about *meaning*. Whether the result is fresh, a view, or written into an argument follows from
//! the schema: `aten.add.Tensor`, `aten.add_.Tensor` and `aten.add.out` share [`Kind::Binary`].

pub use super::table::communication::{Collective, Sync};
pub use super::table::unary::Unary;
pub use super::table::views::View;

/// The meaning of an operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Another window on the storage of the first tensor argument (or, where the schema says fresh, the same
    /// elements as that window shows).
    View(View),
    /// Moves elements; computes nothing.
    Move(Move),
    /// Converts element types.
    Cast,
    /// Makes a tensor of one value.
    Fill(Fill),
    /// `arange`.
    Arange,
    /// Draws fresh random numbers.
    Random(Random),
    /// One element in, one element out.
    Unary(Unary),
    /// Two elements in (after broadcasting), one out.
    Binary(Binary),
    /// `where(condition, x, y)`.
    Where,
    /// `fma(a, b, c)` = a * b + c.
    Fma,
    /// `clamp(x, min, max)`: either bound may be absent.
    Clamp,
    /// `masked_fill(x, mask, value)`: value where mask, else x.
    MaskedFill,
    /// A function of corresponding elements (after broadcasting and promotion to a float) that the oracle does
    /// not compute. Like [`Kind::Opaque`], but the shape is known.
    Pointwise,
    /// Reduces over dimensions.
    Reduce(Reduce),
    /// Running sum along a dimension.
    Cumsum,
    /// Matrix product.
    Matmul(Matmul),
    /// An all-gather and its like: starts communication.
    Collective(Collective),
    /// Makes the value of a collective usable; `wait_tensors` waits for several.
    Wait,
    /// Python's `operator.getitem` on a tuple or list.
    GetItem,
    /// Arithmetic or comparison of Python numbers and symbolic integers.
    Number(Number),
    /// The size of one dimension as a number.
    SymSize,
    /// The number of elements as a number.
    SymNumel,
    /// The stride of one dimension as a number.
    SymStride,
    /// The value of a one-element tensor as a Python number.
    Item,
    /// Raises unless a number, or the one element of a tensor, is true.
    Assert,
    /// Orders the streams of a device; has no value to compute.
    Sync(Sync),
    /// Acts on something that is no tensor of the graph (an assertion about metadata); has no value to compute.
    Effect,
    /// Gives the storage of its argument another number of bytes: what a smaller one leaves out is gone.
    Resize,
    /// A function of its inputs that the oracle does not compute: Terms treat it as uninterpreted, Numbers draw it.
    Opaque,
    /// Nothing is known: assume an effect.
    Unknown,
}

impl Kind {
    /// Whether each element of the result is made of the corresponding elements of the inputs, after broadcasting.
    pub fn is_elementwise(self) -> bool {
        use Kind::*;
        matches!(self, Unary(_) | Binary(_) | Where | Fma | Clamp | MaskedFill | Pointwise)
    }

    /// Whether each element of the result needs only the corresponding elements of the inputs, after broadcasting: so it
    /// may be written over one of them that is laid out like it.
    pub fn takes_corresponding(self) -> bool {
        self.is_elementwise() || matches!(self, Kind::Cast | Kind::Move(Move::Clone | Move::Copy))
    }
}

impl Kind {
    /// Whether it only moves elements, adds and multiplies, or rounds: two such functions that are equal at a few
    /// random points are equal. Everything else may have thresholds that random points do not meet.
    pub fn is_polynomial(self) -> bool {
        use Kind::*;
        match self {
            View(_) | Cast | Fill(_) | Arange | Random(_) | Fma | Cumsum | Matmul(_) | Collective(_)
            | Wait | GetItem | Number(_) | SymSize | SymNumel | SymStride | Item | Assert | Sync(_)
            | Effect | Resize => true,
            Move(movement) => !movement.selects_by_data(),
            Unary(op) => matches!(op, self::Unary::Neg | self::Unary::Square),
            Binary(op) => {
                matches!(
                    op,
                    self::Binary::Add
                        | self::Binary::Sub
                        | self::Binary::Rsub
                        | self::Binary::Mul
                        | self::Binary::Rmul
                        | self::Binary::Div
                )
            }
            Reduce(op) => matches!(op, self::Reduce::Sum | self::Reduce::Mean | self::Reduce::Prod),
            Where | Clamp | MaskedFill | Pointwise | Opaque | Unknown => false,
        }
    }
}

impl Kind {
    /// Whether it computes with sums, products, quotients, choices and whole numbers alone.
    pub fn is_rational(self) -> bool {
        match self {
            Kind::Unary(op) => op.is_rational(),
            Kind::Binary(op) => op != self::Binary::Pow,
            Kind::Pointwise | Kind::Opaque | Kind::Unknown => false,
            _ => true,
        }
    }
}

impl Kind {
    /// Whether it gives finite numbers where its operands are and nothing overflows. `second`: the second operand, where that is
    /// a number, and else 0.
    pub fn keeps_finite(self, second: f64) -> bool {
        use self::Unary::*;
        match self {
            Kind::Unary(op) => !matches!(
                op,
                Log | Log2 | Log1p | Log10 | Sqrt | Rsqrt | Reciprocal | Tan | Asin | Acos | Acosh | Atanh
            ),
            Kind::Binary(self::Binary::Div) => second != 0.0,
            Kind::Binary(self::Binary::Pow) => second >= 1.0 && second.fract() == 0.0,
            Kind::Binary(op) => {
                !matches!(op, self::Binary::Fmod | self::Binary::Remainder | self::Binary::FloorDivide)
            }
            Kind::Reduce(op) => {
                use self::Reduce::*;
                matches!(op, Sum | Mean | Amax | Amin | Any | All)
            }
            Kind::View(_) | Kind::Move(_) | Kind::Cast | Kind::Fill(_) | Kind::Arange | Kind::Random(_) => {
                true
            }
            Kind::Where | Kind::Fma | Kind::Clamp | Kind::MaskedFill | Kind::Cumsum | Kind::Matmul(_) => true,
            Kind::Collective(_) | Kind::Wait | Kind::GetItem => true,
            _ => false,
        }
    }

    /// Whether it is a function of the elements of its operands: it looks at no strides, draws nothing, and does not
    /// communicate.
    pub fn is_function(self) -> bool {
        use Kind::*;
        !matches!(
            self,
            View(self::View::AsStrided)
                | Move(self::Move::AsStridedScatter)
                | Collective(_)
                | Wait
                | Random(_)
                | Unknown
                | Number(_)
                | SymSize
                | SymNumel
                | SymStride
                | Item
                | Assert
                | Sync(_)
                | Effect
                | Resize
        )
    }
}

/// Movement of elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Move {
    /// `clone`, `contiguous`.
    Clone,
    Cat,
    Stack,
    /// `copy`, `copy_`: the second argument, broadcast and cast to the first one's shape and dtype.
    Copy,
    /// `_foreach_copy_`.
    ForeachCopy,
    SliceScatter,
    SelectScatter,
    AsStridedScatter,
    DiagonalScatter,
    /// `constant_pad_nd`.
    Pad,
    Repeat,
    Flip,
    Roll,
    Index,
    IndexSelect,
    IndexPut,
    Gather,
    Scatter,
    ScatterAdd,
    Embedding,
    /// `_chunk_cat`, `fsdp.chunk_cat`.
    ChunkCat,
    /// `split_with_sizes_copy`, with or without `out=`.
    SplitWithSizesCopy,
    /// `bucketing._pre_bucket_all_gather`.
    PreBucketAllGather,
    /// `bucketing._pre_bucket_reduce_scatter`.
    PreBucketReduceScatter,
    /// `fsdp.all_gather_copy_in`.
    AllGatherCopyIn,
}

impl Move {
    /// The view that shows the part of its first argument which it overwrites, in a copy, by the second one.
    pub fn scatters(self) -> Option<View> {
        match self {
            Move::SliceScatter => Some(View::Slice),
            Move::SelectScatter => Some(View::Select),
            Move::AsStridedScatter => Some(View::AsStrided),
            Move::DiagonalScatter => Some(View::Diagonal),
            _ => None,
        }
    }

    /// Whether what is in a tensor says which elements are moved.
    pub fn selects_by_data(self) -> bool {
        use Move::*;
        matches!(self, Index | IndexSelect | IndexPut | Gather | Scatter | ScatterAdd | Embedding)
    }
}

/// Tensors of one value. The shape comes from a `size` argument or from a tensor argument (`*_like`, `new_*`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Fill {
    /// Uninitialised: poison.
    Empty,
    Zeros,
    Ones,
    /// From the argument called `fill_value`, `value` (`fill`) or `s` (`scalar_tensor`).
    Full,
}

/// Random draws.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Random {
    Rand,
    Randn,
    Bernoulli,
    /// `native_dropout`: (values, mask).
    NativeDropout,
    /// Scaled dot product attention, result not computed: draws only if `dropout_p` is not 0.
    Attention,
    /// Numbers in the shape of the first argument, whatever that holds; result not computed.
    Like,
    /// Another random operator, result not computed.
    Opaque,
}

impl Kind {
    /// Whether the first argument only says shape, dtype and device.
    pub fn only_shape_of_first(self, schema: &super::Schema) -> bool {
        let Some(first) = schema.params.first() else { return false };
        match self {
            Kind::Fill(_) | Kind::Random(Random::Rand | Random::Randn | Random::Like) => first.ty == "Tensor",
            // Without `p` the probabilities are the tensor itself.
            Kind::Random(Random::Bernoulli) => schema.param("p").is_some(),
            // Received data takes the place of what was there.
            Kind::Collective(Collective::Recv) => true,
            // The functional copy has the shape of its first argument.
            Kind::Move(Move::Copy) => !first.write,
            _ => false,
        }
    }
}

/// Functions of two elements. A Python number may stand for either.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Binary {
    /// With `alpha`.
    Add,
    /// With `alpha`.
    Sub,
    /// `rsub(self, other)` = other - alpha * self.
    Rsub,
    Mul,
    /// `rmul(self, other)` = other * self: the number comes first, as `mul_` hands it on.
    Rmul,
    /// True division; with `rounding_mode` floor or trunc.
    Div,
    FloorDivide,
    /// With the sign of the divisor, as in Python.
    Remainder,
    /// With the sign of the dividend, as in C.
    Fmod,
    Pow,
    Maximum,
    Minimum,
    /// `clamp_min`: maximum with a number or tensor.
    ClampMin,
    ClampMax,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    LogicalAnd,
    LogicalOr,
    LogicalXor,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    /// `threshold_backward(grad, self, threshold)`: grad where self > threshold, else 0.
    ThresholdBackward,
}

/// Reductions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Reduce {
    Sum,
    Mean,
    Amax,
    Amin,
    Prod,
    Any,
    All,
}

/// Matrix products.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Matmul {
    Mm,
    Bmm,
    /// `addmm(bias, a, b)`, with `beta` and `alpha`.
    Addmm,
    /// `baddbmm(bias, a, b)`, with `beta` and `alpha`.
    Baddbmm,
    Mv,
    Dot,
    /// `matmul`: any of these by the number of dimensions, with broadcasting of batches.
    General,
}

/// Arithmetic on Python numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Number {
    Add,
    Sub,
    Mul,
    TrueDiv,
    FloorDiv,
    Mod,
    Pow,
    Neg,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
    /// `torch.sym_not`.
    Not,
    /// `torch.sym_sum`: the sum of a list.
    Sum,
    /// `torch.sym_max`.
    Max,
    /// `torch.sym_min`.
    Min,
    /// Any other function of numbers.
    Other,
}
