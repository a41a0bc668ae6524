//! How much of a collective's time the steps between it and its wait do not hide, in a list as it stands.

use super::list::List;
use super::steps::Steps;

/// Estimates of collectives count twice. Source: `comm_estimation_multiplier`-like constants of
/// `torch/_inductor/comms.py`.
const COLLECTIVE: f64 = 2.0;

/// A collective and what hides it, seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Pair {
    /// The collective's runtime.
    pub(super) comm: f64,
    /// The runtime of what lies between it and its wait.
    pub(super) comp: f64,
}

impl Pair {
    /// What is not hidden; negative where more hides it than it takes.
    pub(super) fn exposed(self) -> f64 {
        self.comm - self.comp
    }

    /// Whether so much hides it already that no more is needed.
    pub(super) fn is_hidden(self) -> bool {
        self.exposed() < -0.5 * self.comm
    }
}

/// What is positive of a number.
pub(super) fn positive(x: f64) -> f64 {
    x.max(0.0)
}

/// The runtime of a step, as runtime mode counts it.
pub(super) fn seconds(steps: &Steps, step: u32) -> f64 {
    let factor = if steps.communicates[step as usize] { COLLECTIVE } else { 1.0 };
    steps.seconds[step as usize] * factor
}

/// Measures pairs by walking along the list.
pub(super) struct Walks<'a> {
    steps: &'a Steps,
    /// Marks of the walk that is going on.
    mark: Vec<u32>,
    walk: u32,
}

impl<'a> Walks<'a> {
    pub(super) fn new(steps: &'a Steps) -> Walks<'a> {
        Walks { steps, mark: vec![0; steps.len()], walk: 0 }
    }

    /// Of a collective: what lies between it and its own wait, the first step after it that needs its result. The walk
    /// also ends at a synchronous collective, and at the wait of an asynchronous one that it has met.
    pub(super) fn right(&mut self, list: &List, collective: u32) -> Pair {
        let steps = self.steps;
        self.walk += 2;
        let (own, met) = (self.walk, self.walk + 1);
        let mark = |marks: &mut Vec<u32>, of: u32, with: u32| {
            for &(user, real) in steps.after(of) {
                if real && marks[user as usize] != own {
                    marks[user as usize] = with;
                }
            }
        };
        mark(&mut self.mark, collective, own);
        let mut pair = Pair { comm: seconds(steps, collective), comp: 0.0 };
        let mut at = list.next(collective);
        while let Some(step) = at {
            let i = step as usize;
            if self.mark[i] == own || (self.mark[i] == met && steps.waits[i]) {
                break;
            }
            match (steps.launches[i], steps.communicates[i]) {
                (true, _) => mark(&mut self.mark, step, met),
                (false, true) => break,
                (false, false) => pair.comp += seconds(steps, step),
            }
            at = list.next(step);
        }
        self.walk += 1;
        pair
    }

    /// Of a wait: what lies between it and the nearest collective whose result it needs. At a synchronous collective,
    /// and at an asynchronous one whose wait was met on the way, counting begins anew.
    pub(super) fn left(&mut self, list: &List, wait: u32) -> Pair {
        let steps = self.steps;
        self.walk += 2;
        let (own, met) = (self.walk, self.walk + 1);
        for &(before, real) in steps.before(wait) {
            if real && steps.communicates[before as usize] {
                self.mark[before as usize] = own;
            }
        }
        let mut pair = Pair::default();
        let mut at = list.prev(wait);
        while let Some(step) = at {
            let i = step as usize;
            if self.mark[i] == own {
                pair.comm = seconds(steps, step);
                break;
            }
            match (steps.launches[i], steps.communicates[i]) {
                (true, _) if self.mark[i] == met => pair.comp = 0.0,
                (true, _) => {}
                (false, true) => pair.comp = 0.0,
                (false, false) => pair.comp += seconds(steps, step),
            }
            if steps.waits[i] {
                for &(before, real) in steps.before(step) {
                    let j = before as usize;
                    if real && steps.launches[j] && self.mark[j] != own {
                        self.mark[j] = met;
                    }
                }
            }
            at = list.prev(step);
        }
        self.walk += 1;
        pair
    }
}
