//! Choosing what to keep within a capacity: the 0/1 knapsack problem.
//!
//! Source: `torch._functorch._activation_checkpointing.knapsack` of PyTorch 2.15. All solvers take memories and
//! runtimes of the items and say which are kept, so that the runtime of what is kept is as large as can be.

use super::error::{PartitionError, Problem};
use crate::config::partition::Solver;
use fixedbitset::FixedBitSet;

/// Items that the exact solver takes.
pub const EXACT_LIMIT: usize = 20;

/// Parts of the unit that memories are rounded to.
const PARTS: f64 = 10_000.0;

/// Which items are kept. Memories and capacity are in one unit, with a capacity from 0 to 1.
pub fn solve(
    solver: Solver,
    memories: &[f64],
    runtimes: &[f64],
    capacity: f64,
) -> Result<Vec<bool>, PartitionError> {
    match solver {
        Solver::Dp | Solver::Hirschberg => Ok(dynamic(memories, runtimes, capacity)),
        Solver::Greedy => Ok(greedy(memories, runtimes, capacity)),
        Solver::Ilp if memories.len() <= EXACT_LIMIT => Ok(exact(memories, runtimes, capacity)),
        Solver::Ilp => Err(PartitionError::new(
            Problem::Unsupported,
            format!(
                "the exact solver takes at most {EXACT_LIMIT} values to choose from, not {}",
                memories.len()
            ),
        )),
    }
}

/// By dynamic programming over memories in ten-thousandths, in single precision; an item is kept, going
/// backwards, where it changed the optimum. One bit per item and capacity tells that.
fn dynamic(memories: &[f64], runtimes: &[f64], capacity: f64) -> Vec<bool> {
    let capacity = (capacity * PARTS).round_ties_even() as usize;
    let parts: Vec<usize> =
        memories.iter().map(|memory| (memory * PARTS).round_ties_even() as usize).collect();
    let mut best = vec![0f32; capacity + 1];
    let mut changed: Vec<FixedBitSet> = Vec::with_capacity(parts.len());
    for (&part, &runtime) in parts.iter().zip(runtimes) {
        let mut bits = FixedBitSet::with_capacity(capacity + 1);
        for j in (part..=capacity).rev() {
            let with = best[j - part] + runtime as f32;
            // An item without memory is taken, whatever it is worth.
            let better = if part == 0 { with } else { with.max(best[j]) };
            if better != best[j] {
                best[j] = better;
                bits.insert(j);
            }
        }
        changed.push(bits);
    }
    let mut kept = vec![false; parts.len()];
    let mut left = capacity;
    for i in (0..parts.len()).rev() {
        if changed[i].contains(left) {
            kept[i] = true;
            left -= parts[i];
        }
    }
    kept
}

/// By runtime for each unit of memory, as long as it fits.
fn greedy(memories: &[f64], runtimes: &[f64], capacity: f64) -> Vec<bool> {
    let mut items: Vec<usize> = (0..memories.len()).collect();
    items.sort_by(|&a, &b| (runtimes[b] / memories[b]).total_cmp(&(runtimes[a] / memories[a])));
    let mut kept = vec![false; memories.len()];
    let mut used = 0.0;
    for item in items {
        if used + memories[item] <= capacity {
            used += memories[item];
            kept[item] = true;
        }
    }
    kept
}

/// Every choice. Of equal ones the first, counting upwards with the first item as the lowest digit.
fn exact(memories: &[f64], runtimes: &[f64], capacity: f64) -> Vec<bool> {
    let total = |choice: u32, of: &[f64]| -> f64 {
        of.iter().enumerate().filter(|(i, _)| choice >> i & 1 == 1).map(|(_, x)| x).sum()
    };
    let mut best = (f64::NEG_INFINITY, 0);
    for choice in 0..1u32 << memories.len() {
        if total(choice, memories) <= capacity && total(choice, runtimes) > best.0 {
            best = (total(choice, runtimes), choice);
        }
    }
    (0..memories.len()).map(|i| best.1 >> i & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(kept: &[bool], of: &[f64]) -> f64 {
        kept.iter().zip(of).filter(|(kept, _)| **kept).map(|(_, x)| x).sum()
    }

    #[test]
    fn the_example_of_the_specification() {
        let (memories, runtimes) = ([0.6, 0.5, 0.5], [10.0, 6.0, 6.0]);
        assert_eq!(solve(Solver::Dp, &memories, &runtimes, 1.0).unwrap(), [false, true, true]);
        assert_eq!(solve(Solver::Greedy, &memories, &runtimes, 1.0).unwrap(), [true, false, false]);
        assert_eq!(solve(Solver::Ilp, &memories, &runtimes, 1.0).unwrap(), [false, true, true]);
        assert!(solve(Solver::Ilp, &[0.1; 21], &[1.0; 21], 1.0).is_err());
        assert_eq!(solve(Solver::Dp, &[0.0, 2.0], &[1.0, 1.0], 0.0).unwrap(), [true, false]);
        // Rounded to ten-thousandths, half to even.
        let memories = [0.00004, 0.00005, 0.00015, 0.0004];
        assert_eq!(solve(Solver::Dp, &memories, &[1.0; 4], 0.0).unwrap(), [true, true, false, false]);
    }

    proptest! {
        /// On memories that need no rounding, the table finds the optimum.
        #[test]
        fn the_table_finds_the_optimum(
            items in prop::collection::vec((0u32..5000, 0u32..20), 0..9), capacity in 0u32..10_000
        ) {
            let memories: Vec<f64> = items.iter().map(|item| f64::from(item.0) / PARTS).collect();
            let runtimes: Vec<f64> = items.iter().map(|item| f64::from(item.1)).collect();
            let capacity = f64::from(capacity) / PARTS;
            let dynamic = solve(Solver::Dp, &memories, &runtimes, capacity).unwrap();
            // Sums of rounded parts may differ in the last bit.
            let exact = exact(&memories, &runtimes, capacity + 1e-9);
            prop_assert!(value(&dynamic, &memories) <= capacity + 1e-9);
            prop_assert_eq!(value(&dynamic, &runtimes), value(&exact, &runtimes));
            let greedy = greedy(&memories, &runtimes, capacity);
            prop_assert!(value(&greedy, &memories) <= capacity + 1e-9);
            prop_assert!(value(&greedy, &runtimes) <= value(&exact, &runtimes));
        }
    }
}
