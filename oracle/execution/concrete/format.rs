//! How numbers lie in cells, one format per dtype, and the conversions between them.

use super::super::float8::{E4M3FN, E5M2};
use super::super::number::Number;
use crate::graph::Dtype;
use half::{bf16, f16};

/// A dtype's numbers: loaded into the type that PyTorch computes in, and rounded once when stored.
pub(super) trait Format {
    /// f32 for the floats up to 32 bits, f64, i128 for integers and bools, pairs for complex.
    type Value: Copy;
    fn load(cell: u64) -> Self::Value;
    fn store(value: Self::Value) -> u64;
    fn number(number: Number) -> Self::Value;
}

macro_rules! floats {
    ($($name:ident, $value:ty, $load:expr, $store:expr;)*) => {$(
        pub(super) struct $name;

        impl Format for $name {
            type Value = $value;

            fn load(cell: u64) -> $value {
                $load(cell)
            }

            /// All NaN are one.
            fn store(value: $value) -> u64 {
                $store(if value.is_nan() { <$value>::NAN } else { value })
            }

            fn number(number: Number) -> $value {
                match number {
                    Number::Int(n) => n as $value,
                    Number::Term(_) => <$value>::NAN,
                    number => number.float() as $value,
                }
            }
        }
    )*};
}

floats! {
    F64, f64, f64::from_bits, f64::to_bits;
    F32, f32, |c| f32::from_bits(c as u32), |v: f32| u64::from(v.to_bits());
    F16, f32, |c| f16::from_bits(c as u16).to_f32(), |v| u64::from(f16::from_f32(v).to_bits());
    BF16, f32, |c| bf16::from_bits(c as u16).to_f32(), |v| u64::from(bf16::from_f32(v).to_bits());
    F8E4M3, f32, |c| E4M3FN.to_f32(c as u8), |v| u64::from(E4M3FN.from_f32(v));
    F8E5M2, f32, |c| E5M2.to_f32(c as u8), |v| u64::from(E5M2.from_f32(v));
}

macro_rules! integers {
    ($($name:ident, $signed:ty, $bits:ty;)*) => {$(
        pub(super) struct $name;

        impl Format for $name {
            type Value = i128;

            fn load(cell: u64) -> i128 {
                i128::from(cell as $signed)
            }

            /// Wraps around.
            fn store(value: i128) -> u64 {
                u64::from(value as $bits)
            }

            fn number(number: Number) -> i128 {
                Self::load(Self::store(whole(number)))
            }
        }
    )*};
}

integers! {
    I64, i64, u64;
    I32, i32, u32;
    I16, i16, u16;
    I8, i8, u8;
    U8, u8, u8;
    U16, u16, u16;
    U32, u32, u32;
    U64, u64, u64;
}

/// `torch.bool`: 0 or 1.
pub(super) struct Bool;

impl Format for Bool {
    type Value = i128;

    fn load(cell: u64) -> i128 {
        i128::from(cell != 0)
    }

    fn store(value: i128) -> u64 {
        u64::from(value != 0)
    }

    fn number(number: Number) -> i128 {
        match number {
            Number::Float(x) => i128::from(x != 0.0),
            number => whole(number),
        }
    }
}

fn whole(number: Number) -> i128 {
    match number {
        Number::Bool(b) => i128::from(b),
        Number::Int(n) => i128::from(n),
        Number::Term(term) => i128::from(term as i64),
        number => number.float() as i128,
    }
}

/// `torch.complex64`: the real part in the lower half.
pub(super) struct C64;

impl Format for C64 {
    type Value = (f32, f32);

    fn load(cell: u64) -> (f32, f32) {
        (f32::from_bits(cell as u32), f32::from_bits((cell >> 32) as u32))
    }

    fn store((re, im): (f32, f32)) -> u64 {
        F32::store(re) | F32::store(im) << 32
    }

    fn number(number: Number) -> (f32, f32) {
        match number {
            Number::Complex(re, im) => (re as f32, im as f32),
            number => (F32::number(number), 0.0),
        }
    }
}

/// Runs `$body` with `$format` standing for the format of an integer or bool dtype.
macro_rules! with_integer {
    ($dtype:expr, $format:ident => $body:expr, else $other:expr) => {{
        use $crate::concrete::format;
        use $crate::graph::Dtype;
        match $dtype {
            Dtype::I64 => {
                type $format = format::I64;
                $body
            }
            Dtype::I32 => {
                type $format = format::I32;
                $body
            }
            Dtype::I16 => {
                type $format = format::I16;
                $body
            }
            Dtype::I8 => {
                type $format = format::I8;
                $body
            }
            Dtype::U8 => {
                type $format = format::U8;
                $body
            }
            Dtype::U16 => {
                type $format = format::U16;
                $body
            }
            Dtype::U32 => {
                type $format = format::U32;
                $body
            }
            Dtype::U64 => {
                type $format = format::U64;
                $body
            }
            Dtype::Bool => {
                type $format = format::Bool;
                $body
            }
            _ => $other,
        }
    }};
}

/// Runs `$body` with `$format` standing for the format of a float dtype of at most 32 bits, or of f64.
macro_rules! with_float {
    ($dtype:expr, $format:ident => $body:expr, else $other:expr) => {{
        use $crate::concrete::format;
        use $crate::graph::Dtype;
        match $dtype {
            Dtype::F64 => {
                type $format = format::F64;
                $body
            }
            Dtype::F32 => {
                type $format = format::F32;
                $body
            }
            Dtype::F16 => {
                type $format = format::F16;
                $body
            }
            Dtype::BF16 => {
                type $format = format::BF16;
                $body
            }
            Dtype::F8E4M3 => {
                type $format = format::F8E4M3;
                $body
            }
            Dtype::F8E5M2 => {
                type $format = format::F8E5M2;
                $body
            }
            _ => $other,
        }
    }};
}

pub(super) use {with_float, with_integer};

/// A number on its way from one dtype to another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Scalar {
    Float(f64),
    Int(i128),
    Complex(f32, f32),
}

/// The number in a cell.
// One of the types that the macro names is `f64` itself.
#[allow(clippy::useless_conversion)]
pub(crate) fn decode(cell: u64, dtype: Dtype) -> Scalar {
    with_float!(dtype, F => Scalar::Float(f64::from(F::load(cell))), else
    with_integer!(dtype, F => Scalar::Int(F::load(cell)), else {
        let (re, im) = C64::load(cell);
        Scalar::Complex(re, im)
    }))
}

/// A number as a cell, converted as C++ converts it.
///
/// To a float of less than 64 bits it goes through f32 (PyTorch rounds f64 to f16 twice). A complex number loses
/// its imaginary part. A float loses its fraction; outside the range of the target C++ leaves the result open, and
/// this follows x86: via 32 bits for narrow integers, with the least integer for what does not fit.
pub(super) fn encode(scalar: Scalar, dtype: Dtype) -> u64 {
    if dtype == Dtype::C64 {
        return C64::store(match scalar {
            Scalar::Float(x) => (x as f32, 0.0),
            Scalar::Int(n) => (n as f32, 0.0),
            Scalar::Complex(re, im) => (re, im),
        });
    }
    if dtype == Dtype::F64 {
        return F64::store(match scalar {
            Scalar::Float(x) => x,
            Scalar::Int(n) => n as f64,
            Scalar::Complex(re, _) => f64::from(re),
        });
    }
    let single = || match scalar {
        Scalar::Float(x) => x as f32,
        Scalar::Int(n) => n as f32,
        Scalar::Complex(re, _) => re,
    };
    let int = || match scalar {
        Scalar::Int(n) => n,
        Scalar::Float(x) if dtype == Dtype::Bool => i128::from(x != 0.0),
        Scalar::Complex(re, im) if dtype == Dtype::Bool => i128::from(re != 0.0 || im != 0.0),
        Scalar::Float(x) => truncate(x, dtype),
        Scalar::Complex(re, _) => truncate(f64::from(re), dtype),
    };
    match dtype {
        Dtype::F32 => F32::store(single()),
        Dtype::F16 => F16::store(single()),
        Dtype::BF16 => BF16::store(single()),
        Dtype::F8E4M3 => F8E4M3::store(single()),
        Dtype::F8E5M2 => F8E5M2::store(single()),
        _ => with_integer!(dtype, F => F::store(int()), else 0),
    }
}

fn truncate(x: f64, dtype: Dtype) -> i128 {
    let x = x.trunc();
    let (low, high) = match dtype {
        Dtype::I64 | Dtype::U64 | Dtype::U32 => (i64::MIN as f64, 9223372036854775808.0),
        _ => (f64::from(i32::MIN), 2147483648.0),
    };
    if x >= low && x < high { x as i128 } else { low as i128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loading_undoes_storing() {
        for bits in 0..=u16::MAX {
            let cell = u64::from(bits);
            for dtype in [Dtype::F16, Dtype::BF16, Dtype::I16, Dtype::U16] {
                let there = decode(cell, dtype);
                if there == there {
                    assert_eq!(encode(there, dtype), cell, "{dtype:?} {bits:#x}");
                }
            }
            let byte = cell & 0xFF;
            for dtype in [Dtype::F8E4M3, Dtype::F8E5M2, Dtype::I8, Dtype::U8] {
                let there = decode(byte, dtype);
                if there == there {
                    assert_eq!(encode(there, dtype), byte, "{dtype:?} {byte:#x}");
                }
            }
        }
    }

    /// Values of `torch.tensor(x).to(dtype)` in 2.15 on x86.
    #[test]
    fn conversions_follow_x86() {
        let to = |x: f64, dtype| match decode(encode(Scalar::Float(x), dtype), dtype) {
            Scalar::Int(n) => n,
            other => panic!("{other:?}"),
        };
        assert_eq!([300.7, -1.5, -300.2, 70000.9].map(|x| to(x, Dtype::U8)), [44, 255, 212, 112]);
        assert_eq!([300.7, -1.5, -300.2, 70000.9, 3e9].map(|x| to(x, Dtype::I8)), [44, -1, -44, 112, 0]);
        assert_eq!([3e9, -3e9, f64::NAN].map(|x| to(x, Dtype::I32)), [-2147483648; 3]);
        assert_eq!(to(1e20, Dtype::I64), i128::from(i64::MIN));
        assert_eq!([-1.5, 3e9].map(|x| to(x, Dtype::U32)), [4294967295, 3000000000]);
        assert_eq!([0.5, 0.0, f64::NAN].map(|x| to(x, Dtype::Bool)), [1, 0, 1]);
        // Rounded to f32 first, this is a tie, and goes down to the even neighbour.
        let x = 2049.0 + 2f64.powi(-40);
        assert_eq!(decode(encode(Scalar::Float(x), Dtype::F16), Dtype::F16), Scalar::Float(2048.0));
    }
}
