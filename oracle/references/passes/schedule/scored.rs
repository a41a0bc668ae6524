//! List scheduling by scores. Source: `_schedule_for_comm` of `torch/_inductor/comms.py`.
//!
//! The score of a step is (s0, s1, s2), lower first: s0 the ordinal of the first collective that it is or leads to (if
//! collectives are raised), s1 whether it waits (if waits are sunk), s2 its place in the list. Of the steps that are
//! ready the lowest comes next. With overlap, a collective is followed at once by the lowest ready steps that neither
//! communicate nor wait, until they have taken as long as it takes.

use super::steps::Steps;
use super::strategy::Strategy;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What the scores weigh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mode {
    pub(super) raises: bool,
    pub(super) sinks: bool,
    pub(super) overlaps: bool,
}

type Score = (u32, u32, u32);

/// The order of the steps. `n log n`.
pub(super) fn order(steps: &Steps, mode: Mode, strategy: &dyn Strategy) -> Vec<u32> {
    let n = steps.len();
    let scores = scores(steps, mode, strategy);
    let mut blockers: Vec<u32> = (0..n as u32).map(|step| steps.before(step).len() as u32).collect();
    // What may fill the time of a collective is kept apart, so that the lowest of it is at hand.
    let (mut fillers, mut others) = (BinaryHeap::new(), BinaryHeap::new());
    let is_filler = |step: u32| !steps.communicates[step as usize] && !steps.waits[step as usize];
    for step in (0..n as u32).filter(|&step| blockers[step as usize] == 0) {
        let heap: &mut BinaryHeap<Reverse<Score>> = if is_filler(step) { &mut fillers } else { &mut others };
        heap.push(Reverse(scores[step as usize]));
    }
    let mut order = Vec::with_capacity(n);
    let mut remaining = 0.0f64;
    loop {
        let next = match (remaining > 0.0, fillers.peek(), others.peek()) {
            (true, Some(_), _) => fillers.pop(),
            (_, Some(filler), Some(other)) if filler > other => fillers.pop(),
            (_, Some(_), None) => fillers.pop(),
            (_, _, Some(_)) => others.pop(),
            (_, None, None) => break,
        };
        let Some(Reverse((_, _, step))) = next else { break };
        let filled = remaining > 0.0 && is_filler(step);
        order.push(step);
        for &(after, _) in steps.after(step) {
            blockers[after as usize] -= 1;
            if blockers[after as usize] == 0 {
                let heap = if is_filler(after) { &mut fillers } else { &mut others };
                heap.push(Reverse(scores[after as usize]));
            }
        }
        let seconds = steps.seconds[step as usize];
        remaining = match (filled, mode.overlaps && steps.communicates[step as usize]) {
            (true, _) => remaining - seconds,
            (false, true) => seconds,
            (false, false) => 0.0,
        };
    }
    order
}

fn scores(steps: &Steps, mode: Mode, strategy: &dyn Strategy) -> Vec<Score> {
    let n = steps.len();
    let mut first = vec![u32::MAX; n];
    if mode.raises {
        let mut communicating: Vec<usize> = (0..n).filter(|&step| steps.communicates[step]).collect();
        if strategy.raises_shortest_first() {
            communicating.sort_by(|&a, &b| steps.seconds[a].total_cmp(&steps.seconds[b]));
        }
        for (ordinal, &step) in communicating.iter().enumerate() {
            first[step] = ordinal as u32;
        }
        // Steps are numbered in a legal order, so what comes after has been seen.
        for step in (0..n as u32).rev() {
            let after = steps.after(step).iter().map(|&(next, _)| first[next as usize]).min();
            first[step as usize] = first[step as usize].min(after.unwrap_or(u32::MAX));
        }
    }
    let sunk = |step: usize| mode.sinks && steps.waits[step] && !(mode.raises && steps.communicates[step]);
    (0..n).map(|step| (first[step], u32::from(sunk(step)), step as u32)).collect()
}
