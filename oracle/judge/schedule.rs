//! The door for schedules: a graph and the orders that ranks give it go in, a verdict comes out.

use super::{CannotJudge, Judgement, failed, input_faults, refused, undecided, verdict};
use crate::candidates::Candidate;
use crate::candidates::schedule::Scheduler;
use crate::case::PassConfig;
use crate::graph::Graph;
use crate::passes::schedule::{Config, Pass};
use crate::rules::schedule::{self, Evidence, Promises};
use crate::rules::worker::Failure;
use crate::rules::{Budget, PassKind};
use crate::simulate::Estimates;
use std::sync::OnceLock;

/// A candidate as one rank after another runs it, with the options of one pass.
struct WithOptions<'a> {
    candidate: &'a dyn Candidate,
    pass: &'a PassConfig,
    /// The first failure that is no refusal.
    failure: OnceLock<Failure>,
}

impl Scheduler for WithOptions<'_> {
    fn name(&self) -> &str {
        self.candidate.name()
    }

    fn run(&self, graph: &Graph, _: &Config, rank: u32) -> Result<Graph, String> {
        let outcome = self.candidate.run(graph, self.pass, rank).map_err(|refusal| {
            if let Some(failure) = refusal.failure {
                let _ = self.failure.set(*failure);
            }
            refusal.reason
        })?;
        Ok(outcome.repaired)
    }
}

/// Runs a candidate on a graph and judges the order that it gives.
pub(super) fn judge_candidate(
    graph: &Graph,
    pass: &PassConfig,
    candidate: &dyn Candidate,
) -> Result<Judgement, CannotJudge> {
    let config = Config::from_pass(pass).map_err(CannotJudge::Pass)?;
    let promises = promises(&config, candidate.keeps_promises());
    let scheduler = WithOptions { candidate, pass, failure: OnceLock::new() };
    let judgement = judge_scheduler(graph, &config, &scheduler, promises, false)?;
    Ok(match scheduler.failure.get() {
        Some(failure) => failed(failure),
        None => judgement,
    })
}

/// What the options of a pass promise.
pub(super) fn promises_of(pass: &PassConfig) -> Result<Promises, CannotJudge> {
    let config = Config::from_pass(pass).map_err(CannotJudge::Pass)?;
    // A budget is promised by whoever states one, except for a method that does not look at it.
    let heeds_budget = pass.get("method").is_none() || config.pass.keeps_peak();
    let budget = pass.get("budget").filter(|_| heeds_budget).map(|_| config.budget());
    Ok(Promises { peak: budget, ..promises(&config, false) })
}

/// Judges what a scheduler gave for a graph: one outcome for all ranks, or one for each.
pub fn judge_schedule(
    before: &Graph,
    after: &[(Option<u32>, &Graph)],
    promises: Promises,
) -> Result<Judgement, CannotJudge> {
    let ranks: Vec<(Vec<u32>, &Graph, &Graph)> =
        after.iter().map(|&(rank, after)| (rank.into_iter().collect(), before, after)).collect();
    judge_ranks(&ranks, promises)
}

/// Judges ranks that have graphs of their own: their numbers, their graph before and after.
pub fn judge_ranks(
    ranks: &[(Vec<u32>, &Graph, &Graph)],
    promises: Promises,
) -> Result<Judgement, CannotJudge> {
    let mut seen: Vec<&Graph> = Vec::new();
    for (numbers, before, _) in ranks {
        let world = before.world.assume_mesh().and_then(|world| world.ranks).unwrap_or(1);
        if let Some(rank) = numbers.iter().find(|rank| **rank >= world) {
            return Err(CannotJudge::Input(vec![format!(
                "there is no rank {rank}: the world has {world} ranks"
            )]));
        }
        if seen.iter().any(|known| std::ptr::eq(*known, *before)) {
            continue;
        }
        seen.push(before);
        check_input(before)?;
    }
    Ok(judgement(&Evidence::per_rank(ranks, promises)))
}

fn check_input(graph: &Graph) -> Result<(), CannotJudge> {
    let faults = input_faults(graph, PassKind::Bucketing);
    match faults.is_empty() {
        true => Ok(()),
        false => Err(CannotJudge::Input(faults.iter().map(ToString::to_string).collect())),
    }
}

/// What the configuration of a pass promises; of `all` also what the pass promises by itself.
pub fn promises(config: &Config, all: bool) -> Promises {
    Promises {
        peak: (all && config.pass.keeps_peak()).then(|| config.budget()),
        in_flight: None,
        fsdp_in_flight: (all && config.pass == Pass::Fsdp).then_some(1),
        exposed: None::<Budget>,
        exposed_gather: None,
        displacement: None,
        progress: all && config.pass == Pass::SinkWaitsIterative && config.runtime_mode,
        estimates: Estimates::agreed(&config.estimates).unwrap_or_default(),
    }
}

/// Runs a scheduler and judges what it gives: as every rank that has estimates or limits of its own, again, and under
/// other names. With `exact` the order must be the reference's.
pub fn judge_scheduler(
    graph: &Graph,
    config: &Config,
    scheduler: &dyn Scheduler,
    promises: Promises,
    exact: bool,
) -> Result<Judgement, CannotJudge> {
    check_input(graph)?;
    let tables = config.estimates.len().max(config.budgets.len()).max(1) as u32;
    let ranks = tables.min(graph.world.ranks.unwrap_or(1).max(1));
    let mut orders = Vec::with_capacity(ranks as usize);
    for rank in 0..ranks {
        match scheduler.run(graph, config, rank) {
            Ok(after) => orders.push(after),
            Err(reason) => {
                return Ok(refused(reason));
            }
        }
    }
    let outcomes: Vec<(Vec<u32>, &Graph, &Graph)> = match ranks {
        1 => orders.iter().map(|after| (Vec::new(), graph, after)).collect(),
        // Ranks beyond those that have a table of their own go by the tables in turn.
        _ => (0..graph.world.ranks.unwrap_or(ranks).min(64))
            .map(|rank| (vec![rank], graph, &orders[(rank % ranks) as usize]))
            .collect(),
    };
    let mut evidence = Evidence::per_rank(&outcomes, promises);
    let names = |graph: &Graph| -> Vec<String> { graph.ids().map(|id| graph.name(id).to_string()).collect() };
    evidence.noisy = (0..ranks).zip(&orders).skip(1).map(|(rank, after)| (rank, names(after))).collect();
    if let Ok(again) = scheduler.run(graph, config, 0) {
        evidence.again.push(("run again".into(), names(&again)));
    }
    let renamed = graph.with_names(|id| format!("renamed_{}", id.0));
    let mut config_of_names = config.clone();
    for table in &mut config_of_names.estimates {
        let by_name = std::mem::take(&mut table.seconds);
        let moved = by_name
            .into_iter()
            .filter_map(|(name, s)| Some((format!("renamed_{}", graph.find(&name)?.0), s)));
        table.seconds = moved.collect();
    }
    // Names say which inputs the caller keeps, so they may decide where memory does.
    if !config.pass.keeps_peak()
        && let Ok(other) = scheduler.run(&renamed, &config_of_names, 0)
    {
        let original =
            |name: String| match name.strip_prefix("renamed_").and_then(|n| n.parse::<usize>().ok()) {
                Some(n) if n < graph.len() => graph.name(crate::graph::NodeId(n as u32)).to_string(),
                _ => name,
            };
        evidence.again.push(("under other names".into(), names(&other).into_iter().map(original).collect()));
    }
    if exact && let Ok(expected) = crate::passes::schedule::schedule(graph, config) {
        evidence.expected_order = Some(names(&expected.graph));
    }
    Ok(judgement(&evidence))
}

fn judgement(evidence: &Evidence) -> Judgement {
    let (findings, rules) = schedule::check_all(evidence);
    let undecided = undecided(&rules, |id| schedule::find(id).map(|rule| rule.severity));
    let acted = evidence.outcomes.iter().any(|outcome| {
        let before = evidence.before(outcome).graph;
        before.ids().map(|id| before.name(id)).ne(outcome
            .after
            .graph
            .ids()
            .map(|id| outcome.after.graph.name(id)))
    });
    let verdict = verdict(findings, undecided);
    Judgement { verdict, rules, notes: Vec::new(), acted }
}
