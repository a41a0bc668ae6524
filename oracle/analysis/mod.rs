//! What follows from a graph: edges and reachability, storages and their versions, faults.

pub mod edges;

pub use edges::Edges;
