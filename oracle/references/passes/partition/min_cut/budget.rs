//! The memory budget: how much of the activation memory, between saving the inputs only and saving what is
//! quickest, may be used.
//!
//! Source: `torch._functorch.partitioners.choose_saved_values_set` of PyTorch 2.15. There a budget of 0 saves
//! the inputs and nothing else, tags, collectives and random draws notwithstanding (#188014, #190758); here the
//! values that must not be computed again are saved.

use super::super::classes::FAR;
use super::super::error::{Origin, PartitionError, Problem};
use super::super::joint::Role;
use super::super::result::Proof;
use super::bans::Ban;
use super::context::Context;
use super::network::{Cut, solve};
use crate::config::partition::{Bans, Runtime};
use crate::graph::{NodeId, Value};
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashSet;

/// What is saved, and the proof where it is a minimum cut.
pub struct Choice {
    /// The values, in graph order.
    pub saved: Vec<NodeId>,
    /// The proof.
    pub proof: Option<Proof>,
}

impl From<Cut> for Choice {
    fn from(cut: Cut) -> Choice {
        Choice { saved: cut.saved, proof: Some(cut.proof) }
    }
}

/// The budget of a graph: the one that a region is annotated with, else the one of the first node that has one,
/// else the configuration's.
pub fn budget(cx: &Context) -> Result<f64, PartitionError> {
    let joint = cx.joint;
    let of_node = joint.ids().find_map(|id| joint.tags(id).budget);
    let mut budget = of_node.unwrap_or(cx.config.budget);
    let annotated = |id: NodeId| joint.marks.custom(id).budget;
    let Some(first) = joint.ids().find(|&id| annotated(id).is_some()) else { return Ok(budget) };
    let conflict = |text: &str, id: NodeId, why: String| {
        let error = PartitionError::new(Problem::ContradictoryTags, text).with(
            joint.name(first),
            Origin::Annotation,
            format!("has the budget {:?}", annotated(first).unwrap_or(1.0)),
        );
        Err(error.with(joint.name(id), Origin::Annotation, why))
    };
    for id in joint.ids() {
        match annotated(id) {
            Some(other) if annotated(first) != Some(other) => {
                return conflict(
                    "regions of one graph have different budgets",
                    id,
                    format!("has the budget {other:?}"),
                );
            }
            None if cx.config.budget_needs_coverage
                && joint.role(id) == Role::Call
                && cx.classes.needs_forward(id) =>
            {
                let why = "has no budget".to_string();
                return conflict("the region with a budget does not hold the whole forward part", id, why);
            }
            other => budget = other.unwrap_or(budget),
        }
    }
    Ok(annotated(first).unwrap_or(budget))
}

/// Chooses what is saved within `budget`.
pub fn choose(cx: &Context, budget: f64) -> Result<Choice, PartitionError> {
    if !(0.0..=1.0).contains(&budget) {
        let text = format!("a budget is from 0 to 1, not {budget:?}");
        return Err(PartitionError::new(Problem::ContradictoryTags, text));
    }
    let none = FixedBitSet::new();
    let bans = cx.config.bans();
    let sheltered = cx.classes.inputs.iter().all(|&id| !cx.joint.tags(id).replayed_mutation);
    if budget == 0.0
        && sheltered
        && let Some(choice) = cx.strategy.without_memory(cx)?
    {
        return Ok(choice);
    }
    let quickest = solve(cx, bans, &none)?;
    if budget == 1.0 {
        return Ok(quickest.into());
    }
    let size = |list: &[NodeId]| -> Result<f64, PartitionError> {
        let mut sum = 0i128;
        for &id in list {
            sum += i128::from(cx.joint.size(id)?);
        }
        Ok(sum as f64 / 1e9)
    };
    let (least, most) = (size(&cx.classes.inputs)?, size(&quickest.saved)?);
    if most <= least {
        return Ok(quickest.into());
    }
    let ratio = |list: &[NodeId]| Ok((size(list)? - least) / (most - least));
    let bans = Bans { far_apart: false, long_chains: false, materialized_backward: false, ..bans };
    let smaller = solve(cx, bans, &none)?;
    if ratio(&smaller.saved)? < budget {
        return Ok(smaller.into());
    }
    let bans = Bans { not_in_allow_list: false, ..bans };
    let smallest = solve(cx, bans, &none)?;
    if ratio(&smallest.saved)? < budget {
        return Ok(smallest.into());
    }
    let items = candidates(cx, &smallest)?;
    if items.is_empty() {
        return Ok(smallest.into());
    }
    let mut memories = Vec::with_capacity(items.len());
    for &id in &items {
        memories.push((cx.joint.size(id)? as f64 / 1e9) / (most - least));
    }
    let runtimes: Vec<f64> = items.iter().map(|&id| runtime(cx, id)).collect();
    let kept = cx.strategy.keep_within(cx.config.solver, &memories, &runtimes, budget)?;
    let mut lifted = FixedBitSet::with_capacity(cx.joint.graph.len());
    items.iter().zip(kept).filter(|(_, kept)| !kept).for_each(|(id, _)| lifted.insert(id.index()));
    Ok(solve(cx, bans, &lifted)?.into())
}

/// The banned values that a budget may take back, largest first.
fn candidates(cx: &Context, cut: &Cut) -> Result<Vec<NodeId>, PartitionError> {
    let storages = super::super::storage::storages(cx.joint);
    let of_inputs: FxHashSet<Option<u32>> = cx.classes.inputs.iter().map(|id| storages[id.index()]).collect();
    let mut banned = cut.banned.clone();
    banned.sort_unstable();
    banned.retain(|&id| cx.strategy.may_unban(cx, id) && !of_inputs.contains(&storages[id.index()]));
    let mut sized = Vec::with_capacity(banned.len());
    for id in banned {
        sized.push((std::cmp::Reverse(cx.joint.size(id)?), id));
    }
    sized.sort_by_key(|(size, _)| *size);
    Ok(sized.into_iter().map(|(_, id)| id).collect())
}

/// What is saved where there is no memory at all: the inputs, unless something must not be computed again; then
/// the least that holds it.
pub fn without_memory(cx: &Context) -> Result<Option<Choice>, PartitionError> {
    let joint = cx.joint;
    // What is returned by backward, and what it is made of: the distance does not see it.
    let mut needed = FixedBitSet::with_capacity(joint.graph.len());
    for id in joint.ids().rev().filter(|&id| joint.role(id) != Role::Output) {
        if needed.contains(id.index()) || cx.classes.backward.contains(id.index()) {
            needed.insert(id.index());
            joint.edges.inputs(id).iter().for_each(|input| needed.insert(input.index()));
        }
    }
    let firm = |id: &NodeId| {
        (cx.distance(*id) < FAR || needed.contains(id.index()))
            && !cx.recomputes(*id)
            && (cx.must_keep(*id) || cx.hazards.unrepeatable(*id).is_some_and(Ban::is_firm))
    };
    let fixed = cx.classes.in_order.iter().any(firm);
    if !fixed && !joint.ids().any(|id| cx.hazards.overwritten(id) || cx.hazards.is_forbidden(id)) {
        return Ok(Some(Choice { saved: cx.classes.inputs.clone(), proof: None }));
    }
    let bans = Bans {
        far_apart: false,
        long_chains: false,
        materialized_backward: false,
        not_in_allow_list: false,
        reductions: false,
    };
    let mut lifted = FixedBitSet::with_capacity(joint.graph.len());
    for &id in cx.classes.in_order.iter().filter(|id| joint.role(**id) == Role::Call && !firm(id)) {
        lifted.insert(id.index());
    }
    solve(cx, bans, &lifted).map(|cut| Some(cut.into()))
}

/// What computing a value again costs: floating-point operations, at least 1.
fn runtime(cx: &Context, id: NodeId) -> f64 {
    match cx.config.runtime {
        Runtime::Testing => 1.0,
        Runtime::Flops => flops(cx, id).unwrap_or(0.0).max(1.0),
    }
}

/// Source: `torch.utils.flop_counter`.
fn flops(cx: &Context, id: NodeId) -> Option<f64> {
    let graph = &cx.joint.graph;
    let sizes = |id: NodeId| -> Option<Vec<f64>> {
        let tensor = graph.tensor_of(id)?;
        let hint = |dim: &crate::graph::Dim| graph.hint(*dim).map_or(4096.0, |n| n as f64);
        Some(graph.dims(tensor.shape).iter().map(hint).collect())
    };
    let shape = |index: usize| match graph.arg(id, index)? {
        Value::Node(input) => sizes(input),
        _ => None,
    };
    let (target, _) = graph.target(id).rsplit_once('.')?;
    match target {
        "aten.mm" | "aten._scaled_mm" => product(&shape(0)?, &shape(1)?),
        "aten.addmm" | "aten.baddbmm" => product(&shape(1)?, &shape(2)?),
        "aten.bmm" => product(&shape(0)?, &shape(1)?),
        "aten.convolution" => {
            let transposed = graph.arg(id, 6) == Some(Value::Bool(true));
            let spatial = if transposed { shape(0)? } else { sizes(id)? };
            let (batch, weight) = (*shape(0)?.first()?, shape(1)?);
            Some(2.0 * batch * weight.iter().product::<f64>() * spatial.get(2..)?.iter().product::<f64>())
        }
        "aten._scaled_dot_product_efficient_attention"
        | "aten._scaled_dot_product_flash_attention"
        | "aten._scaled_dot_product_flash_attention_for_cpu"
        | "aten._scaled_dot_product_cudnn_attention" => {
            let (query, key, value) = (shape(0)?, shape(1)?, shape(2)?);
            let [batch, heads, rows, depth] = query[..] else { return None };
            Some(2.0 * batch * heads * rows * key.get(2)? * (depth + value.get(3)?))
        }
        _ => None,
    }
}

/// Two operations for every element of the result and of the dimension summed over.
fn product(a: &[f64], b: &[f64]) -> Option<f64> {
    Some(2.0 * a.iter().product::<f64>() * b.last()?)
}
