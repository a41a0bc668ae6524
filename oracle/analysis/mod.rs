//! What follows from a graph: edges and reachability, storages and their versions, faults.

mod accesses;
mod aliasing;
pub mod bytes;
pub mod collectives;
pub mod conflicts;
pub mod contraction;
pub mod cycle;
pub mod dependences;
pub mod edges;
pub mod in_flight;
pub mod origin;
pub mod reachability;
pub mod storages;
#[cfg(test)]
mod testing;
pub mod topological;

pub use collectives::{CollectiveCall, Collectives, GroupName};
pub use contraction::{ContractedCycle, check_contraction};
pub use cycle::{Cycle, shortest_cycle};
pub use dependences::Dependences;
pub use edges::{EdgeSource, Edges};
pub use origin::{Hazard, Origin, Origins};
pub use reachability::Reachability;
pub use storages::{Access, Part, Sharing, Storage, StorageIndex, Storages, Touch};
pub use topological::TopologicalOrder;
pub mod validate;
