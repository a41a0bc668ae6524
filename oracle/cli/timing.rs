//! How long the parts of a command took, for those who measure. On standard error, since what a command prints on
//! standard output is the same each time.

use std::time::Instant;

/// A watch that is read part by part.
pub(super) struct Timing {
    shown: bool,
    last: Instant,
}

impl Timing {
    /// Starts; says nothing later unless `shown`.
    pub(super) fn new(shown: bool) -> Timing {
        Timing { shown, last: Instant::now() }
    }

    /// Tells how long the part since the last one took, in seconds.
    pub(super) fn tell(&mut self, part: &str) {
        if self.shown {
            eprintln!("{part}: {:.6} s", self.last.elapsed().as_secs_f64());
        }
        self.last = Instant::now();
    }
}
