//! Overlap by plain swaps: first each asynchronous collective goes up, then each wait goes down, one neighbour at a
//! time, until a dependence of any kind, another of its sort, or the peak of memory at the beginning stops it. Source:
//! `simple_overlap` of `torch/_inductor/comms.py`.

use super::iterative::Moved;
use super::list::List;
use super::memory::Tracker;
use super::steps::Steps;
use crate::simulate::Buffers;

/// The order of the steps.
pub(super) fn order(steps: &Steps, buffers: &Buffers) -> Moved {
    let n = steps.len() as u32;
    let (mut list, mut memory) = (List::new(steps.len()), Tracker::new(steps, buffers));
    let mut swaps = 0;
    let is_ordered = |before: u32, after: u32| steps.after(before).iter().any(|&(next, _)| next == after);
    for collective in (0..n).filter(|&step| steps.launches[step as usize]) {
        while let Some(before) = list.prev(collective) {
            if steps.launches[before as usize] || is_ordered(before, collective) {
                break;
            }
            let plan = memory.raise(&list, collective, collective, before, &|step| step == collective);
            if plan.potential > memory.base() {
                break;
            }
            list.move_after(collective, before);
            memory.apply(&plan);
            swaps += 1;
        }
    }
    let order = list.order();
    for &wait in order.iter().rev().filter(|&&step| steps.waits[step as usize]) {
        while let Some(after) = list.next(wait) {
            if steps.waits[after as usize] || is_ordered(wait, after) {
                break;
            }
            let plan = memory.sink(&list, wait, wait, after);
            if plan.potential > memory.base() {
                break;
            }
            list.move_before(wait, after);
            memory.apply(&plan);
            swaps += 1;
        }
    }
    Moved { order: list.order(), peak: (memory.base(), memory.peak()), swaps }
}
