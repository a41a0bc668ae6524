//! The activation-checkpointing pass over a joint graph: everything in forward that backward needs is to be
//! computed again, but for what is live where little is, once in a stage, and for some expensive operators.
//!
//! Source: `autoparallel.graph_passes.activation_checkpointing.ac_joint_pass`.

use super::classes::{FAR, distances};
use super::error::PartitionError;
use super::fsdp::REGION;
use super::joint::{Joint, Role};
use super::marks::{Placement, Recompute, retag, set_recompute};
use super::strategy::{Reference, Strategy};
use crate::config::partition::{PartitionConfig, Stage};
use crate::graph::{Graph, NodeId};
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;

const GIB: f64 = (1u64 << 30) as f64;

/// Tags the joint graph.
pub fn checkpoint(graph: &Graph, stage: Stage) -> Result<Graph, PartitionError> {
    checkpoint_with(graph, stage, &Reference)
}

/// [`checkpoint`] by another strategy.
pub fn checkpoint_with(
    graph: &Graph,
    stage: Stage,
    strategy: &dyn Strategy,
) -> Result<Graph, PartitionError> {
    let joint = Joint::new(
        graph.clone(),
        &PartitionConfig { num_forward_outputs: Some(0), ..PartitionConfig::default() },
    )?;
    let forward = |id: &NodeId| {
        joint.tags(*id).placement != Placement::Backward
            && !matches!(joint.role(*id), Role::Tangent | Role::Output)
    };
    let mut in_forward = FixedBitSet::with_capacity(joint.graph.len());
    joint.ids().filter(forward).for_each(|id| in_forward.insert(id.index()));
    let distances = distances(&joint, &in_forward);
    let needed = |id: &NodeId| {
        in_forward.contains(id.index())
            && distances[id.index()] < FAR
            && matches!(joint.role(*id), Role::Call | Role::Constant)
    };
    let region: Vec<NodeId> = joint.ids().filter(needed).collect();
    let mut pass =
        Pass { graph: joint.graph.clone(), joint: &joint, region, tagged: vec![None; joint.graph.len()] };
    if stage != Stage::None {
        pass.prefer_recompute();
        let live = pass.live(stage)?;
        live.into_iter().for_each(|id| pass.save(id));
    }
    let products: Vec<NodeId> =
        pass.region.iter().copied().filter(|&id| joint.graph.target(id) == "aten.mm.default").collect();
    let mut saved = strategy.kept_products(&joint, &products);
    saved.extend(pass.region.iter().copied().filter(|&id| is_attention(joint.graph.target(id))));
    saved.into_iter().for_each(|id| pass.save(id));
    Ok(pass.graph)
}

/// Every other one, from the first.
pub fn every_other(products: &[NodeId]) -> Vec<NodeId> {
    products.iter().copied().step_by(2).collect()
}

fn is_attention(target: &str) -> bool {
    matches!(
        target,
        "aten._scaled_dot_product_efficient_attention.default"
            | "aten._scaled_dot_product_flash_attention.default"
            | "aten._scaled_dot_product_cudnn_attention.default"
    )
}

struct Pass<'a> {
    graph: Graph,
    joint: &'a Joint,
    /// Forward nodes that backward needs, directly or not, in graph order.
    region: Vec<NodeId>,
    /// The tags that the pass has set: recompute policy and region.
    tagged: Vec<Option<(Recompute, Option<i64>)>>,
}

impl Pass<'_> {
    fn strategy(&self, id: NodeId) -> (Option<Recompute>, Option<i64>) {
        let tags = self.joint.tags(id);
        self.tagged[id.index()]
            .map_or((tags.recompute, tags.region), |(strategy, region)| (Some(strategy), region))
    }

    /// Tags what nobody tagged, getitems excepted.
    fn prefer_recompute(&mut self) {
        for &id in &self.region {
            if self.joint.tags(id).recompute.is_some() || self.joint.target(id).getitem {
                continue;
            }
            retag(&mut self.graph, id, |graph, tags| {
                tags.recompute = Some(graph.intern(Recompute::PreferRecompute.name()));
                tags.ac_graph_id = Some(REGION);
            });
            self.tagged[id.index()] = Some((Recompute::PreferRecompute, Some(REGION)));
        }
    }

    /// Saves a value, unless a user's policy says otherwise.
    fn save(&mut self, id: NodeId) {
        let (strategy, region) = self.strategy(id);
        if strategy.is_none() || region == Some(REGION) {
            set_recompute(&mut self.graph, id, Recompute::MustSave);
            self.tagged[id.index()] = Some((Recompute::MustSave, region));
        }
    }

    /// What is live where least is, once in each stage.
    fn live(&self, stage: Stage) -> Result<Vec<NodeId>, PartitionError> {
        let again = |id: NodeId| self.strategy(id).0 == Some(Recompute::MustRecompute);
        let last_uses = self.last_uses(&again);
        let mut sizes = FxHashMap::default();
        let mut total = 0i64;
        for &id in &self.region {
            let size = self.joint.size(id)?;
            sizes.insert(id, size);
            if !again(id) {
                total = total.saturating_add(size);
            }
        }
        let size = |id: &NodeId| sizes.get(id).copied().unwrap_or(0);
        let target = GIB
            * match stage {
                Stage::Gib(gib) => gib,
                Stage::Auto => (total as f64 / GIB).sqrt(),
                Stage::None => return Ok(Vec::new()),
            };
        // The sweep twice: once for where least is live, once for what is live there.
        let mut picks = Vec::new();
        let (mut accumulated, mut best): (i64, Option<(i64, NodeId)>) = (0, None);
        let mut ends: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        for &id in self.region.iter() {
            if let Some(&last) = last_uses.get(&id) {
                ends.entry(last).or_default().push(id);
            }
        }
        let ended = |id: NodeId| ends.get(&id).map_or(&[][..], Vec::as_slice);
        let mut score = 0i64;
        for &id in &self.region {
            if !again(id) {
                score = score.saturating_add(size(&id));
                for value in ended(id).iter().filter(|&&value| !again(value)) {
                    score = score.saturating_sub(size(value));
                }
                accumulated = accumulated.saturating_add(size(&id));
            }
            if best.is_none_or(|(least, _)| score < least) {
                best = Some((score, id));
            }
            if accumulated as f64 >= target {
                picks.extend(best.take().map(|(_, id)| id));
                accumulated = 0;
            }
        }
        picks.extend(best.map(|(_, id)| id));
        let mut live = FixedBitSet::with_capacity(self.joint.graph.len());
        let mut saved = Vec::new();
        let mut next = picks.iter().peekable();
        for &id in &self.region {
            if !again(id) {
                live.insert(id.index());
                ended(id).iter().for_each(|value| live.set(value.index(), false));
            }
            if next.next_if_eq(&&id).is_some() {
                saved.extend(live.ones().map(|index| NodeId(index as u32)));
            }
        }
        Ok(saved)
    }

    /// The last reader of each value in the region, where what must be computed again hands its inputs on to
    /// its readers.
    fn last_uses(&self, again: &impl Fn(NodeId) -> bool) -> FxHashMap<NodeId, NodeId> {
        let mut inside = FixedBitSet::with_capacity(self.joint.graph.len());
        self.region.iter().for_each(|id| inside.insert(id.index()));
        // What a reader of a node reads in its place: the node, or what it is computed from.
        let mut stands_for: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        let mut last = FxHashMap::default();
        for &id in &self.region {
            let mut read: Vec<NodeId> = Vec::new();
            for &input in self.joint.edges.inputs(id).iter().filter(|input| inside.contains(input.index())) {
                match stands_for.get(&input) {
                    Some(others) => read.extend_from_slice(others),
                    None => read.push(input),
                }
            }
            read.sort_unstable();
            read.dedup();
            last.insert(id, id);
            last.extend(read.iter().map(|&value| (value, id)));
            if again(id) {
                stands_for.insert(id, read);
            }
        }
        last
    }
}
