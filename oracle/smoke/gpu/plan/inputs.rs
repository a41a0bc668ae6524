//! Input values: small integers that are never zero, so that sums are exact and nothing is hidden by a zero.

use crate::graph::Dtype;
use crate::semantics::{Concrete, Domain, Failure, Given, Leaf, Number, Options, Program, inputs};
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

/// For each rank and tensor input integers from -3 to 3, never 0, drawn from a seed.
///
/// # Errors
/// As [`inputs`].
pub fn small_inputs(programs: &[Program], ranks: u32, seed: u64) -> Result<Vec<Given>, Failure> {
    let domain = Concrete { seed, large_every: 0, ..Concrete::default() };
    let options = Options::default();
    let mut given = Vec::new();
    for rank in 0..ranks {
        let Some(program) = programs.get(rank as usize).or(programs.first()) else { continue };
        let mut source = Pcg64Mcg::new(u128::from(seed) << 64 | u128::from(rank) << 1 | 1);
        for input in inputs(program, rank, &domain, &options)? {
            let Leaf::Tensor(value) = input.value else { continue };
            let cells =
                (0..value.cells.len()).map(|_| small(&domain, source.next_u64(), value.dtype)).collect();
            given.push(Given { name: input.name, rank: Some(rank), cells });
        }
    }
    Ok(given)
}

fn small(domain: &Concrete, word: u64, dtype: Dtype) -> u64 {
    let magnitude = (word >> 33) as i64 % 3 + 1;
    let negative = word >> 32 & 1 == 1;
    match dtype {
        Dtype::Bool => u64::from(negative),
        Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64 => domain.constant(Number::Int(magnitude), dtype),
        _ => domain.constant(Number::Int(if negative { -magnitude } else { magnitude }), dtype),
    }
}
