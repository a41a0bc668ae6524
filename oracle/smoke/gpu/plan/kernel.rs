//! Kernels: what a launch computes.
//!
//! Every kernel but [`Kernel::Interpret`] has a twin in `gpu/kernels/kernels.cu` with the same arithmetic: sums in the
//! order of the interpreter, a product and a sum rounded apart, 16-bit floats computed in f32 and rounded once.

use super::view::Part;
use crate::graph::{Dtype, NodeId};
use crate::semantics::RankReduce;

/// Elementwise arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arithmetic {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a * b
    Mul,
}

/// Functions of one element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Function {
    /// x where it is positive or not a number, else 0
    Relu,
    /// -x
    Neg,
}

/// What a launch computes. Operands are in the order of [`Launch::reads`] and [`Launch::writes`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kernel {
    /// Moves `count` elements: number `from + i` of the read view, in row-major order, to number `to + i` of the
    /// written one. The views have elements of one size.
    Copy {
        /// The first element that is read.
        from: u64,
        /// The first element that is written.
        to: u64,
        /// How many.
        count: u64,
    },
    /// Sets every element to these bits.
    Fill(u64),
    /// One operand of the dtype of the result.
    Unary(Function, Dtype),
    /// Two operands of one dtype and shape.
    Binary(Arithmetic, Dtype),
    /// Converts elements.
    Cast(Dtype, Dtype),
    /// (m x k) by (k x n).
    Matmul(Dtype),
    /// Reduces element `from + i` of all read views, in their order, to element i of the written one.
    AcrossRanks {
        /// The reduction.
        op: RankReduce,
        /// The dtype.
        dtype: Dtype,
        /// The first element that is read.
        from: u64,
    },
    /// The operator of a node, as the interpreter computes it: the host only.
    Interpret,
}

impl Kernel {
    /// Its name; that of the entry point in `kernels.cu` where it has one.
    pub fn name(&self) -> String {
        match self {
            Kernel::Copy { .. } => "copy".to_string(),
            Kernel::Fill(_) => "fill".to_string(),
            Kernel::Unary(function, dtype) => {
                let function = match function {
                    Function::Relu => "relu",
                    Function::Neg => "neg",
                };
                format!("{function}_{}", dtype.short())
            }
            Kernel::Binary(op, dtype) => {
                let op = match op {
                    Arithmetic::Add => "add",
                    Arithmetic::Sub => "sub",
                    Arithmetic::Mul => "mul",
                };
                format!("{op}_{}", dtype.short())
            }
            Kernel::Cast(from, to) => format!("cast_{}_{}", from.short(), to.short()),
            Kernel::Matmul(dtype) => format!("matmul_{}", dtype.short()),
            Kernel::AcrossRanks { op, dtype, .. } => format!("ranks_{}_{}", op.name(), dtype.short()),
            Kernel::Interpret => "interpret".to_string(),
        }
    }

    /// Whether `kernels.cu` has it, as far as reductions over ranks go: the others are made only for dtypes that it
    /// has.
    pub fn is_native(&self) -> bool {
        use Dtype::{BF16, F32, F64, I32, I64};
        match self {
            Kernel::AcrossRanks { op: RankReduce::Sum, dtype, .. } => {
                matches!(dtype, F32 | F64 | BF16 | I32 | I64)
            }
            Kernel::AcrossRanks { op: RankReduce::Avg, dtype, .. } => matches!(dtype, F32 | F64 | BF16),
            Kernel::AcrossRanks { .. } | Kernel::Interpret => false,
            _ => true,
        }
    }
}

/// A kernel with its operands.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// What it computes.
    pub kernel: Kernel,
    /// The rank for which it runs.
    pub rank: u32,
    /// The node for which it runs.
    pub node: NodeId,
    /// What it reads.
    pub reads: Vec<Part>,
    /// What it writes.
    pub writes: Vec<Part>,
}
