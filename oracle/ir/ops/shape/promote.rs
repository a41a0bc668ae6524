//! Type promotion. Source: `c10/core/ScalarType.h` (`promoteTypes`), `aten/src/ATen/native/TypeProperties.cpp`
//! (`result_type`).
//!
//! Operands fall into three ranks: tensors with dimensions, tensors without, and Python numbers. Within a rank,
//! types are promoted pairwise; an operand of a lower rank changes the result only if its class (bool, int,
//! float, complex) is higher.

use crate::graph::{Dtype, DtypeClass};

/// The dtype of a Python float where nothing else decides: `torch.get_default_dtype()` as PyTorch starts.
pub const DEFAULT_FLOAT: Dtype = Dtype::F32;

/// The smallest dtype that both convert to; `None` where PyTorch refuses (8-bit floats and wide unsigned
/// integers promote with few others).
pub fn promote(a: Dtype, b: Dtype) -> Option<Dtype> {
    use Dtype::{C128, F8E4M3, F8E5M2, F32, F64, I8, I16, U8, U16, U32, U64};
    use DtypeClass::{Complex, Float, Int};
    if a == b {
        return Some(a);
    }
    let (a, b) = if a.class() <= b.class() { (a, b) } else { (b, a) };
    if [a, b].iter().any(|d| matches!(d, F8E4M3 | F8E5M2)) {
        return None;
    }
    let wide_unsigned = |d| matches!(d, U16 | U32 | U64);
    match (a.class(), b.class()) {
        (Float, Float) => Some(if a == F64 || b == F64 { F64 } else { F32 }),
        (Float, Complex) if a == F64 => Some(C128),
        (Complex, Complex) => Some(C128),
        (DtypeClass::Bool | Int, Int | Complex) if wide_unsigned(a) || wide_unsigned(b) => None,
        (Int, Int) => Some(match (a, b) {
            (U8, I8) | (I8, U8) => I16,
            _ if a.itemsize() > b.itemsize() => a,
            (U8, signed) | (signed, U8) => signed,
            _ => b,
        }),
        _ => Some(b),
    }
}

/// The dtypes of the operands of one operator, by rank.
#[derive(Clone, Copy, Default, Debug)]
pub struct ResultType {
    dims: Option<Dtype>,
    scalars: Option<Dtype>,
    numbers: Option<Dtype>,
    refused: bool,
}

impl ResultType {
    /// Adds a tensor of `rank` dimensions.
    pub fn tensor(&mut self, dtype: Dtype, rank: usize) {
        let slot = if rank > 0 { &mut self.dims } else { &mut self.scalars };
        self.refused |= !join(slot, dtype);
    }

    /// Adds a Python number.
    pub fn number(&mut self, class: DtypeClass) {
        let dtype = match class {
            DtypeClass::Bool => Dtype::Bool,
            DtypeClass::Int => Dtype::I64,
            DtypeClass::Float => DEFAULT_FLOAT,
            DtypeClass::Complex => Dtype::C64,
        };
        self.refused |= !join(&mut self.numbers, dtype);
    }

    /// The result; `None` where PyTorch refuses or there are no operands.
    pub fn result(self) -> Option<Dtype> {
        if self.refused {
            return None;
        }
        combine(self.dims, combine(self.scalars, self.numbers)?)?
    }
}

fn join(slot: &mut Option<Dtype>, dtype: Dtype) -> bool {
    let joined = slot.map_or(Some(dtype), |old| promote(old, dtype));
    *slot = joined.or(*slot);
    joined.is_some()
}

/// The outer `None`: refused.
fn combine(higher: Option<Dtype>, lower: Option<Dtype>) -> Option<Option<Dtype>> {
    let (Some(high), Some(low)) = (higher, lower) else { return Some(higher.or(lower)) };
    Some(Some(match (high.class(), low.class()) {
        (DtypeClass::Complex, _) => high,
        (DtypeClass::Float, DtypeClass::Complex) => complex_of(high)?,
        (DtypeClass::Float, _) => high,
        (DtypeClass::Int, DtypeClass::Bool | DtypeClass::Int) => high,
        _ => promote(high, low)?,
    }))
}

/// The complex dtype whose parts are `dtype`, where this table has it.
fn complex_of(dtype: Dtype) -> Option<Dtype> {
    match dtype {
        Dtype::F64 => Some(Dtype::C128),
        Dtype::F32 => Some(Dtype::C64),
        _ => None,
    }
}

/// The dtype of the parts of a complex dtype.
pub fn part_of(dtype: Dtype) -> Option<Dtype> {
    match dtype {
        Dtype::C128 => Some(Dtype::F64),
        Dtype::C64 => Some(Dtype::F32),
        _ => None,
    }
}

/// Whether a computed `from` may be written into a result of dtype `to` (`c10::canCast`).
pub fn can_cast(from: Dtype, to: Dtype) -> bool {
    let (from, to) = (from.class(), to.class());
    from <= to || (from == DtypeClass::Int && to == DtypeClass::Int)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `torch.promote_types` of PyTorch 2.15, rows and columns in the order of `Dtype::ALL`; `-`: refused.
    const PEER: &str = "
        f64  f64 f64 f64 f64 - - c128 c128 f64 f64 f64 f64 f64 f64 f64 f64 f64
        f32  f64 f32 f32 f32 - - c64 c128 f32 f32 f32 f32 f32 f32 f32 f32 f32
        f16  f64 f32 f16 f32 - - c64 c128 f16 f16 f16 f16 f16 f16 f16 f16 f16
        bf16 f64 f32 f32 bf16 - - c64 c128 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16
        f8e4m3 - - - - f8e4m3 - - - - - - - - - - - -
        f8e5m2 - - - - - f8e5m2 - - - - - - - - - - -
        c64  c128 c64 c64 c64 - - c64 c128 c64 c64 c64 c64 c64 - - - c64
        c128 c128 c128 c128 c128 - - c128 c128 c128 c128 c128 c128 c128 - - - c128
        i64  f64 f32 f16 bf16 - - c64 c128 i64 i64 i64 i64 i64 - - - i64
        i32  f64 f32 f16 bf16 - - c64 c128 i64 i32 i32 i32 i32 - - - i32
        i16  f64 f32 f16 bf16 - - c64 c128 i64 i32 i16 i16 i16 - - - i16
        i8   f64 f32 f16 bf16 - - c64 c128 i64 i32 i16 i8 i16 - - - i8
        u8   f64 f32 f16 bf16 - - c64 c128 i64 i32 i16 i16 u8 - - - u8
        u16  f64 f32 f16 bf16 - - - - - - - - - u16 - - -
        u32  f64 f32 f16 bf16 - - - - - - - - - - u32 - -
        u64  f64 f32 f16 bf16 - - - - - - - - - - - u64 -
        bool f64 f32 f16 bf16 - - c64 c128 i64 i32 i16 i8 u8 - - - bool";

    #[test]
    fn promotes_as_pytorch_does() {
        for (line, &a) in PEER.trim().lines().zip(Dtype::ALL) {
            let mut words = line.split_whitespace();
            assert_eq!(words.next(), Some(a.short()));
            for (word, &b) in words.zip(Dtype::ALL) {
                assert_eq!(promote(a, b), Dtype::parse_short(word), "{} with {}", a.short(), b.short());
            }
        }
    }

    fn of(tensors: &[(Dtype, usize)], numbers: &[DtypeClass]) -> Option<Dtype> {
        let mut result = ResultType::default();
        tensors.iter().for_each(|&(dtype, rank)| result.tensor(dtype, rank));
        numbers.iter().for_each(|&class| result.number(class));
        result.result()
    }

    #[test]
    fn lower_ranks_promote_only_across_classes() {
        use DtypeClass::*;
        assert_eq!(of(&[(Dtype::BF16, 2), (Dtype::F64, 0)], &[]), Some(Dtype::BF16));
        assert_eq!(of(&[(Dtype::I8, 1)], &[Int]), Some(Dtype::I8));
        assert_eq!(of(&[(Dtype::I8, 1)], &[Float]), Some(Dtype::F32));
        assert_eq!(of(&[(Dtype::Bool, 1)], &[Int]), Some(Dtype::I64));
        assert_eq!(of(&[(Dtype::I64, 1), (Dtype::F64, 0)], &[]), Some(Dtype::F64));
        assert_eq!(of(&[(Dtype::F64, 1)], &[Complex]), Some(Dtype::C128));
        assert_eq!(of(&[(Dtype::F8E4M3, 1)], &[Float]), Some(Dtype::F8E4M3));
        assert_eq!(of(&[(Dtype::F8E4M3, 1), (Dtype::F32, 1)], &[]), None);
        assert_eq!(of(&[], &[]), None);
    }
}
