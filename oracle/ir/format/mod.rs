//! How graphs and cases are written down: exchange JSON, text, pictures; and what PyTorch writes about a run.

pub mod dot;
pub mod flight_recorder;
pub mod fx;
pub mod json;
mod lines;
pub mod memory_snapshot;
pub mod objects;
pub mod parts;
pub mod pickle;
mod picture;
mod places;
pub mod recognise;
pub mod svg;
pub mod text;
pub mod torch_logs;
pub mod torch_trace;
mod window;

pub use places::{Places, Spot};
pub use window::window;
