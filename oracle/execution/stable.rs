//! Differences of numbers that double precision confirms: they are no roundings.
//!
//! # The idea
//!
//! A rounding changes with the precision in which it is made, and what two functions differ by does not. So both graphs are
//! executed twice with the same inputs, in their dtypes and in double precision. Where both graphs give the same numbers
//! both times, next to what they differ by, they are two functions.
//!
//! # What it does not do
//!
//! It says nothing behind operators without kernel, whose results are drawn, unless both graphs call them alike
//! ([`trials`](super::trials)).

use super::compare::{Aspect, compare};
use super::concrete::wide::{Wide, wide};
use super::concrete::{Concrete, Scalar, decode};
use super::differing::{Cells, Differing, differing};
use super::fingerprint::least_apart;
use super::run::{Options, Run};
use super::trials::{Answers, Excuse, Pair, Question};
use crate::graph::DtypeClass;

/// Trials that are made. The numbers of the first one are large, so that few functions are finite there.
const TRIALS: [u32; 5] = [1, 2, 3, 4, 0];

/// How far numbers of two precisions may be apart, as a part of what graphs differ by.
const AGREEMENT: f64 = 0.1;

impl Pair<'_> {
    /// A trial in which some numbers differ by more than roundings, and by more than `tolerance` relative to the largest
    /// of their tensor; differences that double precision does not confirm are excused.
    pub fn stable_differences(&self, tolerance: f64) -> Option<Answers> {
        for trial in TRIALS {
            let (own, confirmed) = self.confirmed(trial, Some(tolerance))?;
            if confirmed.is_empty() {
                continue;
            }
            let differences = compare(&own.0, &own.1);
            let excused = differences.into_iter().filter(|one| {
                let is_confirmed =
                    confirmed.iter().any(|(at, _)| (at.rank, &at.place) == (one.rank as usize, &one.place));
                matches!(one.aspect, Aspect::Value { .. }) && !is_confirmed
            });
            let excuse = |one: super::Difference| Excuse {
                rank: one.rank,
                place: one.place,
                why: "double precision does not confirm that numbers differ".to_string(),
                by_rounding: true,
            };
            let mut excused: Vec<Excuse> = excused.map(excuse).collect();
            let numbers = Ok(own);
            excused.extend(self.excused(&numbers, Question { open: true, agree: false, to_the_bit: true }));
            return Some(Answers { excused, ..Answers::of(numbers) });
        }
        None
    }

    /// How far numbers are apart, relative to the largest of their tensor, as double precision confirms in some trial, those
    /// with inputs at the numbers that calls are given included. With a `tolerance`, 0 where that is no more than it and than
    /// the last digits of constants may make.
    pub(super) fn stable_distance(&self, tolerance: Option<f64>) -> f64 {
        let random = TRIALS.into_iter().map(|trial| (trial, Vec::new()));
        let distances = random.chain(self.marked_trials()).filter_map(|(trial, marks)| {
            let options = Options { marks, ..self.options.clone() };
            let (_, confirmed) = Pair { options: &options, ..*self }.confirmed(trial, tolerance)?;
            confirmed.into_iter().map(|(_, distance)| distance).reduce(f64::max)
        });
        distances.fold(0.0, f64::max)
    }

    /// The numbers of a trial, and where they differ by how much as double precision confirms; `None` where one of both graphs
    /// cannot be run.
    fn confirmed(&self, trial: u32, tolerance: Option<f64>) -> Option<((Run, Run), Vec<(Differing, f64)>)> {
        let own = self.shown(&Concrete::of_trial(trial)).ok()?;
        let places = differing(&own.0, &own.1);
        if places.is_empty() {
            return Some((own, Vec::new()));
        }
        let doubles = self.run(&Wide(Concrete::of_trial(trial))).ok()?;
        let confirmed = places.into_iter().filter_map(|place| {
            let distance = stable_distance(&place, &own, &doubles, tolerance)?;
            Some((place, distance))
        });
        let confirmed = confirmed.collect();
        Some((own, confirmed))
    }
}

/// How far some elements at a place are apart, relative to the largest, by as much in double precision as in their own.
fn stable_distance(
    place: &Differing,
    own: &(Run, Run),
    doubles: &(Run, Run),
    tolerance: Option<f64>,
) -> Option<f64> {
    let cells = |run| Cells::at(run, place);
    let (a, b, c, d) = (cells(&own.0)?, cells(&own.1)?, cells(&doubles.0)?, cells(&doubles.1)?);
    let dtype = a.dtype.filter(|_| [&b, &c, &d].iter().all(|other| other.dtype == a.dtype))?;
    let number = |cells: &Cells, i: usize, dtype| match decode(cells.get(i)?, dtype) {
        Scalar::Float(x) => Some(x).filter(|x| x.is_finite()),
        Scalar::Int(n) => Some(n as f64),
        Scalar::Complex(..) => None,
    };
    let count = |cells: &Cells| cells.cells.len();
    let numbers =
        [&a, &b].into_iter().flat_map(|cells| (0..count(cells)).map(move |i| number(cells, i, dtype)));
    let largest = numbers.flatten().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    let least = match tolerance {
        Some(tolerance) if dtype.class() == DtypeClass::Float => least_apart(dtype).max(tolerance) * largest,
        _ => 0.0,
    };
    let parts = |i: usize| {
        let own = [number(&a, i, dtype)?, number(&b, i, dtype)?];
        let doubles = [number(&c, i, wide(dtype))?, number(&d, i, wide(dtype))?];
        let distance = (doubles[0] - doubles[1]).abs();
        let agree = |k: usize| (own[k] - doubles[k]).abs() <= AGREEMENT * distance;
        (distance > least && agree(0) && agree(1)).then_some(distance / largest)
    };
    place.elements.iter().filter_map(|&i| parts(i)).reduce(f64::max)
}
