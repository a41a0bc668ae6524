//! What follows from a graph: edges and reachability, storages and their versions, faults.

mod accesses;
mod aliasing;
mod assertions;
pub mod bytes;
pub mod collectives;
mod computed;
pub mod conflicts;
pub mod contraction;
pub mod contradictions;
pub mod cycle;
pub mod dependences;
pub mod disagreements;
pub mod draws;
pub mod edges;
pub mod fault;
pub mod fused;
pub mod in_flight;
pub mod messages;
pub mod origin;
pub mod plain;
pub mod propagate;
pub mod reachability;
pub mod resize;
pub mod sequences;
pub mod sharing;
pub mod shrink;
pub mod storages;
pub mod streams;
#[cfg(test)]
mod testing;
pub mod topological;
pub mod validate;

pub use assertions::{asserted_conditions, redundant_assertions};
pub use collectives::{CollectiveCall, Collectives, GroupName};
pub use computed::{Computed, computed};
pub use contraction::{ContractedCycle, check_contraction};
pub use cycle::{Cycle, shortest_cycle};
pub use dependences::Dependences;
pub use draws::Draws;
pub use edges::{EdgeSource, Edges};
pub use origin::{Hazard, Origin, Origins};
pub use reachability::Reachability;
pub use sequences::Sequences;
pub use storages::{Access, Part, Sharing, Storage, StorageIndex, Storages, Touch};
pub use streams::Streams;
pub use topological::TopologicalOrder;
