//! `rewrite/generators`: one draw from each generator that is handed to draws.
//!
//! # The idea
//!
//! A draw may be handed a generator (`graphsafe_run_with_rng_state`), which goes on as it draws: a second draw from it
//! gets the numbers that follow, and whoever draws from it in another graph (backward, from the same state) gets others
//! than were meant. From a state in a tensor (`run_with_rng_state`) any number of draws give the same numbers.
//! Source: `torch._prims.rng_prims`.
//!
//! # What it does not do
//!
//! Generators that operators take themselves (`generator=`) are shared by many draws, as in eager mode. Partitions have
//! `partition/rng-paired`.

use super::partition::draws_from_generator;
use super::{AnalyzedGraph, Checked, Evidence, Stage};
use crate::graph::{NodeId, Value};
use std::collections::BTreeMap;

/// The draws from each generator that is handed to some, in list order.
fn draws(side: &AnalyzedGraph) -> BTreeMap<NodeId, Vec<NodeId>> {
    let graph = side.graph;
    let mut draws: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    for id in graph.ids().filter(|&id| draws_from_generator(graph, id)) {
        if let Some(Value::Node(generator)) = graph.kwarg(id, "rng_state") {
            draws.entry(generator).or_default().push(id);
        }
    }
    draws
}

/// Each generator has one draw, or as many as before.
pub(super) fn drawn_once(evidence: &Evidence) -> Checked {
    let (old, new) = (draws(&evidence.before), draws(&evidence.after));
    let twin = |id: NodeId| evidence.correspondence.before_of[id.index()];
    let name = |id: NodeId| evidence.after.graph.name(id);
    let mut findings = Vec::new();
    for (generator, draws) in new {
        let had = twin(generator).and_then(|twin| old.get(&twin)).map_or(1, Vec::len);
        if draws.len() <= had.max(1) {
            continue;
        }
        let names: Vec<&str> = draws.iter().map(|&id| name(id)).collect();
        let title = format!("{} draw from one generator, {}", names.join(" and "), name(generator));
        findings.push(
            evidence
                .finding("rewrite/generators", Stage::After, title)
                .after_nodes(evidence, draws.iter().copied().chain([generator]))
                .expected("each generator has one draw, or as many as before")
                .observed(format!("{} draws, and {had} before", draws.len())),
        );
    }
    Checked::Findings(findings)
}
