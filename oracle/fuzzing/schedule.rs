//! The reference of the scheduling passes is right on every case: one target for each kind of pass.

use super::MOST_NODES;
use crate::candidates::Reference;
use crate::format::text;
use crate::generate::Bytes;
use crate::generate::schedule::{ScheduleCase, schedule_case};
use crate::graph::Graph;
use crate::judge::schedule::{judge_ranks, judge_scheduler, promises};
use crate::judge::{Judgement, Verdict, input_faults};
use crate::passes::schedule::{Config, Pass};
use crate::rules::PassKind;
use crate::rules::schedule::Promises;

/// The passes of list scheduling.
const SCORED: &[Pass] = &[Pass::SinkWaits, Pass::RaiseComms, Pass::ReorderComputeForOverlap];

/// The passes that swap neighbours.
const ITERATIVE: &[Pass] =
    &[Pass::ReorderCommunicationPreservingPeakMemory, Pass::SinkWaitsIterative, Pass::SimpleOverlap];

/// List scheduling, on a graph in text.
pub fn check_scored(data: &[u8]) {
    check_text(data, SCORED);
}

/// List scheduling, on a case made from choices.
pub fn check_scored_choices(data: &[u8]) {
    check_case(&schedule_case(&mut Bytes::new(data), 60), SCORED);
}

/// Swaps of neighbours, on a graph in text.
pub fn check_iterative(data: &[u8]) {
    check_text(data, ITERATIVE);
}

/// Swaps of neighbours, on a case made from choices.
pub fn check_iterative_choices(data: &[u8]) {
    check_case(&schedule_case(&mut Bytes::new(data), 60), ITERATIVE);
}

/// FSDP's order, on a graph in text.
pub fn check_fsdp(data: &[u8]) {
    check_text(data, &[Pass::Fsdp]);
}

/// FSDP's order, on a case made from choices.
pub fn check_fsdp_choices(data: &[u8]) {
    check_case(&schedule_case(&mut Bytes::new(data), 60), &[Pass::Fsdp]);
}

fn check_text(data: &[u8], passes: &[Pass]) {
    let Ok(case) = text::parse(data) else { return };
    let graph = case.graph;
    let is_small = graph.len() <= MOST_NODES && graph.world.ranks.unwrap_or(1) <= 8;
    if !is_small || !input_faults(&graph, PassKind::Bucketing).is_empty() || !super::is_race_free(&graph) {
        return;
    }
    for &pass in passes {
        for runtime_mode in [false, true] {
            let config = Config { runtime_mode, ..Config::new(pass) };
            if let Ok(judgement) = judge_scheduler(
                &graph,
                &config,
                &Reference,
                Promises { exact: true, ..promises(&config, true) },
                &Reference,
            ) {
                is_right(&judgement, &graph, pass);
            }
        }
    }
}

/// Panics unless the reference is right on a case.
pub fn check_case(case: &ScheduleCase, passes: &[Pass]) {
    for &pass in passes {
        let config = Config {
            estimates: case.estimates.clone(),
            budgets: case.budgets.clone(),
            runtime_mode: case.runtime_mode,
            ..Config::new(pass)
        };
        let promised = promises(&config, true);
        if let [graph] = &case.graphs[..] {
            if let Ok(judgement) =
                judge_scheduler(graph, &config, &Reference, Promises { exact: true, ..promised }, &Reference)
            {
                is_right(&judgement, graph, pass);
            }
            continue;
        }
        let schedule = |graph: &Graph| crate::passes::schedule::schedule(graph, &config).map(|s| s.graph);
        let after: Vec<_> = case.graphs.iter().map(schedule).collect();
        let ranks: Vec<(Vec<u32>, &Graph, &Graph)> = (0..)
            .zip(&case.of_rank)
            .filter_map(|(rank, &graph)| Some((vec![rank], &case.graphs[graph], after[graph].as_ref().ok()?)))
            .collect();
        if ranks.len() == case.of_rank.len()
            && let Ok(judgement) = judge_ranks(&ranks, promised)
        {
            is_right(&judgement, &case.graphs[0], pass);
        }
    }
}

fn is_right(judgement: &Judgement, graph: &Graph, pass: Pass) {
    if let Verdict::Violated(findings) = &judgement.verdict {
        panic!("{}: {findings:#?}\n{}", pass.name(), text::print_graph(graph));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Seeded, Source};

    /// A second's worth of each target.
    #[test]
    fn smoke() {
        let targets: [fn(&[u8]); 4] =
            [check_scored_choices, check_iterative_choices, check_fsdp_choices, crate::deadlock::check];
        for (index, target) in targets.iter().enumerate() {
            for case in 0..40 {
                let mut source = Seeded::case(index as u64, case);
                let length = source.below(1500);
                let data: Vec<u8> = (0..length).map(|_| source.below(256) as u8).collect();
                target(&data);
            }
        }
        let text = text::print_graph(&schedule_case(&mut Seeded::new(1), 40).graphs[0]);
        for target in [check_scored, check_iterative, check_fsdp] {
            target(text.as_bytes());
        }
    }
}
