//! Casts one after the other that are one cast.
//!
//! # The idea
//!
//! What a first cast keeps exactly, a second one rounds as if there had been no first. And where PyTorch makes a cast
//! in two steps, these two after one another are that cast, although the first may round: int64 to bfloat16 is int64 to
//! float32 to bfloat16. It is not int64 to float16 to bfloat16. An integer so large that the first cast rounds it may
//! be too large for the second anyhow: int64 to float64 to float16 is int64 to float16.
//!
//! A NaN is one value: its bits do not count.
//!
//! # What it does not do
//!
//! What a float becomes as an integer that cannot hold it is left open by C++, and PyTorch's own paths differ in it:
//! nothing is said of such values.

use crate::graph::{Dtype, DtypeClass};

/// Whether the cast from `from` to `middle` and the one from there to `to` are the cast from `from` to `to`, for every
/// value.
pub(super) fn is_one(from: Dtype, middle: Dtype, to: Dtype) -> bool {
    let is_int = |dtype: Dtype| dtype.class() == DtypeClass::Int;
    if is_int(from) && middle.class() >= DtypeClass::Float && is_int(to) {
        return keeps(from, middle) && keeps(from, to);
    }
    keeps(from, middle) || passes(from, middle, to) || overflows(from, middle, to)
}

/// Whether the float `to` has room for all integers that the integer `from` can hold when it was made of the float
/// `first`.
pub(super) fn keeps_of(first: Dtype, from: Dtype, to: Dtype) -> bool {
    match (float(first), int(from), float(to)) {
        (Some((_, _, highest)), Some((bits, _)), Some((significant, _, top))) => {
            highest < bits as i32 && highest < significant as i32 && highest < top
        }
        _ => false,
    }
}

/// The float that stands for `middle` between two integers: one for all floats that keep the first integer exactly.
/// What an integer that cannot hold such a number becomes is left open, but is the same for each: float16 to int8
/// passes float32.
pub(super) fn stand_in(from: Dtype, middle: Dtype, to: Dtype) -> Dtype {
    let is_int = |dtype: Dtype| dtype.class() == DtypeClass::Int;
    if !is_int(from) || middle.class() != DtypeClass::Float || !is_int(to) || !keeps(from, middle) {
        return middle;
    }
    if keeps(from, Dtype::F32) { Dtype::F32 } else { Dtype::F64 }
}

/// Whether PyTorch casts from `from` to `to` in these two steps.
///
/// - The floats of less than 32 bits are made of a float32 (`c10/util/Half.h`, `BFloat16.h`, `Float8_e4m3fn.h`: their
///   constructors take a float).
/// - A real number becomes the real part of a complex one.
/// - An integer that does not fit loses its upper bits, whether at once or in two steps.
fn passes(from: Dtype, middle: Dtype, to: Dtype) -> bool {
    match to {
        Dtype::F16 | Dtype::BF16 | Dtype::F8E4M3 | Dtype::F8E5M2 => middle == Dtype::F32,
        Dtype::C64 => middle == Dtype::F32 && from.class() != DtypeClass::Complex,
        Dtype::C128 => middle == Dtype::F64 && from.class() != DtypeClass::Complex,
        _ => {
            let is_int = |dtype: Dtype| dtype.class() == DtypeClass::Int;
            is_int(from) && is_int(middle) && is_int(to) && middle.itemsize() >= to.itemsize()
        }
    }
}

/// Whether the integers that the float `middle` does not keep exactly are all out of the range of the float `to`.
/// `middle` has room for them, and rounds them to what is out of range too.
fn overflows(from: Dtype, middle: Dtype, to: Dtype) -> bool {
    match (int(from), float(middle), float(to)) {
        (Some((bits, _)), Some((significant, _, top)), Some((_, _, highest))) => {
            bits as i32 <= top && highest < significant as i32
        }
        _ => false,
    }
}

/// Significant bits of a float, least exponent of a subnormal, greatest exponent.
fn float(dtype: Dtype) -> Option<(u32, i32, i32)> {
    let least = match dtype {
        Dtype::F64 => -1074,
        Dtype::F32 => -149,
        Dtype::F16 => -24,
        Dtype::BF16 => -133,
        Dtype::F8E4M3 => -9,
        Dtype::F8E5M2 => -16,
        _ => return None,
    };
    let (significant, top) = dtype.precision();
    Some((significant, least, top as i32))
}

/// Bits of an integer without the sign, and whether there is one.
fn int(dtype: Dtype) -> Option<(u32, bool)> {
    let (bits, _) = dtype.precision();
    match (dtype.class(), dtype) {
        (DtypeClass::Bool, _) | (DtypeClass::Int, Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64) => {
            Some((bits, false))
        }
        (DtypeClass::Int, _) => Some((bits, true)),
        _ => None,
    }
}

/// Whether a cast from `from` to `to` keeps every number exactly.
fn keeps(from: Dtype, to: Dtype) -> bool {
    let part = |dtype| match dtype {
        Dtype::C64 => Dtype::F32,
        Dtype::C128 => Dtype::F64,
        other => other,
    };
    if to.class() == DtypeClass::Complex {
        return keeps(part(from), part(to));
    }
    if from == to {
        return true;
    }
    match (int(from), int(to), float(from), float(to)) {
        (Some((bits, signed)), Some((room, minus)), _, _) => {
            to.class() != DtypeClass::Bool && bits <= room && (minus || !signed)
        }
        // -2^bits needs no more significant bits than 2^bits - 1, but one more exponent.
        (Some((bits, _)), _, _, Some((significant, _, top))) => bits <= significant && bits as i32 <= top,
        (_, _, Some((bits, least, top)), Some((room, lowest, highest))) => {
            bits <= room && least >= lowest && top <= highest
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::semantics::{Concrete, Domain};

    /// Cells of a dtype: all of 8 bits, every thirteenth of 16; else many, among them what lies between two numbers
    /// of each smaller format, and next to that.
    fn cells(dtype: Dtype) -> Vec<u64> {
        let bits = dtype.itemsize() * 8;
        if dtype == Dtype::Bool {
            return vec![0, 1];
        }
        if bits <= 16 {
            return (0..1 << bits).step_by(if bits == 16 { 13 } else { 1 }).collect();
        }
        let numbers = Concrete::default();
        let (mut state, mut cells) = (1u64, Vec::new());
        let mut next = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            state ^ (state >> 29)
        };
        for significant in [3, 4, 8, 11, 24, 53] {
            for _ in 0..150 {
                let (word, shift) = (next(), next());
                let top = (word >> (64 - significant)) | 1 << (significant - 1);
                let shift = 1 + shift % (64 - significant);
                let tie = (top << shift).wrapping_add(1 << (shift - 1));
                for near in [tie, tie.wrapping_add(1), tie.wrapping_sub(1), tie.wrapping_neg()] {
                    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
                    cells.push(match dtype.class() {
                        DtypeClass::Float => {
                            let cell = numbers.cast(&[near], Dtype::I64, dtype).unwrap()[0];
                            cell.wrapping_add(shift % 3).wrapping_sub(1) & mask
                        }
                        _ => near & mask,
                    });
                }
                cells.push(word & if bits == 64 { u64::MAX } else { (1 << bits) - 1 });
            }
        }
        cells
    }

    fn real() -> impl Iterator<Item = Dtype> + Clone {
        Dtype::ALL.iter().copied().filter(|dtype| dtype.class() != DtypeClass::Complex)
    }

    /// Cells that two casts and the one make different numbers of.
    fn differ(from: Dtype, middle: Dtype, to: Dtype, cells: &[u64]) -> usize {
        let numbers = Concrete::default();
        let cast = |cells: &[u64], from, to| numbers.cast(cells, from, to).unwrap();
        let one = cast(cells, from, to);
        let two = cast(&cast(cells, from, middle), middle, to);
        let is_nan = |cell: u64| f64::from_bits(cast(&[cell], to, Dtype::F64)[0]).is_nan();
        one.iter().zip(&two).filter(|&(&a, &b)| a != b && !(is_nan(a) && is_nan(b))).count()
    }

    #[test]
    fn what_is_one_cast_gives_the_same_numbers() {
        let mut told = Vec::new();
        for from in real() {
            let cells = cells(from);
            for (middle, to) in real().flat_map(|middle| real().map(move |to| (middle, to))) {
                if is_one(from, middle, to) && differ(from, middle, to, &cells) > 0 {
                    told.push(format!("{} {} {}", from.name(), middle.name(), to.name()));
                }
            }
        }
        assert_eq!(told, Vec::<String>::new());
    }

    /// The integers of an 8-bit float are no larger than it.
    #[test]
    fn integers_of_a_small_float_come_back() {
        use Dtype::*;
        let numbers = Concrete::default();
        let (mut told, mut kept) = (Vec::new(), 0);
        for first in [F8E4M3, F8E5M2, F16, BF16] {
            let finite =
                |&cell: &u64| f64::from_bits(numbers.cast(&[cell], first, F64).unwrap()[0]).is_finite();
            let cells: Vec<u64> = cells(first).into_iter().filter(finite).collect();
            for (from, to) in
                [I16, I32, I64].into_iter().flat_map(|from| [F16, BF16, F32, F64].map(|to| (from, to)))
            {
                let made = numbers.cast(&cells, first, from).unwrap();
                let back = numbers.cast(&numbers.cast(&made, from, to).unwrap(), to, from).unwrap();
                if keeps_of(first, from, to) {
                    kept += 1;
                    told.extend((made != back).then_some((first, from, to)));
                }
            }
        }
        assert_eq!((told, kept), (Vec::new(), 17));
        assert!(keeps_of(F8E5M2, I64, F32) && !keeps_of(F16, I64, F16) && !keeps_of(BF16, I64, F64));
    }

    /// Whichever float an integer goes through, if it is kept there.
    #[test]
    fn floats_that_keep_an_integer_stand_for_each_other() {
        use Dtype::*;
        let integers = || real().filter(|dtype| dtype.class() == DtypeClass::Int);
        let numbers = Concrete::default();
        let mut told = Vec::new();
        for from in integers() {
            let cells = cells(from);
            let both =
                |middle, to| numbers.cast(&numbers.cast(&cells, from, middle).unwrap(), middle, to).unwrap();
            for (middle, to) in real().flat_map(|middle| integers().map(move |to| (middle, to))) {
                if both(middle, to) != both(stand_in(from, middle, to), to) {
                    told.push(format!("{} {} {}", from.name(), middle.name(), to.name()));
                }
            }
        }
        assert_eq!(told, Vec::<String>::new());
        assert_eq!([stand_in(U8, F16, I8), stand_in(U8, BF16, I8), stand_in(U8, F64, I8)], [F32; 3]);
        assert_eq!([stand_in(I32, F64, I8), stand_in(I64, F64, I8)], [F64; 2]);
        assert_eq!([stand_in(I16, F16, I8), stand_in(U8, F16, F32)], [F16; 2]);
    }

    /// What a bucket of gathers does to its members: an integer that is to become a float is promoted to another one
    /// first.
    #[test]
    fn an_integer_passes_float32_and_nothing_else() {
        use Dtype::*;
        for from in [I64, I32, U32, U64, F64] {
            let cells = cells(from);
            for to in [F16, BF16, F8E4M3, F8E5M2] {
                assert!(is_one(from, F32, to), "{from:?} {to:?}");
            }
            for (middle, to) in [(F16, F32), (F16, BF16), (BF16, F16), (BF16, F32), (F32, F64)] {
                assert!(!is_one(from, middle, to), "{from:?} {middle:?} {to:?}");
                assert!(differ(from, middle, to, &cells) > 0, "{from:?} {middle:?} {to:?}");
            }
        }
        for (from, middle, to) in [(I64, F32, I64), (I64, F64, F32), (I64, I32, F32), (I64, Bool, I64)] {
            assert!(!is_one(from, middle, to), "{from:?} {middle:?} {to:?}");
            assert!(differ(from, middle, to, &cells(from)) > 0, "{from:?} {middle:?} {to:?}");
        }
        // Above the middle of two bfloat16s by less than float64 can say.
        let above = (1u64 << 62) + (1 << 54) + (1 << 38) + 1;
        assert!(!is_one(I64, F64, BF16) && differ(I64, F64, BF16, &[above]) == 1);
        assert!(is_one(I64, F64, F16) && is_one(U64, F64, F8E4M3) && is_one(I8, F16, F8E4M3));
        assert!(!is_one(I64, F16, F8E5M2) && differ(I64, F16, F8E5M2, &cells(I64)) > 0);
        assert!(
            is_one(I32, F64, F32)
                && !is_one(U32, F64, I8)
                && is_one(I64, I32, I8)
                && is_one(I64, F32, C64)
                && !is_one(I64, F16, C64)
        );
    }

    /// `GRAPH_ORACLE_PYTHON=python cargo test --lib casts_of_pytorch`: the same against PyTorch, complex numbers too.
    #[test]
    fn casts_of_pytorch() {
        let Some(python) = std::env::var_os("GRAPH_ORACLE_PYTHON") else {
            println!("skipped: casts are not compared, there is no Python with torch (GRAPH_ORACLE_PYTHON)");
            return;
        };
        let all = Dtype::ALL.iter().copied();
        let mut lines = String::new();
        for (from, middle) in all.clone().flat_map(|from| all.clone().map(move |middle| (from, middle))) {
            for to in all.clone().filter(|&to| is_one(from, middle, to)) {
                lines += &format!("{} {} {}\n", from.name(), middle.name(), to.name());
            }
        }
        let path = std::env::temp_dir().join(format!("graph-oracle-casts-{}.txt", std::process::id()));
        std::fs::write(&path, &lines).unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/peer/casts.py");
        let output = std::process::Command::new(python).arg(script).arg(&path).output().unwrap();
        std::fs::remove_file(&path).unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let wanted = format!("{} of {} are one cast\n", lines.lines().count(), lines.lines().count());
        assert_eq!(text, wanted, "{}", String::from_utf8_lossy(&output.stderr));
    }
}
