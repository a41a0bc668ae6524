//! Bucketing of collectives: several all-gathers, reduce-scatters or all-reduces on one process group become one.
//!
//! # The idea
//!
//! Kind by kind, candidates are taken in the order of their waits, formed into runs by key, and cut greedily into
//! buckets under a size limit ([`select`]); the buckets of a kind are decided before the first of them is merged
//! ([`merge`]). Afterwards the list is put in order once ([`repair`]). The steps are those of
//! PyTorch 2.15 (`torch._inductor.fx_passes.bucketing` and `.fsdp`), node for node, except where PyTorch's result
//! would not be right:
//!
//! - *Legality* ([`legality`]): members are independent on the graph with all earlier buckets contracted, through
//!   every kind of dependence. PyTorch looks along data edges from the members to the candidate, on the graph
//!   before this kind's first merge.
//! - *Casts* ([`merge::foldable`], [`merge::packs_exactly`]): only what keeps every value is folded.
//! - *Buffers* given as `out=` that somebody reads are left alone.
//! - *Mixed dtypes* come together in a multidtype mode only, also under the FSDP filter, and only if every piece
//!   is aligned.
//! - *Custom gather bodies* fill their results through a node that no data edge connects with them. It gets
//!   ordering edges to their readers, and the final order keeps them.
//! - *Order*: where the final sort along data edges breaks an ordering edge or swaps two conflicting accesses, the
//!   list is sorted again with these as extra edges.
//! - What PyTorch stops at with an assertion (two users of a collective, differing group sizes, ...) is declined
//!   for that collective, and the rest goes on.
//!
//! # What it does not do
//!
//! Overlap with computation: neither the scheduler nor the overlap-preserving and manual bucketers. Symbolic sizes
//! in merged bodies: such collectives are declined. Coalesced, in-place and all-to-all collectives are no
//! candidates.

pub mod facts;
pub mod fsdp;
pub mod key;
pub mod legality;
pub mod member;
pub mod merge;
pub mod plan;
mod positions;
pub mod select;
pub mod strategy;
mod waits;

pub use crate::config::bucketing::{Config, Filter, Mode, Ranks, Selection};
pub use crate::config::cap::{Cap, Interconnect};
pub use facts::Facts;
pub use key::Key;
pub use legality::Legality;
pub use member::{Group, Member, Targets};
pub use plan::{Bucket, Bucketed, Declined, Reason, Refusal};
pub use select::Open;
pub use strategy::{AfterConflict, Context, Reference, Run, Strategy};

use super::repair;
use crate::graph::{Editor, Graph, NodeId, OrderingEdge};
use crate::ops::{Collective, Ops};
use merge::Merging;
use select::{Chosen, Places};

/// Buckets the collectives of a graph by the reference. The graph's list must be sorted; it is not changed.
pub fn bucket(graph: &Graph, config: &Config) -> Result<Bucketed, Refusal> {
    let bucketed = bucket_with(graph, config, &Reference)?;
    match bucketed.cycle {
        Some(cycle) => Err(cycle.into()),
        None => Ok(bucketed),
    }
}

/// Buckets by another strategy. A cycle in the result is reported in it, not refused.
pub fn bucket_with(graph: &Graph, config: &Config, strategy: &dyn Strategy) -> Result<Bucketed, Refusal> {
    let (bucketed, risky) = attempt(graph, config, strategy, false)?;
    match bucketed.cycle {
        Some(_) if risky => Ok(attempt(graph, config, strategy, true)?.0),
        _ => Ok(bucketed),
    }
}

/// Also returns whether being careful might give another result.
fn attempt(
    graph: &Graph,
    config: &Config,
    strategy: &dyn Strategy,
    careful: bool,
) -> Result<(Bucketed, bool), Refusal> {
    let passes = config.passes();
    check(graph, config, &passes)?;
    let mut editor = Editor::new(graph);
    let targets = Targets::of(graph);
    if strategy.deduplicates_waits() && waits::deduplicate(&mut editor) > 0 {
        // Facts are about a graph, not about an editor.
        let gone = graph.ids().filter(|&id| editor.is_erased(id)).map(|id| graph.name(id).to_string());
        let gone: Vec<String> = gone.collect();
        editor = Editor::from_owned(editor.finish());
        editor.avoid(gone);
    }
    let ops = Ops::of(editor.graph());
    let facts = Facts::of(editor.graph(), &ops);
    let waits: Vec<NodeId> =
        editor.graph().ids().filter(|&id| targets.waited(editor.graph(), id).is_some()).collect();
    let mut legality = strategy.legality(&facts, &waits);
    let fsdp = match config.filter {
        Filter::Fsdp => fsdp_groups(&editor, config, &targets),
        Filter::None => FsdpGroups::default(),
    };
    let mut merging = Merging::new(editor, ops, &facts, config, careful);
    let (mut plan, mut declined) = (Vec::new(), Vec::new());
    for kind in passes {
        if config.filter == Filter::Fsdp && fsdp.none(config) {
            break;
        }
        let chosen = choose(&merging, strategy, &fsdp, kind, &mut legality, &mut declined)?;
        for bucket in &chosen {
            plan.push(merging.merge(strategy, bucket)?);
        }
    }
    let hazards = strategy.hazards(&facts);
    let risky = merging.risky;
    Ok((finish(merging, strategy, hazards, plan, declined), risky))
}

/// Faults of configuration and graph that no pass can work with.
fn check(graph: &Graph, config: &Config, passes: &[Collective]) -> Result<(), Refusal> {
    for &kind in passes {
        if !matches!(kind, Collective::AllGather | Collective::ReduceScatter | Collective::AllReduce) {
            return Err(Refusal::Kind { kind: kind.name() });
        }
        // The FSDP pass packs reduce-scatters as in the mode without mixed dtypes.
        let mixed = config.mode == Mode::CustomOpsMultidtype && config.filter == Filter::None;
        if kind == Collective::ReduceScatter && mixed {
            return Err(Refusal::MultidtypeReduceScatter);
        }
    }
    for id in graph.ids() {
        let mut dangling = None;
        graph.for_each_dangling(id, &mut |name| dangling = Some(name.to_string()));
        if let Some(name) = dangling {
            return Err(Refusal::Dangling { node: graph.name(id).to_string(), name });
        }
    }
    match repair::first_violation(graph) {
        Some(edge) => Err(Refusal::Unsorted(edge)),
        None => Ok(()),
    }
}

/// The groups that FSDP gathers are on.
#[derive(Default)]
struct FsdpGroups {
    groups: Vec<Group>,
    group_size: Option<i64>,
}

impl FsdpGroups {
    /// Whether the whole pre-pass has nothing to do.
    fn none(&self, config: &Config) -> bool {
        config.kinds.is_empty() && self.groups.is_empty()
    }
}

/// All groups of FSDP gathers; the one with the most of them (the first of several) in the spanning selection.
fn fsdp_groups(editor: &Editor, config: &Config, targets: &Targets) -> FsdpGroups {
    let (counts, group_size) = fsdp::groups(editor, targets);
    let groups = match config.selection {
        Selection::Adjacent => counts.iter().map(|&(group, _)| group).collect(),
        Selection::Spanning { .. } => {
            let most = counts.iter().map(|&(_, count)| count).max();
            let first = counts.iter().find(|&&(_, count)| Some(count) == most);
            first.map(|&(group, _)| group).into_iter().collect()
        }
    };
    // Only the whole pre-pass computes one limit for all kinds.
    FsdpGroups { groups, group_size: group_size.filter(|_| config.kinds.is_empty()) }
}

/// The buckets of one kind, on the graph as it stands.
fn choose(
    merging: &Merging,
    strategy: &dyn Strategy,
    fsdp: &FsdpGroups,
    kind: Collective,
    legality: &mut Legality,
    declined: &mut Vec<Declined>,
) -> Result<Vec<Chosen>, Refusal> {
    let cx = merging.context();
    let config = cx.config;
    let mut members = strategy.candidates(&cx, kind)?;
    // The all-reduce pass on its own takes every group.
    let any_group = config.kinds == [Collective::AllReduce];
    if config.filter == Filter::Fsdp && !any_group {
        fsdp::keep(cx.editor, &fsdp.groups, &mut members);
    }
    if let Some(names) = &config.groups {
        members.retain(|member| fsdp::is_named(cx.editor, member.group, names));
    }
    let candidates = members.into_iter().map(|member| (strategy.key(&cx, &member), member)).collect();
    let runs = strategy.runs(&cx, candidates);
    let spans = matches!(config.selection, Selection::Spanning { max_topo_span: Some(_) });
    let places = Places {
        position: if spans { positions(cx.editor) } else { Vec::new() },
        group_size: fsdp.group_size,
    };
    let mut chosen = Vec::new();
    for run in &runs {
        chosen.extend(select::cut(&cx, strategy, legality, &places, run, declined)?);
    }
    Ok(chosen)
}

fn positions(editor: &Editor) -> Vec<u32> {
    let mut positions = vec![0; editor.graph().len()];
    for (i, id) in editor.list().into_iter().enumerate() {
        positions[id.index()] = i as u32;
    }
    positions
}

/// The final order.
fn finish(
    merging: Merging,
    strategy: &dyn Strategy,
    hazards: Vec<OrderingEdge>,
    plan: Vec<Bucket>,
    declined: Vec<Declined>,
) -> Bucketed {
    let Merging { mut editor, moved, fillers, .. } = merging;
    let mut ordering: Vec<OrderingEdge> = Vec::new();
    for edge in std::mem::take(&mut editor.graph_mut().ordering) {
        ordering.extend(strategy.moved_edge(&moved, edge));
    }
    for filler in &fillers {
        let readers = filler.results.iter().flat_map(|&result| editor.users(result));
        ordering.extend(readers.map(|&reader| OrderingEdge { before: filler.node, after: reader }));
    }
    ordering.sort_unstable();
    ordering.dedup();
    editor.graph_mut().ordering = ordering;
    let (unrepaired, position) = editor.finish_with_map();
    let now = |id: NodeId| position.get(id.index()).copied().flatten();
    let hazards: Vec<OrderingEdge> = hazards
        .into_iter()
        .filter_map(|edge| moved.edge(edge))
        .filter_map(|edge| Some(OrderingEdge { before: now(edge.before)?, after: now(edge.after)? }))
        .collect();
    let (graph, cycle) = match strategy.final_order(&unrepaired, &hazards) {
        Ok(order) => (unrepaired.clone().reordered(&order), None),
        Err(cycle) => (unrepaired.clone(), Some(cycle)),
    };
    Bucketed { graph, unrepaired, plan, declined, cycle }
}

/// PyTorch's order, which sees data edges only, if it keeps everything else; else the order with extra edges.
fn order(graph: &Graph, hazards: &[OrderingEdge]) -> Result<Vec<NodeId>, repair::Cycle> {
    let order = repair::stable_data_order(graph)?;
    let mut place = vec![0u32; graph.len()];
    for (i, id) in order.iter().enumerate() {
        place[id.index()] = i as u32;
    }
    let kept = |edge: &OrderingEdge| place[edge.before.index()] < place[edge.after.index()];
    if graph.ordering.iter().chain(hazards).all(kept) {
        return Ok(order);
    }
    repair::stable_order_with(graph, hazards)
}

#[cfg(test)]
mod tests;
