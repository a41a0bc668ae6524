//! A device, as far as a replay needs one.
//!
//! Commands are enqueued and run when the device gets to them; only [`Device::synchronize`] says that they are over.
//! The device knows the plan's buffers by their numbers.

use super::plan::Launch;
use super::report::Finding;

/// Written to memory that was freed. Not a number as f16, bf16, f32 and f64, wherever it is read from.
pub const FREED: u32 = 0x7FF1_7FF1;
/// Written to memory that was allocated and not written yet.
pub const UNWRITTEN: u32 = 0x7FF2_7FF2;
/// Written around buffers.
pub const GUARD: u32 = 0x7FF3_7FF3;
/// Bytes of a guard band.
pub const GUARD_BYTES: u64 = 256;

/// How buffers are placed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Placement {
    /// By the allocator, which may use freed memory again at once.
    Allocator,
    /// Each with guard bands, and never on memory that was used before.
    Guarded,
    /// In one block, each at this offset.
    Arena {
        /// Offsets by buffer, in bytes.
        offsets: Vec<u64>,
        /// Size of the block, in bytes.
        bytes: u64,
    },
}

/// Why a device cannot go on: one line for people.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Trouble {
    /// There is nothing to run on, or it cannot do what is asked.
    #[error("{0}")]
    CannotRun(String),
    /// The device failed while it ran.
    #[error("{0}")]
    Failed(String),
}

/// What a device is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Description {
    /// Its name.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// Where its kernels come from.
    pub kernels: String,
    /// Bytes to which the allocator rounds.
    pub granularity: u64,
}

/// Memory in use, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Now.
    pub used: u64,
    /// The most since [`Device::begin`].
    pub peak: u64,
    /// Held by the allocator.
    pub reserved: u64,
}

/// A device.
pub trait Device {
    /// What it is.
    fn describe(&self) -> Description;
    /// Forgets everything of an earlier replay. `buffers` are sizes in bytes.
    fn begin(
        &mut self,
        streams: usize,
        events: usize,
        buffers: &[u64],
        placement: &Placement,
    ) -> Result<(), Trouble>;
    /// Allocates a buffer. Its bytes are [`UNWRITTEN`] from then on.
    fn alloc(&mut self, stream: u32, buffer: u32, command: usize) -> Result<(), Trouble>;
    /// Fills a buffer with [`FREED`] and frees it.
    fn free(&mut self, stream: u32, buffer: u32, command: usize) -> Result<(), Trouble>;
    /// Starts a kernel.
    fn launch(&mut self, stream: u32, launch: &Launch, command: usize) -> Result<(), Trouble>;
    /// Records an event.
    fn record(&mut self, stream: u32, event: u32, command: usize) -> Result<(), Trouble>;
    /// Makes a stream wait for an event.
    fn wait(&mut self, stream: u32, event: u32, command: usize) -> Result<(), Trouble>;
    /// Keeps a stream busy for some nanoseconds.
    fn spin(&mut self, stream: u32, nanoseconds: u64) -> Result<(), Trouble>;
    /// Waits until everything that was enqueued is over.
    fn synchronize(&mut self) -> Result<(), Trouble>;
    /// Puts bytes into a buffer. Everything must be over.
    fn upload(&mut self, buffer: u32, bytes: &[u8]) -> Result<(), Trouble>;
    /// The bytes of a buffer. Everything must be over.
    fn download(&mut self, buffer: u32) -> Result<Vec<u8>, Trouble>;
    /// Memory in use.
    fn usage(&mut self) -> Result<Usage, Trouble>;
    /// What the device itself has seen go wrong since [`Device::begin`]: races, guard words that changed.
    fn findings(&mut self) -> Result<Vec<Finding>, Trouble>;
    /// Whether it can capture what is enqueued as a graph.
    fn captures(&self) -> bool {
        false
    }
    /// From now on commands are captured, not run.
    fn capture(&mut self) -> Result<(), Trouble> {
        Err(Trouble::CannotRun("the device captures no graphs".to_string()))
    }
    /// Ends the capture; what was captured can be launched.
    fn captured(&mut self) -> Result<(), Trouble> {
        Err(Trouble::CannotRun("the device captures no graphs".to_string()))
    }
    /// Runs what was captured.
    fn launch_captured(&mut self) -> Result<(), Trouble> {
        Err(Trouble::CannotRun("the device captures no graphs".to_string()))
    }
}
