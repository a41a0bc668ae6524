//! What the decisions of one run may look at.

use super::super::classes::{Classes, distances};
use super::super::error::PartitionError;
use super::super::hazards::Hazards;
use super::super::joint::{Joint, Role, Sort};
use super::super::marks::{MarkTable, Recompute};
use super::super::max_flow::INFINITE;
use super::super::strategy::Strategy;
use super::fusion::Fusion;
use crate::config::partition::PartitionConfig;
use crate::graph::NodeId;
use fixedbitset::FixedBitSet;

/// The joint graph and what is known about it.
pub struct Context<'a> {
    /// The joint graph.
    pub joint: &'a Joint,
    /// What is asked for.
    pub config: &'a PartitionConfig,
    /// Its classes.
    pub classes: &'a Classes,
    /// Who chooses.
    pub strategy: &'a dyn Strategy,
    /// What can be fused.
    pub fusion: Fusion,
    /// What must not be saved or computed again.
    pub hazards: &'a Hazards,
    /// What must be kept because the tags of the user say so.
    pub kept: FixedBitSet,
    /// Distance from backward.
    pub distances: Vec<i64>,
    /// 1.1 to the power of 0 to 100.
    powers: Vec<f64>,
}

impl<'a> Context<'a> {
    /// Derives what is needed.
    pub fn new(
        joint: &'a Joint,
        config: &'a PartitionConfig,
        classes: &'a Classes,
        strategy: &'a dyn Strategy,
        hazards: &'a Hazards,
    ) -> Context<'a> {
        Context {
            distances: distances(joint, &classes.forward),
            fusion: Fusion::new(joint),
            // Not by repeated multiplication: the C library's power, to the bit.
            powers: (0..=100).map(|k| std::hint::black_box(1.1f64).powf(f64::from(k))).collect(),
            kept: kept(joint, classes),
            joint,
            config,
            classes,
            strategy,
            hazards,
        }
    }

    /// Whether a tag demands that `id` is kept: its own, or that of a view of it.
    pub fn must_keep(&self, id: NodeId) -> bool {
        self.joint.tags(id).must_save() || self.kept.contains(id.index())
    }

    /// Whether `id` is to be computed again. That it would rather be does not count where a view of it must be saved.
    pub fn recomputes(&self, id: NodeId) -> bool {
        match self.joint.tags(id).recompute {
            Some(Recompute::MustRecompute) => true,
            Some(Recompute::PreferRecompute) => !self.kept.contains(id.index()),
            _ => false,
        }
    }

    /// The distance of `id` from backward.
    pub fn distance(&self, id: NodeId) -> i64 {
        self.distances[id.index()]
    }

    /// Whether `id` has to be in memory as it is: an input, or something that a reader cannot be fused with.
    pub fn materialized(&self, id: NodeId) -> bool {
        matches!(self.joint.role(id), Role::Primal | Role::ForwardSeed | Role::Tangent | Role::BackwardSeed)
            || self.joint.users(id).iter().any(|&user| !self.fusion.fuses(self.joint, id, user))
    }
}

/// What the user's own `MUST_SAVE` keeps, the tags that passes set left aside: the value; of a view the value whose
/// memory it shows, unless that is an input, which is there anyway, or must be computed again, which contradicts.
fn kept(joint: &Joint, classes: &Classes) -> FixedBitSet {
    let given = MarkTable::of(&joint.graph);
    let is_view = |id: NodeId| joint.ops.call(&joint.graph, id).is_some_and(|info| info.is_view());
    let is_item_of_view =
        |id: NodeId| joint.target(id).getitem && joint.edges.inputs(id).iter().any(|&from| is_view(from));
    let mut kept = FixedBitSet::with_capacity(joint.graph.len());
    for id in joint.ids().filter(|&id| given.get(id).must_save() && classes.needs_forward(id)) {
        let mut at = id;
        while (is_view(at) || is_item_of_view(at))
            && let Some(&from) = joint.edges.inputs(at).first()
        {
            at = from;
        }
        let must_be_repeated = given.get(at).recompute == Some(Recompute::MustRecompute);
        if joint.role(at) == Role::Call && !must_be_repeated {
            kept.insert(at.index());
        }
    }
    kept
}

/// What saving a value costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weight {
    /// In weighted bytes.
    Finite(u128),
    /// It cannot be saved, for this reason.
    Never(&'static str),
}

impl Weight {
    /// As a capacity.
    pub fn capacity(self) -> u128 {
        match self {
            Weight::Finite(weight) => weight,
            Weight::Never(_) => INFINITE,
        }
    }
}

/// The reference's weight: the size, a tenth more for each step away from backward up to 100 of them, and twice
/// that for what would otherwise not be in memory. Static inputs are free.
pub fn weight(cx: &Context, id: NodeId) -> Result<Weight, PartitionError> {
    let joint = cx.joint;
    match joint.sort(id) {
        Sort::SymInt | Sort::SymBool => return Ok(Weight::Finite(1)),
        Sort::SymFloat => return Ok(Weight::Finite(4)),
        Sort::Opaque | Sort::Script => return Ok(Weight::Finite(0)),
        Sort::Tuple => return Ok(Weight::Never("is a tuple")),
        Sort::Nothing | Sort::Device => return Ok(Weight::Never("is no tensor")),
        Sort::Tensor => {}
    }
    if joint.tags(id).replayed_mutation {
        return Ok(Weight::Never("is overwritten by the runtime after forward"));
    }
    let waits = joint.waits(id);
    if !waits.is_empty() && !waits.iter().any(|&wait| cx.recomputes(wait)) {
        return Ok(Weight::Never("is communication in flight, which a wait ends"));
    }
    if cx.hazards.overwritten(id) {
        return Ok(Weight::Never("is overwritten in forward after it was read"));
    }
    if cx.config.free_parameters && cx.classes.static_inputs.contains(id.index()) {
        return Ok(Weight::Finite(0));
    }
    if cx.config.recompute_views && joint.target(id).sets.view {
        return Ok(Weight::Never("is a view (recompute_views)"));
    }
    let steps = cx.distance(id).clamp(1, 100) as usize;
    let weighted = (joint.size(id)? as f64 * cx.powers[steps]).trunc() as u128;
    Ok(Weight::Finite(if cx.materialized(id) { weighted } else { 2 * weighted }))
}
