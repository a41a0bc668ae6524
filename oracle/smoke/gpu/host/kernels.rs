//! The kernels of the host: the arithmetic of [`Concrete`] over bytes.

use crate::gpu::plan::{Arithmetic, Function, Kernel, View};
use crate::graph::Dtype;
use crate::ops::{Binary, Unary};
use crate::semantics::{Concrete, Domain, MatmulSize, Number, Operand, Pointwise, Rounding, Trouble};

/// The bytes of a view's elements in row-major order. What lies outside of `memory` counts as zero.
pub fn gather(memory: &[u8], base: usize, view: &View) -> Vec<u8> {
    let size = view.size();
    let mut bytes = Vec::with_capacity(view.count() * size);
    for at in view.places() {
        match memory.get(base + at..base + at + size) {
            Some(element) => bytes.extend_from_slice(element),
            None => bytes.resize(bytes.len() + size, 0),
        }
    }
    bytes
}

/// Puts the bytes of elements in row-major order where a view shows them. What lies outside of `memory` is left out.
pub fn scatter(bytes: &[u8], memory: &mut [u8], base: usize, view: &View) {
    let size = view.size();
    for (element, at) in bytes.chunks_exact(size).zip(view.places()) {
        if let Some(to) = memory.get_mut(base + at..base + at + size) {
            to.copy_from_slice(element);
        }
    }
}

/// What a kernel writes, given what it reads: row-major bytes of the views. `before` holds what is written over.
///
/// # Errors
/// A reason, for operands that the kernel does not take.
pub fn compute(
    kernel: Kernel,
    reads: &[(View, Vec<u8>)],
    to: &View,
    before: Vec<u8>,
) -> Result<Vec<u8>, String> {
    let numbers = Concrete { large_every: 0, ..Concrete::default() };
    let trouble = |trouble: Trouble| match trouble {
        Trouble::Refuse(reason) | Trouble::Raise(reason) => reason,
        other => format!("{other:?}"),
    };
    let operand = |at: usize| reads.get(at).ok_or_else(|| format!("{} lacks an operand", kernel.name()));
    let count = to.count();
    Ok(match kernel {
        Kernel::Copy { from, to: at, count } => {
            let (view, bytes) = operand(0)?;
            let size = view.size();
            let element = |n: u64| n as usize * size;
            let mut after = before;
            let source = bytes.get(element(from)..element(from + count));
            let target = after.get_mut(element(at)..element(at + count));
            match (source, target) {
                (Some(source), Some(target)) if size == to.size() => target.copy_from_slice(source),
                _ => return Err("copy past the end of a view".to_string()),
            }
            after
        }
        Kernel::Fill(word) => word.to_le_bytes()[..to.size()].repeat(count),
        Kernel::Unary(function, dtype) => {
            let op = if function == Function::Relu { Unary::Relu } else { Unary::Neg };
            let x = cells(&operand(0)?.1, dtype);
            let function = Pointwise::Unary(op, false);
            bytes(&numbers.pointwise(function, dtype, &[Operand::Cells(&x)], count).map_err(trouble)?, dtype)
        }
        Kernel::Binary(op, dtype) => {
            let op = match op {
                Arithmetic::Add => Binary::Add,
                Arithmetic::Sub => Binary::Sub,
                Arithmetic::Mul => Binary::Mul,
            };
            let (a, b) = (cells(&operand(0)?.1, dtype), cells(&operand(1)?.1, dtype));
            let function = Pointwise::Binary(op, Number::Int(1), Rounding::True);
            let operands = [Operand::Cells(&a), Operand::Cells(&b)];
            bytes(&numbers.pointwise(function, dtype, &operands, count).map_err(trouble)?, dtype)
        }
        Kernel::Cast(from, into) => {
            bytes(&numbers.cast(&cells(&operand(0)?.1, from), from, into).map_err(trouble)?, into)
        }
        Kernel::Matmul(dtype) => {
            let ((a_view, a), (_, b)) = (operand(0)?, operand(1)?);
            let size = |dim: usize, view: &View| view.shape.get(dim).map_or(0, |&n| n as usize);
            let size = MatmulSize {
                batch: 1,
                m: size(0, to),
                k: size(1, a_view),
                n: size(1, to),
                of_vectors: false,
            };
            let (a, b) = (cells(a, dtype), cells(b, dtype));
            bytes(&numbers.matmul(size, dtype, &a, &b, None, dtype).map_err(trouble)?, dtype)
        }
        Kernel::AcrossRanks { op, dtype, from } => {
            let parts: Vec<Vec<u64>> = reads.iter().map(|(_, bytes)| cells(bytes, dtype)).collect();
            let range = from as usize..from as usize + count;
            let parts: Option<Vec<&[u64]>> = parts.iter().map(|part| part.get(range.clone())).collect();
            let parts = parts.ok_or("a reduction past the end of a view")?;
            bytes(&numbers.across_ranks(op, dtype, &parts).map_err(trouble)?, dtype)
        }
        Kernel::Interpret => return Err("an operator is interpreted, not computed here".to_string()),
    })
}

fn cells(bytes: &[u8], dtype: Dtype) -> Vec<u64> {
    let cell = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    bytes.chunks(dtype.itemsize().clamp(1, 8) as usize).map(cell).collect()
}

fn bytes(cells: &[u64], dtype: Dtype) -> Vec<u8> {
    let size = dtype.itemsize().min(8) as usize;
    cells.iter().flat_map(|cell| cell.to_le_bytes().into_iter().take(size)).collect()
}
