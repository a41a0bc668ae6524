//! Keeping to the memory budget: what forward hands over in the end is compared with what the budget allows.
//!
//! PyTorch's steps decide by sums over nodes, count inputs whether or not backward reads them, round sizes to
//! ten-thousandths, and then cut by weights ([`super::min_cut::budget`]). What is kept in the end are storages, and
//! they may be more than the budget, which was promised to hold. Then the steps are taken again with smaller and
//! smaller parts of the budget, at last with none.

use super::error::PartitionError;
use super::joint::{Joint, Role};
use super::result::Partition;
use super::storage::storages;
use crate::config::partition::PartitionConfig;
use crate::graph::{Graph, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Parts of the budget that are tried.
const PARTS: i32 = 10;

/// `partition`, if it keeps within the budget of `config`; else one that does. `cut` cuts with another budget.
pub(super) fn within_budget(
    graph: &Graph,
    config: &PartitionConfig,
    partition: Partition,
    cut: impl Fn(&PartitionConfig) -> Result<Partition, PartitionError>,
) -> Result<Partition, PartitionError> {
    let with = |budget: f64| cut(&PartitionConfig { budget, ..config.clone() });
    let holdings = Holdings::of(graph, config)?;
    let least = with(0.0)?;
    let (low, high) = (holdings.bytes(&least), holdings.bytes(&with(1.0)?));
    let allowed = low as f64 + config.budget * (high - low).max(0) as f64;
    let fits = |partition: &Partition| holdings.bytes(partition) as f64 <= allowed;
    if fits(&partition) {
        return Ok(partition);
    }
    for part in (1..PARTS).rev() {
        let smaller = with(config.budget * f64::from(part) / f64::from(PARTS))?;
        if fits(&smaller) {
            return Ok(smaller);
        }
    }
    Ok(least)
}

/// The sizes of the storages of a joint graph, in bytes, those of static inputs left out.
struct Holdings {
    storages: Vec<Option<u32>>,
    bytes: FxHashMap<u32, i64>,
}

impl Holdings {
    fn of(graph: &Graph, config: &PartitionConfig) -> Result<Holdings, PartitionError> {
        let joint = Joint::new(graph.clone(), config)?;
        let storages = storages(&joint);
        let primals = joint.with_role(Role::Primal);
        let is_static = config.static_inputs.of(graph, primals.len());
        let fixed = primals.iter().zip(is_static).filter(|(_, is_static)| *is_static);
        let fixed: FxHashSet<u32> = fixed.filter_map(|(id, _)| storages[id.index()]).collect();
        let mut bytes: FxHashMap<u32, i64> = FxHashMap::default();
        for id in joint.ids() {
            if let Some(storage) = storages[id.index()].filter(|storage| !fixed.contains(storage)) {
                // By the hints of symbolic sizes, where a graph has them.
                let hinted = graph.tensor_of(id).and_then(|tensor| graph.bytes(tensor));
                let own = hinted.map_or_else(|| joint.size(id), Ok)?;
                let largest = bytes.entry(storage).or_default();
                *largest = own.max(*largest);
            }
        }
        Ok(Holdings { storages, bytes })
    }

    /// What a partition keeps for backward.
    fn bytes(&self, partition: &Partition) -> i64 {
        let storage = |id: NodeId| self.storages.get(id.index()).copied().flatten();
        let used: FxHashSet<u32> = partition.values.iter().filter_map(|value| storage(value.node)).collect();
        used.iter()
            .filter_map(|storage| self.bytes.get(storage))
            .fold(0, |sum, &bytes| sum.saturating_add(bytes))
    }
}
