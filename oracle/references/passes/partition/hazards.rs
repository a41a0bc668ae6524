//! What may be neither handed over nor done twice, whatever it costs.
//!
//! - A value *is overwritten*: forward writes to its storage after somebody read it. Backward would find the new
//!   contents, so the value cannot be saved.
//! - A node *cannot be repeated*: it draws random numbers and nobody tagged it to be computed again (then the draw
//!   is paired, see [`super::random`]), it has an effect, or forward writes to its storage before somebody reads it.
//!
//! PyTorch 2.15 knows of the first only for inputs that the runtime writes to (#197039) and of the second only
//! through its list of cheap operators, which a budget sets aside (#190758).

use super::joint::{Joint, Role};
use super::min_cut::Ban;
use super::strategy::Strategy;
use crate::analysis::bytes::{ByteSet, Overlap};
use crate::analysis::storages::Mode;
use crate::analysis::{Collectives, StorageIndex, Storages};
use crate::graph::NodeId;
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;

/// The hazards of one joint graph.
#[derive(Clone, Debug, Default)]
pub struct Hazards {
    /// The last write of forward, for each value that it spoils.
    overwritten: FxHashMap<NodeId, NodeId>,
    unrepeatable: Vec<Option<Ban>>,
    forbidden: FixedBitSet,
}

impl Hazards {
    /// Finds the hazards of `joint`.
    pub fn of(joint: &Joint, strategy: &dyn Strategy) -> Hazards {
        let mut hazards = Hazards {
            overwritten: FxHashMap::default(),
            forbidden: FixedBitSet::with_capacity(joint.graph.len()),
            unrepeatable: joint.ids().map(|id| strategy.unrepeatable(joint, id)).collect(),
        };
        if strategy.minds_overwriting()
            && joint.ids().any(|id| joint.target(id).mutable && strategy.must_be_forward(joint, id))
        {
            for (id, writes) in written(joint, strategy) {
                let readers =
                    || joint.users(id).iter().filter(|&&user| joint.role(user) != Role::Output).copied();
                let spoils = |write: &NodeId| readers().any(|reader| reader < *write);
                if let Some(last) = writes.iter().copied().filter(spoils).max() {
                    hazards.overwritten.insert(id, last);
                }
                let is_read_later = |write: &NodeId| readers().any(|reader| *write < reader);
                if joint.role(id) == Role::Call && writes.iter().any(is_read_later) {
                    hazards.unrepeatable[id.index()].get_or_insert(Ban::Rewritten);
                }
            }
        }
        hazards
    }

    /// Whether forward writes to the storage of `id` after it was read.
    pub fn overwritten(&self, id: NodeId) -> bool {
        self.overwritten.contains_key(&id)
    }

    /// Whether `reader` reads `id` before forward overwrites it: handed over, `id` would have other contents.
    pub fn reads_before(&self, id: NodeId, reader: NodeId) -> bool {
        self.overwritten.get(&id).is_some_and(|&write| reader < write)
    }

    /// Why `id` must not be computed again.
    pub fn unrepeatable(&self, id: NodeId) -> Option<Ban> {
        self.unrepeatable.get(id.index()).copied().flatten()
    }

    /// Forbids that `id` is computed again although forward does not need it.
    pub fn forbid(&mut self, id: NodeId) {
        self.forbidden.insert(id.index());
    }

    /// Whether `id` was forbidden to be computed again.
    pub fn is_forbidden(&self, id: NodeId) -> bool {
        self.forbidden.contains(id.index())
    }
}

/// Why the reference does not compute `id` again.
pub fn unrepeatable(joint: &Joint, id: NodeId) -> Option<Ban> {
    let target = joint.target(id);
    if joint.role(id) != Role::Call {
        return None;
    }
    if joint.must_be_forward(id) || target.with_effects {
        return Some(Ban::Effect);
    }
    // What an earlier partition wrapped is not paired again: PyTorch knows draws by the tag of their operator
    // (`is_rng_op`), and the wrappers have none (tests/peer/merging.py).
    let is_paired = target.seeded && joint.tags(id).recomputes();
    (joint.draws(id) && !is_paired).then_some(Ban::Draw)
}

/// Values that forward writes to after they were made, each with these writes.
fn written(joint: &Joint, strategy: &dyn Strategy) -> Vec<(NodeId, Vec<NodeId>)> {
    let graph = &joint.graph;
    let collectives = Collectives::new(graph, &joint.ops);
    let storages = Storages::new(graph, &joint.ops, &joint.edges, &collectives, Mode::Physical);
    let mut writes: FxHashMap<StorageIndex, Vec<(NodeId, ByteSet)>> = FxHashMap::default();
    for access in storages.accesses().iter().filter(|access| access.touch.writes() && access.part.certain) {
        if joint.target(access.node).mutable && strategy.must_be_forward(joint, access.node) {
            writes.entry(access.part.storage).or_default().push((access.node, access.part.bytes));
        }
    }
    let since = |id: NodeId| {
        let writes = storages.all_parts(id).filter(|part| part.certain).flat_map(|part| {
            let writes = writes.get(&part.storage).map_or(&[][..], Vec::as_slice);
            writes.iter().filter(|(_, bytes)| bytes.overlap(part.bytes) != Overlap::No)
        });
        let writes: Vec<NodeId> = writes.map(|&(write, _)| write).filter(|&write| id < write).collect();
        (!writes.is_empty()).then_some((id, writes))
    };
    joint.ids().filter_map(since).collect()
}
