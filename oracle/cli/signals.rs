//! Signals. Of Ctrl-C and SIGTERM the first asks for a stop, the second ends the program at once. SIGXFSZ ends nothing.

use super::{CouldNotRun, Status};
use crate::stop::Stop;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Has a file that reaches the limit on the size of files (`ulimit -f`) be an error of writing, as a full disk is, and
/// not the end of the program with half a file left.
pub(super) fn outlive_long_files() {
    // Where it cannot be done, nothing else is lost.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// A stop that Ctrl-C and SIGTERM ask for.
pub(super) fn stop_on_signals() -> Result<Stop, CouldNotRun> {
    let stop = Stop::default();
    let asked = Arc::new(AtomicBool::new(false));
    for (signal, status) in [(SIGINT, Status::Interrupted), (SIGTERM, Status::Terminated)] {
        // They act in this order: the first looks whether it is the second time.
        flag::register_conditional_shutdown(signal, i32::from(status as u8), asked.clone())
            .and_then(|_| flag::register(signal, asked.clone()))
            .and_then(|_| flag::register_usize(signal, stop.slot(), signal.unsigned_abs() as usize))
            .map_err(|error| CouldNotRun::new(format_args!("cannot listen to signals: {error}")))?;
    }
    Ok(stop)
}

/// The exit status of a program that a signal stopped.
pub(super) fn status(signal: u8) -> Status {
    match i32::from(signal) {
        SIGTERM => Status::Terminated,
        _ => Status::Interrupted,
    }
}
