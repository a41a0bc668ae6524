//! The memory model of Inductor's scheduler: buffers, dependencies, peaks, and orders that need little memory.
//!
//! # The idea
//!
//! A [`Program`] is what the scheduler sees: nodes in order, each with the buffers that it makes and dependencies on
//! others' buffers. [`Planning`] adds who keeps a buffer alive and who must come later; a [`Timeline`] the lives of
//! all buffers in one order, from which both estimates of the peak follow. [`orders`] looks for a better order.
//!
//! A mutation renames its buffer at no cost: the new name weighs nothing, and its readers keep the buffer alive that
//! the memory was allocated for. So does the reader of a view. A kernel with several outputs allocates them all at
//! once; each is freed by itself.
//!
//! # What it does not do
//!
//! No padding, no rounding, no reuse of buffers. Nodes that were grouped into one are not taken apart.

pub mod lower;
pub mod orders;
pub mod planning;
pub mod program;
pub mod strategy;
pub mod timeline;

pub use lower::lower;
pub use orders::{Choice, Method, reorder_for_peak_memory};
pub use planning::{Planning, Rows, Size};
pub use program::{
    Buffer, BufferId, Declared, Dependency, Kind, Layout, Node, NodeIndex, Program, ProgramFault,
};
pub use strategy::{Reference, Strategy};
pub use timeline::{Phase, Phases, Record, Region, Timeline, estimate_region, steps_of};

#[cfg(test)]
mod tests;
