//! How long the parts of a command took, for those who measure. On standard error, since what a command prints on
//! standard output is the same each time.

use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;

/// A watch that is read part by part.
pub(super) struct Timing {
    shown: bool,
    last: Instant,
    processor: f64,
}

impl Timing {
    /// Starts; says nothing later unless `shown`.
    pub(super) fn new(shown: bool) -> Timing {
        Timing { shown, last: Instant::now(), processor: processor_seconds() }
    }

    /// Prints how long the part since the last one took, in seconds: by the clock, and of all threads together.
    pub(super) fn print(&mut self, part: &str) {
        if self.shown {
            let processor = processor_seconds() - self.processor;
            let seconds = self.last.elapsed().as_secs_f64();
            eprintln!("{part}: {seconds:.6} s, {processor:.6} s of processor time");
        }
        *self = Timing::new(self.shown);
    }
}

/// The processor time of all threads of this process, in seconds.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
