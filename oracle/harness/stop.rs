//! A stop that somebody asks for while work is going on: by a signal, or by the program that started it.
//!
//! Whoever does the work looks at it now and then and comes to an end by itself, with what is done so far.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A stop that may be asked for. Clones are one and the same.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicUsize>);

impl Stop {
    /// Asks for the stop, as the signal with this number does.
    pub fn request(&self, signal: u8) {
        self.0.store(usize::from(signal), Ordering::Relaxed);
    }

    /// Whether it was asked for.
    pub fn is_requested(&self) -> bool {
        self.signal().is_some()
    }

    /// The signal by which it was asked for.
    pub fn signal(&self) -> Option<u8> {
        u8::try_from(self.0.load(Ordering::Relaxed)).ok().filter(|&signal| signal > 0)
    }

    /// Where a handler stores the number of its signal.
    pub fn slot(&self) -> Arc<AtomicUsize> {
        self.0.clone()
    }
}
