//! Tensors in messages: each element as the hexadecimal digits of its bits, so that nothing is rounded on the way.

use crate::graph::Dtype;
use crate::semantics::{Dims, TensorValue};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A tensor as it is written.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(super) struct Bits {
    dtype: String,
    shape: Vec<i64>,
    bits: Vec<String>,
}

impl Bits {
    pub fn of(tensor: &TensorValue) -> Bits {
        let dtype = tensor.dtype;
        let per = if dtype == Dtype::C128 { 2 } else { 1 };
        let element = |cells: &[u64]| {
            let mut text = String::with_capacity(2 * dtype.itemsize() as usize);
            for &cell in cells {
                // Writing to memory does not fail. Of a complex number the real part comes first.
                let _ = match dtype {
                    Dtype::C64 => write!(text, "{:08x}{:08x}", cell as u32, cell >> 32),
                    _ => {
                        let digits = 2 * dtype.itemsize() as usize / per;
                        write!(text, "{cell:0digits$x}")
                    }
                };
            }
            text
        };
        let bits = tensor.cells.chunks(per).map(element).collect();
        Bits { dtype: dtype.name().to_string(), shape: tensor.shape.to_vec(), bits }
    }

    pub fn read(&self) -> Result<TensorValue, String> {
        let dtype = Dtype::parse(&self.dtype).ok_or_else(|| format!("{} is no dtype", self.dtype))?;
        let shape = Dims::new(&self.shape).ok_or("a tensor has too many dimensions")?;
        let count = self.shape.iter().try_fold(1i64, |n, &size| n.checked_mul(size.max(0)));
        if count != i64::try_from(self.bits.len()).ok() {
            return Err(format!("{} elements are given for shape {:?}", self.bits.len(), self.shape));
        }
        let digits = 2 * dtype.itemsize() as usize;
        let mut cells = Vec::with_capacity(self.bits.len());
        for element in &self.bits {
            let cell = |text: Option<&str>| text.and_then(|text| u64::from_str_radix(text, 16).ok());
            let parts = match dtype {
                Dtype::C64 => {
                    cell(element.get(..8)).zip(cell(element.get(8..))).map(|(re, im)| vec![re | im << 32])
                }
                Dtype::C128 => {
                    cell(element.get(..16)).zip(cell(element.get(16..))).map(|(re, im)| vec![re, im])
                }
                _ => cell(Some(element)).map(|cell| vec![cell]),
            };
            match parts.filter(|_| element.len() == digits) {
                Some(parts) => cells.extend(parts),
                None => return Err(format!("{element:?} is no element of {}", self.dtype)),
            }
        }
        Ok(TensorValue { dtype, shape, cells, poison: Vec::new(), alias_of: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_read_as_they_are_written() {
        let tensor = |dtype, cells: &[u64], shape: &[i64]| TensorValue {
            dtype,
            shape: Dims::new(shape).unwrap(),
            cells: cells.to_vec(),
            poison: Vec::new(),
            alias_of: None,
        };
        let one = tensor(Dtype::F32, &[0x3f80_0000, 0x4000_0000], &[2]);
        assert_eq!(Bits::of(&one).bits, ["3f800000", "40000000"]);
        let all = [
            one,
            tensor(Dtype::Bool, &[1, 0], &[2, 1]),
            tensor(Dtype::BF16, &[0x3f80], &[]),
            tensor(Dtype::C64, &[0x4000_0000_3f80_0000], &[1]),
            tensor(Dtype::C128, &[1, u64::MAX], &[1]),
            tensor(Dtype::I64, &[], &[0, 3]),
        ];
        for tensor in all {
            assert_eq!(Bits::of(&tensor).read(), Ok(tensor));
        }
        let mut wrong = Bits { dtype: "float32".into(), shape: vec![1], bits: vec!["3f8".into()] };
        assert!(wrong.read().is_err());
        wrong.bits = vec!["3f800000".into(); 2];
        assert!(wrong.read().is_err());
        assert!(Bits { dtype: "float31".into(), ..wrong }.read().is_err());
    }
}
