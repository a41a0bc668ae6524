//! Memory: what is live when, as PyTorch counts it and as it is.
//!
//! # The idea
//!
//! Three ways of counting stand side by side.
//! - [`mod@profile`] is PyTorch's estimate for FX graphs, byte for byte: recorded storages, freed after their last
//!   use. [`tracker`] is its incremental twin for orders that differ from the list.
//! - [`scheduler`] is the buffer model of Inductor's scheduler: dependencies, renames, sizes, planning fields;
//!   on it rest both peak estimators ([`scheduler::timeline`]), the region estimate and the three memory orders ([`scheduler::orders`]).
//! - [`mod@replay`] is the truth that these are compared with: the storages of the run time, aliases counted once,
//!   alive until nobody holds any alias, the memory of a collective in flight until its wait.
//!
//! [`difference`] tells the first step at which a prediction and the replay part, and why.
//!
//! Every step has three phases: what it allocates is added, the peak is taken, what nobody needs any more is
//! freed. A peak is thus counted after the allocations of a step and before its frees.
//!
//! # What it does not do
//!
//! No rounding by an allocator, no fragmentation, no temporary memory inside an operator. Bodies of higher-order
//! operators are not looked into.

pub mod difference;
pub mod ledger;
pub mod profile;
pub mod replay;
pub mod scheduler;
pub mod size;
pub mod steps;
pub mod strategy;
pub mod tracker;

pub use ledger::{Entry, Ledger, Resize};
pub use profile::{Profile, profile};
pub use replay::{Held, Replay, replay};
pub use size::{Bytes, NoSize, PYTORCH_UNBACKED, Sizes};
pub use steps::{Devices, Life, MemoryFault, StepBytes, Steps};
pub use strategy::{Reference, Strategy};
pub use tracker::{Tracker, TrackerFault};

/// What an implementation of the memory passes may be asked for, as the option `method` of a case names it: the profile
/// of FX graphs, the scheduler's estimates, its orders, and its passes that keep account of memory while they swap
/// neighbours.
pub const METHODS: &[&str] = &[
    "profile",
    "estimate",
    "lpmf",
    "bfs",
    "dfs",
    "reorder_for_peak_memory",
    "reorder_communication_preserving_peak_memory",
    "sink_waits_iterative",
    "simple_overlap",
];
