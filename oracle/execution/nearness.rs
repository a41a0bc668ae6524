//! How near two graphs come to one another in double precision.
//!
//! # The idea
//!
//! Where both compute the same real functions, they agree but for the roundings of doubles, whatever inputs hold. So they
//! are run with inputs of one size, over a wide range, with zeros and ones among them, and the same throughout: a
//! function may be flat, or drown another, in one of these and not in all.
//!
//! # What it does not do
//!
//! It proves nothing: a function that differs where no run comes is not seen.

use super::concrete::Concrete;
use super::doubles::{Doubles, Inputs, Nearness, Relative, distance, overflows};
use super::numerics::Numerics;
use super::program::Program;
use super::run::{FinalInput, Leaf, RankRun};
use super::smooth::{computes_in_doubles, is_smooth, other_functions};
use super::trials::Pair;

/// Runs that nearness is judged by.
const NEAR_RUNS: u32 = 8;

/// Runs in double precision with each other kind of inputs; eight times as many where inputs have few elements.
const OTHER_RUNS: u32 = 3;

/// How many elements are few.
const FEW_CELLS: usize = 1 << 12;

impl Pair<'_> {
    /// How near the graphs come to one another in double precision; `None` where they part by more than `most` (where
    /// they are to be the same real functions, by more than the last digits of constants do), or differ in something
    /// that is no float, or one of them cannot be run. Being near is evidence if neither tells roundings apart, and what
    /// an execution says holds of all sizes.
    pub fn nearness(&self, numerics: Numerics, most: f64) -> Option<Nearness> {
        let is_test = numerics < Numerics::Approximate;
        let others = |program: &Program| other_functions(program.graph);
        let first_others = self.before.first().map(others);
        let tells = |program: &Program| {
            is_smooth(program.graph)
                && !computes_in_doubles(program.graph)
                && Some(others(program)) == first_others
        };
        let first = self.run(&Concrete::of_trial(0));
        if first.is_err() {
            return None;
        }
        let is_evidence =
            !is_test || self.before.iter().chain(self.after).all(tells) && self.reserved(&first).is_none();
        let casts = numerics < Numerics::Precision;
        let relative = if is_test { Relative::Each } else { Relative::Largest };
        let part = if is_test { Nearness::ROUNDED } else { most };
        let mut nearness = Nearness { in_doubles: 0.0, in_own: 0.0, runs: NEAR_RUNS, is_evidence };
        for trial in 1..=NEAR_RUNS {
            let numbers = Concrete::of_trial(trial);
            let (before, after) = self.run(&Doubles::new(numbers, casts)).ok()?;
            let apart = distance(&before, &after, true, relative).filter(|apart| *apart <= part)?;
            nearness.is_evidence &= apart <= most;
            nearness.in_doubles = nearness.in_doubles.max(apart);
            let (before, after) = self.run(&numbers).ok()?;
            // What is finite for one and not for the other is another function in the dtype that counts.
            let own = distance(&before, &after, false, Relative::Largest)?;
            nearness.in_own = nearness.in_own.max(own);
        }
        // What is finite may not become infinite, or no number, in the dtype that counts.
        for trial in 1..=OTHER_RUNS {
            let (before, after) = self.run(&Concrete::large(trial)).ok()?;
            nearness.is_evidence &= !is_test || !overflows(&before, &after);
        }
        // A function may be flat, or drown another, where all inputs are of one size. Few elements take more runs.
        let cells: usize = first.iter().flat_map(|(run, _)| &run.ranks).map(cells_of_inputs).sum();
        let others = if cells < FEW_CELLS { 8 * OTHER_RUNS } else { OTHER_RUNS };
        for inputs in Inputs::OTHERS.into_iter().filter(|_| is_test) {
            for trial in 1..=others {
                let (before, after) =
                    self.run(&Doubles { inputs, ..Doubles::new(Concrete::of_trial(trial), casts) }).ok()?;
                let far = inputs == Inputs::Wide;
                let relative = if far { Relative::LargestFinite } else { relative };
                let apart = distance(&before, &after, true, relative).filter(|apart| *apart <= part)?;
                nearness.is_evidence &= apart <= most;
                nearness.runs += 1;
            }
        }
        Some(nearness)
    }
}

/// How many elements the inputs of a rank have.
fn cells_of_inputs(rank: &RankRun) -> usize {
    let cells = |input: &FinalInput| match &input.value {
        Leaf::Tensor(tensor) => tensor.cells.len(),
        _ => 1,
    };
    rank.inputs.iter().map(cells).sum()
}
