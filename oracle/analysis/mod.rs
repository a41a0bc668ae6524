//! What follows from a graph: edges and reachability, storages and their versions, faults.

pub mod collectives;
pub mod contraction;
pub mod cycle;
pub mod edges;
pub mod origin;
pub mod reachability;
#[cfg(test)]
mod testing;
pub mod topological;

pub use collectives::{CollectiveCall, Collectives, GroupName};
pub use contraction::{ContractedCycle, check_contraction};
pub use cycle::{Cycle, shortest_cycle};
pub use edges::{EdgeSource, Edges};
pub use origin::{Hazard, Origin, Origins};
pub use reachability::Reachability;
pub use topological::TopologicalOrder;
