//! What follows from a graph: edges and reachability, storages and their versions, faults.

pub mod collectives;
pub mod edges;

pub use collectives::{CollectiveCall, Collectives, GroupName};
pub use edges::Edges;
