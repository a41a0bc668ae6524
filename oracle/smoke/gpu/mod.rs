//! The smoke runner: a schedule replayed on a device, with values, lifetimes and memory checked.
//!
//! # The idea
//!
//! A graph and its world are lowered to a [`plan`]: for each rank a compute stream and a communication stream per
//! process group, events between them, allocations and frees where the schedule has them, kernels that read and write
//! windows of buffers, collectives as copies and rank-ordered reductions. The same plan is replayed on two kinds of
//! [`Device`]:
//! - the [`host`], which needs nothing: its streams are deferred queues, of which a seed picks a legal interleaving; vector
//!   clocks by storage and byte range say what is unordered, whatever the values come to; freed memory is poisoned,
//!   guarded and not used again;
//! - `cuda` (feature `cuda`), which is the real driver with its stream-ordered allocator.
//!
//! The [`passes`] ask one question each: is the plan sound as it stands, do all interleavings agree, does the device
//! use exactly the bytes that were predicted, does anything write outside of its buffer or read what is gone, do the
//! values hold when memory is reused as early as it may be. Values are compared bit for bit with the interpreter's.
//!
//! # What it does not do
//!
//! No tolerance: an operator without a kernel of exactly defined arithmetic runs on the host only. No timing.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod device;
pub mod host;
pub mod inject;
pub mod passes;
pub mod plan;
pub mod report;
pub mod suite;

pub use device::{Device, Placement, Trouble};
pub use plan::{Plan, lower};

#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
