//! The passes that move communication by swapping neighbours and keep the peak of memory within a budget.
//!
//! A collective is moved up (a wait down) as a *group*: at first it alone. Its neighbour, the *candidate*, changes
//! places with the group if nothing orders the two; if the group needs the candidate (or the candidate the group), the
//! candidate joins the group and moves along; if only their order is fixed, the move ends. Communication never changes
//! places with communication. A swap that would lift the peak over the budget ends the move; the figures it is judged
//! by are those after the swap before it.
//!
//! Runtime mode also ends a move when the collective is well hidden, and when a swap would expose more of other
//! collectives than it hides of this one.
//!
//! Source: `_reorder_communication_preserving_peak_memory_internal` and `_sink_waits_iterative_internal` of
//! `torch/_inductor/comms.py`. There, edges that order only are not respected everywhere; here they are.

use super::Config;
use super::list::List;
use super::memory::Tracker;
use super::runtime::{Pair, Walks, positive, seconds};
use super::steps::Steps;
use super::strategy::Strategy;
use crate::simulate::Buffers;

/// What a pass made of a list.
pub(super) struct Moved {
    pub(super) order: Vec<u32>,
    /// The peak before, and the peak as tracked to the end.
    pub(super) peak: (i64, i64),
    pub(super) swaps: usize,
}

/// How a candidate stands to a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bond {
    /// Nothing orders them.
    Free,
    /// Their order is fixed, but neither needs what the other makes.
    Order,
    /// One needs what the other makes.
    Real,
}

/// A list under change.
struct Mover<'a> {
    steps: &'a Steps,
    list: List,
    memory: Tracker,
    walks: Walks<'a>,
    /// The group: first and last step, and the marks of all.
    head: u32,
    tail: u32,
    in_group: Vec<bool>,
    /// The pairs of collectives that moving the group changes, beside its own.
    others: Vec<Pair>,
    /// The most that the peak may grow, bytes.
    allowed: f64,
    runtime_mode: bool,
    swaps: usize,
}

impl<'a> Mover<'a> {
    fn new(steps: &'a Steps, buffers: &Buffers, budget: f64, runtime_mode: bool) -> Mover<'a> {
        let memory = Tracker::new(steps, buffers);
        Mover {
            steps,
            list: List::new(steps.len()),
            allowed: memory.base() as f64 * budget,
            memory,
            walks: Walks::new(steps),
            head: 0,
            tail: 0,
            in_group: vec![false; steps.len()],
            others: Vec::new(),
            runtime_mode,
            swaps: 0,
        }
    }

    fn begin(&mut self, step: u32) {
        (self.head, self.tail) = (step, step);
        self.in_group[step as usize] = true;
        self.others.clear();
    }

    fn end(&mut self) {
        let mut at = Some(self.head);
        while let Some(step) = at {
            self.in_group[step as usize] = false;
            at = self.list.next(step).filter(|_| step != self.tail);
        }
    }

    /// How the group stands to a step before it.
    fn bond_before(&self, candidate: u32) -> Bond {
        bond(self.steps.after(candidate), &self.in_group)
    }

    /// How the group stands to a step after it.
    fn bond_after(&self, candidate: u32) -> Bond {
        bond(self.steps.before(candidate), &self.in_group)
    }

    fn fits(&self, potential: i64) -> bool {
        (potential - self.memory.base()) as f64 <= self.allowed
    }

    /// Whether the group may lose (or gain) a candidate that takes so long, as to the time that is exposed. If so the
    /// pairs of others are told of it when the swap is made.
    fn pays(&self, own: Pair, candidate: u32, strategy: &dyn Strategy) -> bool {
        let r = seconds(self.steps, candidate);
        let others: Vec<(f64, f64)> = self
            .others
            .iter()
            .map(|other| (positive(other.exposed()), positive(other.exposed() + r)))
            .collect();
        r <= 0.0 || !strategy.exposes_more((positive(own.exposed()), positive(own.exposed() - r)), &others)
    }

    fn swapped(&mut self, candidate: u32) {
        self.swaps += 1;
        let r = seconds(self.steps, candidate);
        if self.runtime_mode && r > 0.0 {
            self.others.iter_mut().for_each(|other| other.comp -= r);
        }
    }

    fn finish(self) -> Moved {
        let peak = (self.memory.base(), self.memory.peak());
        Moved { order: self.list.order(), peak, swaps: self.swaps }
    }
}

fn bond(neighbours: &[(u32, bool)], in_group: &[bool]) -> Bond {
    let mut found = Bond::Free;
    for &(step, real) in neighbours {
        match (in_group[step as usize], real) {
            (true, true) => return Bond::Real,
            (true, false) => found = Bond::Order,
            (false, _) => {}
        }
    }
    found
}

/// Collectives earlier.
pub(super) fn raise_comms(
    steps: &Steps,
    buffers: &Buffers,
    config: &Config,
    budget: f64,
    strategy: &dyn Strategy,
) -> Moved {
    let mut mover = Mover::new(steps, buffers, budget, config.runtime_mode);
    for collective in (0..steps.len() as u32).filter(|&step| steps.launches[step as usize]) {
        // The step at the end of the list is never moved.
        if mover.list.next(collective).is_none() {
            continue;
        }
        mover.begin(collective);
        raise(&mut mover, collective, config, strategy);
        mover.end();
    }
    mover.finish()
}

fn raise(mover: &mut Mover, collective: u32, config: &Config, strategy: &dyn Strategy) {
    let steps = mover.steps;
    let mut own =
        if config.runtime_mode { mover.walks.right(&mover.list, collective) } else { Pair::default() };
    let mut at = mover.list.prev(collective);
    while let Some(candidate) = at {
        let i = candidate as usize;
        if (config.runtime_mode && own.is_hidden()) || steps.communicates[i] {
            return;
        }
        match mover.bond_before(candidate) {
            Bond::Order => return,
            Bond::Real if steps.gemm[i] && !config.runtime_mode => return,
            Bond::Real => {
                if config.runtime_mode && steps.waits[i] {
                    let pair = mover.walks.left(&mover.list, candidate);
                    mover.others.push(pair);
                }
                mover.head = candidate;
                mover.in_group[i] = true;
                at = mover.list.prev(candidate);
            }
            Bond::Free => {
                if config.runtime_mode && !mover.pays(own, candidate, strategy) {
                    return;
                }
                let in_group = &mover.in_group;
                let is_in = |step: u32| in_group[step as usize];
                let plan = mover.memory.raise(&mover.list, mover.head, mover.tail, candidate, &is_in);
                if !mover.fits(plan.potential) {
                    return;
                }
                mover.list.move_after(mover.tail, candidate);
                mover.memory.apply(&plan);
                mover.swapped(candidate);
                if config.runtime_mode {
                    own = mover.walks.right(&mover.list, collective);
                }
                at = mover.list.prev(mover.head);
            }
        }
    }
}

/// Waits later.
pub(super) fn sink_waits(
    steps: &Steps,
    buffers: &Buffers,
    config: &Config,
    budget: f64,
    strategy: &dyn Strategy,
) -> Moved {
    let mut mover = Mover::new(steps, buffers, budget, config.runtime_mode);
    for wait in (0..steps.len() as u32).rev().filter(|&step| steps.waits[step as usize]) {
        // The step at the beginning of the list is never moved.
        if mover.list.prev(wait).is_none() {
            continue;
        }
        mover.begin(wait);
        sink(&mut mover, wait, config, strategy);
        mover.end();
    }
    mover.finish()
}

fn sink(mover: &mut Mover, wait: u32, config: &Config, strategy: &dyn Strategy) {
    let steps = mover.steps;
    let mut own = if config.runtime_mode { mover.walks.left(&mover.list, wait) } else { Pair::default() };
    let mut absorbed = 0.0;
    let mut holds_communication = steps.communicates[wait as usize];
    let mut at = mover.list.next(wait);
    while let Some(candidate) = at {
        let i = candidate as usize;
        if (config.runtime_mode && own.is_hidden()) || steps.launches[i] {
            return;
        }
        let bond = match mover.bond_after(candidate) {
            Bond::Real => Bond::Real,
            // Communication does not pass communication, but it may move along.
            _ if holds_communication && steps.communicates[i] => Bond::Real,
            bond => bond,
        };
        match bond {
            Bond::Order => return,
            Bond::Real => {
                let is_heavy = steps.communicates[i] || steps.gemm[i];
                if steps.waits[i] || (is_heavy && !config.runtime_mode) {
                    return;
                }
                if config.runtime_mode && steps.communicates[i] {
                    let pair = mover.walks.right(&mover.list, candidate);
                    mover.others.push(pair);
                }
                holds_communication |= steps.communicates[i];
                absorbed += seconds(steps, candidate);
                mover.tail = candidate;
                mover.in_group[i] = true;
                at = mover.list.next(candidate);
            }
            Bond::Free => {
                if config.runtime_mode {
                    if steps.waits[i] {
                        let theirs = mover.walks.left(&mover.list, candidate);
                        let (before, after) =
                            (positive(theirs.exposed()), positive(theirs.exposed() + absorbed));
                        if after > before {
                            return;
                        }
                    }
                    if !mover.pays(own, candidate, strategy) {
                        return;
                    }
                }
                let plan = mover.memory.sink(&mover.list, mover.head, mover.tail, candidate);
                if !mover.fits(plan.potential) {
                    return;
                }
                mover.list.move_before(mover.head, candidate);
                mover.memory.apply(&plan);
                mover.swapped(candidate);
                if config.runtime_mode {
                    own = mover.walks.left(&mover.list, wait);
                }
                at = mover.list.next(mover.tail);
            }
        }
    }
}
