use super::*;
use crate::generate::schedule::{ScheduleCase, schedule_case};
use crate::generate::{self, Seeded};
use crate::graph::Graph;
use crate::judge::schedule::{judge_ranks, judge_scheduler, promises};
use crate::judge::{Judgement, Verdict};
use crate::passes::schedule::Pass;
use crate::rules::schedule::Promises;
use crate::rules::{Budget, Code};
use crate::scale::scaled;
use crate::simulate::Estimates;
use std::collections::BTreeMap;

fn config(case: &ScheduleCase, pass: Pass) -> Config {
    Config {
        estimates: case.estimates.clone(),
        budgets: case.budgets.clone(),
        runtime_mode: case.runtime_mode,
        ..Config::new(pass)
    }
}

/// Judges a scheduler on a case: one graph, or those of even and odd ranks.
fn judged(case: &ScheduleCase, pass: Pass, scheduler: &dyn Scheduler, exact: bool) -> Judgement {
    let config = config(case, pass);
    if let [graph] = &case.graphs[..] {
        return judge_scheduler(
            graph,
            &config,
            scheduler,
            Promises { exact, ..promises(&config, true) },
            &crate::candidates::Reference,
        )
        .unwrap();
    }
    let mut after = Vec::new();
    for (rank, &graph) in case.of_rank.iter().enumerate() {
        match scheduler.run(&case.graphs[graph], &config, rank as u32) {
            Ok(order) => after.push(order),
            Err(reason) => {
                let verdict = Verdict::Refused(reason);
                return Judgement { verdict, rules: Vec::new(), notes: Vec::new(), acted: false };
            }
        }
    }
    let ranks: Vec<(Vec<u32>, &Graph, &Graph)> = case
        .of_rank
        .iter()
        .zip(&after)
        .enumerate()
        .map(|(rank, (&graph, after))| (vec![rank as u32], &case.graphs[graph], after))
        .collect();
    judge_ranks(&ranks, promises(&config, true)).unwrap()
}

fn told(judgement: &Judgement) -> String {
    match &judgement.verdict {
        Verdict::Violated(findings) => format!("{findings:#?}"),
        other => format!("{other:?}"),
    }
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn the_reference_is_sound() {
    let count = scaled(200);
    let mut verdicts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for index in 0..count {
        let mut source = Seeded::case(11, index);
        let case = schedule_case(&mut source, 40);
        for &pass in Pass::ALL {
            let judgement = judged(&case, pass, &Reference, true);
            let word = match &judgement.verdict {
                Verdict::Sound => "sound",
                Verdict::Refused(reason) => {
                    let is_grouped = !case.graphs[0].clusters.is_empty() || pass == Pass::Fsdp;
                    assert!(reason.code == Code::NoSchedule && is_grouped, "{reason}");
                    "refused"
                }
                _ => panic!(
                    "case {index}, {}: {}\n{}",
                    pass.name(),
                    told(&judgement),
                    crate::format::text::print_graph(&case.graphs[0])
                ),
            };
            *verdicts.entry((pass.name(), word)).or_default() += 1;
            *verdicts.entry((pass.name(), "acted")).or_default() += u64::from(judgement.acted);
        }
    }
    println!("{count} cases: {verdicts:?}");
    for &pass in Pass::ALL {
        let acted = verdicts.get(&(pass.name(), "acted")).copied().unwrap_or(0);
        let share = if pass == Pass::Fsdp { 20 } else { 4 };
        assert!(acted * share > count, "{} moves something in {acted} of {count} cases", pass.name());
    }
}

/// The cases of the other passes: no messages, but all that their generator knows.
#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn the_reference_is_sound_on_graphs_made_for_bucketing() {
    let mut judgements = BTreeMap::new();
    for index in 0..scaled(80) {
        let graph = generate::case(&generate::Config::default(), 5, index).graph;
        if !crate::judge::input_faults(&graph, crate::rules::PassKind::Bucketing).is_empty() {
            continue;
        }
        for &pass in Pass::ALL {
            let config = Config { runtime_mode: index % 2 == 0, ..Config::new(pass) };
            let judgement = judge_scheduler(
                &graph,
                &config,
                &Reference,
                Promises { exact: true, ..promises(&config, true) },
                &crate::candidates::Reference,
            )
            .unwrap();
            let word = match &judgement.verdict {
                Verdict::Sound => "sound",
                Verdict::Refused(_) => "refused",
                Verdict::Undecided(_) => "undecided",
                Verdict::Violated(_) => {
                    panic!(
                        "case {index}, {}: {}\n{}",
                        pass.name(),
                        told(&judgement),
                        crate::format::text::print_graph(&graph)
                    )
                }
            };
            *judgements.entry(word).or_insert(0) += 1;
        }
    }
    println!("{judgements:?}");
}

/// Every mutant is convicted; the first case that does it, and the rules. Those that only do less than they could are
/// convicted where the reference's order is asked for.
#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn mutants_are_convicted() {
    let limit = scaled(300);
    let less = ["schedule-ordering-keeps-memory"];
    for mutant in mutants::all() {
        let exact = less.contains(&mutant.name());
        let found = (0..limit).find_map(|index| {
            let case = schedule_case(&mut Seeded::case(11, index), 40);
            Pass::ALL.iter().find_map(|&pass| {
                let rules = judged(&case, pass, &mutant, exact).violated_rules();
                (!rules.is_empty()).then(|| (index, pass.name(), rules))
            })
        });
        match found {
            Some((index, pass, rules)) => {
                println!("{}: case {index}, {pass}: {}", mutant.name(), rules.join(", "))
            }
            None => panic!("{} ({}) was not convicted in {limit} cases", mutant.name(), mutant.about()),
        }
    }
}

/// Runtime mode does not leave the last wait standing in front of computation that could hide it.
#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn waits_are_moved_as_far_as_it_is_worth() {
    let mut idle = 0;
    for index in 0..scaled(300) {
        let case = schedule_case(&mut Seeded::case(12, index), 40);
        let [graph] = &case.graphs[..] else { continue };
        let config = Config { runtime_mode: true, ..config(&case, Pass::SinkWaitsIterative) };
        let promised = Promises { progress: true, ..promises(&config, true) };
        for (scheduler, is_right) in
            [(&Reference as &dyn Scheduler, true), (&mutants::all().pop().unwrap(), false)]
        {
            let judgement =
                judge_scheduler(graph, &config, scheduler, promised.clone(), &crate::candidates::Reference)
                    .unwrap();
            let rules = judgement.violated_rules();
            idle += usize::from(!is_right && rules == ["schedule/progress"]);
            assert!(
                !is_right || rules.is_empty(),
                "case {index}: {}\n{}",
                told(&judgement),
                crate::format::text::print_graph(graph)
            );
        }
    }
    assert!(idle > 1, "{idle}");
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn real_graphs() {
    for name in ["llama3_8b_bw_64_1d", "llama3_8b_fw_256_2d", "dsv3_fw_64"] {
        let Some(graph) = crate::recorded::graph(name) else { continue };
        let programs = |graph: &Graph| crate::simulate::Programs::spmd(graph, &Estimates::default());
        let exposed = |graph: &Graph| crate::simulate::exposure(&programs(graph)).unwrap_or(0) / 1000;
        let buffers = crate::passes::schedule::buffers(&graph);
        let all: Vec<_> = graph.ids().collect();
        println!(
            "{name}: {} nodes, exposed {} us, peak {} MiB",
            graph.len(),
            exposed(&graph),
            buffers.peak_of_order(&all).bytes >> 20
        );
        for &pass in Pass::ALL {
            for runtime_mode in [false, true] {
                if runtime_mode && !pass.keeps_peak() {
                    continue;
                }
                let config = Config { runtime_mode, ..Config::new(pass) };
                let start = std::time::Instant::now();
                let scheduled = crate::passes::schedule::schedule(&graph, &config).unwrap();
                let took = start.elapsed();
                let mut promised = promises(&config, true);
                promised.exposed = (pass == Pass::ReorderComputeForOverlap).then_some(Budget::Factor(1.0));
                let start = std::time::Instant::now();
                let judgement =
                    crate::judge::schedule::judge_schedule(&graph, &[(None, &scheduled.graph)], promised)
                        .unwrap();
                println!(
                    "  {}{}: exposed {} us, peak {} MiB, {} swaps, pass {took:?}, judged {:?}: {}",
                    pass.name(),
                    if runtime_mode { " (runtime)" } else { "" },
                    exposed(&scheduled.graph),
                    buffers.peak_of_order(&scheduled.order).bytes >> 20,
                    scheduled.swaps,
                    start.elapsed(),
                    match &judgement.verdict {
                        Verdict::Sound => "sound".to_string(),
                        _ => told(&judgement).chars().take(3000).collect(),
                    }
                );
                assert_eq!(judgement.verdict, Verdict::Sound, "{name}, {}", pass.name());
            }
        }
    }
}

#[test]
fn a_rank_outside_the_world_is_named() {
    let case = schedule_case(&mut Seeded::case(11, 0), 20);
    let graph = &case.graphs[0];
    let judged = crate::judge::schedule::judge_schedule(graph, &[(Some(9), graph)], Promises::default());
    assert_eq!(judged.unwrap_err().to_string(), "there is no rank 9: the world has 4 ranks");
}
