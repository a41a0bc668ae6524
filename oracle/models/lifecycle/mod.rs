//! The lifecycle verifier: what an executor did to memory, step by step, against what was predicted.
//!
//! # The idea
//!
//! An executor, whichever it is, tells its [`Event`]s: which storage it allocates, reads, writes and frees, which
//! collective it starts and waits for, and where a step ends. A [`Verifier`] judges each event as it comes. Two kinds
//! of things can be wrong:
//! - *memory safety*, whatever was predicted: a storage is used before it is allocated or after it was freed, freed
//!   twice, read or written past its end, or touched while a collective is in flight on those bytes;
//! - *the prediction*: at the end of a step other storages were allocated or freed than a [`Prediction`] says, or with
//!   other sizes; at the end of the run something is alive that should not be, or the other way round.
//!
//! This is the job of PyTorch's `torch._inductor.runtime.debug_utils.BufMemoryTracker`
//! (`test_configs.track_memory_lifecycle`), done on storages instead of names, with reads and writes.
//!
//! One verifier serves any number of runs, at the same time or one after another: a run holds its own state and
//! leaves nothing behind, however it ends. In [`Mode::Assert`] the first fault is an error, in [`Mode::Log`] all of
//! them are collected.
//!
//! A memory snapshot of PyTorch is judged by addresses instead of names ([`judge_device`]).
//!
//! # What it does not do
//!
//! It does not execute anything, and it does not know what a value is.

mod arena;
mod event;
mod in_flight;
mod lines;
mod prediction;
mod snapshot;
mod verifier;

pub use arena::{ArenaFault, Placement, check_arena};
pub use event::{Event, Range, Touched};
pub use lines::{EventLineError, read_events, write_events};
pub use prediction::{Expected, Prediction, events_of_replay};
pub use snapshot::{DeviceReport, Peak, SnapshotFault, Sum, judge_device};
pub use verifier::{Fault, FaultKind, Mode, Run, Summary, Verifier};

#[cfg(test)]
mod tests;
