//! The door for schedules: a graph and the orders that ranks give it go in, a verdict comes out.

use super::accounts::by_any_account;
use super::candidate::{Candidate, CandidateExt, Outcome};
use super::options::schedule_config;
use super::seen_through::without_bodies;
use super::{CannotJudge, Judgement, Options, References, failed, input_faults, refused, undecided, verdict};
use crate::case::{Case, PassConfig, Program};
use crate::config::schedule::{Config, Pass};
use crate::family::{Given, Run};
use crate::graph::Graph;
use crate::rules::schedule::{self, Evidence, Promises};
use crate::rules::worker::Failure;
use crate::rules::{AnalyzedGraph, Budget, PassKind, Reason, budget, named_as};
use crate::simulate::Estimates;
use crate::words;
use std::sync::OnceLock;

/// An implementation of the scheduling passes.
pub trait Scheduler: Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// The graph in its new order, as global rank `rank`; its reason, if it declines.
    fn run(&self, graph: &Graph, config: &Config, rank: u32) -> Result<Graph, Reason>;
}

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

    fn run(&self, graph: &Graph, config: &Config, rank: u32) -> Result<Graph, Reason> {
        // Under other names the estimates have other names too.
        let several = config.estimates.len() > 1;
        let tables = config.estimates.iter().enumerate();
        let estimates = tables.map(|(i, table)| table.as_table(several.then_some(i as u32))).collect();
        let pass = PassConfig { estimates, ..self.pass.clone() };
        let outcome = self.candidate.rewrite(graph, &pass, rank).map_err(|refusal| {
            if let Some(failure) = refusal.failure {
                let _ = self.failure.set(*failure);
            }
            refusal.reason
        })?;
        Ok(outcome.repaired)
    }
}

/// Runs a candidate on a case and judges the order that it gives, on every rank that has a graph or figures of its own.
pub(crate) fn judge_candidate(run: &Run) -> Result<Judgement, CannotJudge> {
    let &Run { case, config: pass, candidate, options: &Options { references, .. }, .. } = run;
    let config = schedule_config(&candidate.known(pass)).map_err(CannotJudge::Pass)?;
    let promised = promised(pass, &config, candidate.capabilities().keeps_promises)?;
    let scheduler = WithOptions { candidate, pass, failure: OnceLock::new() };
    let judgement = judge_on_ranks(case, &config, &scheduler, promised, references)?;
    let graphs: Vec<&Graph> =
        std::iter::once(&case.graph).chain(case.programs.iter().map(|program| &program.graph)).collect();
    Ok(match scheduler.failure.get() {
        Some(failure) => failed(failure),
        // The candidate is run on the graphs as they are, and so is its order judged.
        None => without_bodies(judgement, &graphs, "orders are"),
    })
}

fn judge_on_ranks(
    case: &Case,
    config: &Config,
    scheduler: &WithOptions,
    promised: Promises,
    references: &dyn References,
) -> Result<Judgement, CannotJudge> {
    if case.programs.is_empty() {
        return judge_scheduler(&case.graph, config, scheduler, promised, references);
    }
    let of_rank = graphs_of_ranks(&case.graph, &case.programs)?;
    // Figures go to ranks in turn, so ranks that have the same graph and the same figures are run once.
    let tables = figures(config);
    let mut after: Vec<(&Graph, usize, Graph)> = Vec::new();
    let mut found = Vec::with_capacity(of_rank.len());
    for (rank, &graph) in of_rank.iter().enumerate() {
        let known = after.iter().position(|(g, table, _)| std::ptr::eq(*g, graph) && *table == rank % tables);
        found.push(match known {
            Some(known) => known,
            None => match scheduler.run(graph, config, rank as u32) {
                Ok(order) => {
                    after.push((graph, rank % tables, order));
                    after.len() - 1
                }
                Err(reason) => return Ok(refused(reason)),
            },
        });
    }
    let ranks: Vec<(Vec<u32>, &Graph, &Graph)> = (0..)
        .zip(of_rank.iter().zip(&found))
        .map(|(rank, (&graph, &at))| (vec![rank], graph, &after[at].2))
        .collect();
    check_ranks(&ranks)?;
    let evidence = Evidence::per_rank(&ranks, promised);
    check_programs(&evidence, true)?;
    Ok(judgement(&evidence))
}

/// Whether the programs of all ranks finish before the pass has done anything. `are_given`: whether each rank's is.
fn check_programs(evidence: &Evidence, are_given: bool) -> Result<(), CannotJudge> {
    match evidence.unfinished(are_given) {
        None => Ok(()),
        Some(mut why) => {
            why.insert(0, "the programs of the ranks do not finish as they stand".to_string());
            Err(CannotJudge::Input(why))
        }
    }
}

/// How many ranks have figures of their own; one where they share them.
fn figures(config: &Config) -> usize {
    config.estimates.len().max(config.budgets.len()).max(1)
}

/// The graph before of every rank.
pub(super) fn graphs_of_ranks<'g>(
    graph: &'g Graph,
    programs: &'g [Program],
) -> Result<Vec<&'g Graph>, CannotJudge> {
    let unfit = |why: String| CannotJudge::Input(vec![why]);
    let world = graph.world.assume_mesh().and_then(|world| world.ranks);
    let world = world.ok_or_else(|| unfit("ranks with graphs of their own need a world".to_string()))?;
    if world > MOST_RANKS {
        return Err(unfit(format!("graphs of their own for {world} ranks: {MOST_RANKS} are the most")));
    }
    let mut of_rank = vec![graph; world as usize];
    for program in programs {
        for &rank in &program.ranks {
            let slot = of_rank.get_mut(rank as usize);
            let slot =
                slot.ok_or_else(|| unfit(format!("there is no rank {rank}: the world has {world} ranks")))?;
            *slot = &program.graph;
        }
        if program.graph.world != graph.world {
            let rank = program.ranks.first().copied().unwrap_or(0);
            return Err(unfit(format!("the graph of rank {rank} has a world of its own")));
        }
    }
    Ok(of_rank)
}

/// Ranks whose graphs are looked at one by one.
const MOST_RANKS: u32 = 4096;

/// Judges orders that are given. Where ranks have graphs of their own, what is recorded for one rank holds for
/// all that have its graph and no record of their own; ranks of whose graph nothing is recorded keep it.
pub(crate) fn judge_given(given: &Given) -> Result<Judgement, CannotJudge> {
    let &Given { before: graph, programs, config: pass, outcomes, options, .. } = given;
    let config = schedule_config(pass).map_err(CannotJudge::Pass)?;
    let promises = promises_of(pass)?;
    let ranks = ranks_recorded(graph, programs, outcomes)?;
    let pairs: Vec<_> = ranks.iter().map(|(_, before, after)| (*before, *after)).collect();
    let named = |account| pairs.iter().map(|(before, after)| named_as(before, after, account)).collect();
    by_any_account(&pairs, named, |named| {
        let mut ranks = ranks.clone();
        for ((_, _, after), named) in ranks.iter_mut().zip(&named) {
            *after = named.as_ref().unwrap_or(*after);
        }
        check_ranks(&ranks)?;
        let mut evidence = Evidence::per_rank(&ranks, promises.clone());
        check_programs(&evidence, !programs.is_empty())?;
        if evidence.promises.exact {
            evidence.expected_orders = expected(&evidence, &config, options.references);
        }
        if evidence.promises.one_order {
            evidence.noisy = other_orders(&evidence);
        }
        Ok(judgement(&evidence))
    })
}

/// The orders of ranks whose graph before is the first rank's: the first rank of each outcome.
fn other_orders(evidence: &Evidence) -> Vec<(u32, Vec<String>)> {
    let Some((first, others)) = evidence.outcomes.split_first() else { return Vec::new() };
    let same_before = others.iter().filter(|other| other.before == first.before);
    same_before.filter_map(|other| Some((*other.ranks.first()?, names(other.after.graph)))).collect()
}

/// Ranks (none: all of them), the graph that they had and the one that they have now.
pub type OfRanks<'g> = (Vec<u32>, &'g Graph, &'g Graph);

/// Who has which of the recorded outcomes: what is recorded for one rank holds for all that have its graph and no
/// record of their own, what is recorded for no rank for all of them; ranks of whose graph nothing is recorded keep it.
pub fn ranks_recorded<'g>(
    graph: &'g Graph,
    programs: &'g [Program],
    outcomes: &'g [(Option<u32>, Outcome)],
) -> Result<Vec<OfRanks<'g>>, CannotJudge> {
    let of_rank = match programs.is_empty() {
        true => Vec::new(),
        false => graphs_of_ranks(graph, programs)?,
    };
    let mut ranks: Vec<OfRanks> = Vec::new();
    let mut of_all = None;
    for (rank, outcome) in outcomes {
        let graph = match (rank, programs.is_empty()) {
            (_, true) => graph,
            (None, false) => {
                of_all = Some(&outcome.repaired);
                continue;
            }
            (Some(rank), false) => of_rank.get(*rank as usize).copied().ok_or_else(|| {
                let why = format!("there is no rank {rank}: the world has {} ranks", of_rank.len());
                CannotJudge::Input(vec![why])
            })?,
        };
        ranks.push((rank.iter().copied().collect(), graph, &outcome.repaired));
    }
    let recorded = ranks.len();
    for (rank, &graph) in (0..).zip(&of_rank) {
        if outcomes.iter().any(|(recorded, _)| *recorded == Some(rank)) {
            continue;
        }
        let known = if of_all.is_some() { ranks.len() } else { recorded };
        match ranks[..known].iter_mut().find(|(_, before, _)| std::ptr::eq(*before, graph)) {
            Some(known) => known.0.push(rank),
            None => ranks.push((vec![rank], graph, of_all.unwrap_or(graph))),
        }
    }
    Ok(ranks)
}

/// What a candidate makes of a case on every rank that has a graph or figures of its own, as a case records it; `None`
/// where it declines or the case makes no sense, as its judgement says.
pub fn outcomes_of(
    case: &Case,
    pass: &PassConfig,
    candidate: &dyn Candidate,
) -> Option<Vec<(Option<u32>, Outcome)>> {
    let tables = figures(&schedule_config(pass).ok()?);
    let run = |rank: usize, graph| candidate.rewrite(graph, pass, rank as u32).ok();
    if case.programs.is_empty() && tables == 1 {
        return Some(vec![(None, run(0, &case.graph)?)]);
    }
    // Ranks beyond those that have a table of their own go by the tables in turn.
    let of_rank = graphs_of_ranks(&case.graph, &case.programs).ok()?;
    let mut outcomes: Vec<(Option<u32>, Outcome)> = Vec::new();
    for (rank, &graph) in of_rank.iter().enumerate() {
        let is_alike = |other: usize| std::ptr::eq(of_rank[other], graph) && other % tables == rank % tables;
        let outcome = match (0..rank).find(|&other| is_alike(other)) {
            Some(other) => outcomes.get(other)?.1.clone(),
            None => run(rank, graph)?,
        };
        outcomes.push((Some(rank as u32), outcome));
    }
    Some(outcomes)
}

/// The names in the reference's order of each graph before; none where it refuses one.
fn expected(evidence: &Evidence, config: &Config, references: &dyn References) -> Vec<Vec<String>> {
    let order = |side: &AnalyzedGraph| Some(names(&references.scheduled(side.graph, config)?));
    evidence.before.iter().map(order).collect::<Option<_>>().unwrap_or_default()
}

fn names(graph: &Graph) -> Vec<String> {
    graph.ids().map(|id| graph.name(id).to_string()).collect()
}

/// What the options `promises=` may name.
const PROMISES: &[&str] = &["all", "peak", "fsdp", "progress", "ranks", "order"];

/// The promises that a pass names.
fn stated(pass: &PassConfig) -> Result<Vec<&str>, CannotJudge> {
    let named = pass.words("promises").map_err(|error| CannotJudge::Pass(error.to_string()))?;
    let named = named.unwrap_or_default();
    match named.iter().find(|name| !PROMISES.contains(name)) {
        None => Ok(named),
        Some(name) => {
            let names = words::choices(name, PROMISES);
            Err(CannotJudge::Pass(format!("unknown promise {name:?}{names}")))
        }
    }
}

/// What a pass promises: by its configuration where it keeps all promises, and what its options state.
fn promised(pass: &PassConfig, config: &Config, all: bool) -> Result<Promises, CannotJudge> {
    let stated = stated(pass)?;
    let text = |error: crate::case::SettingError| CannotJudge::Pass(error.to_string());
    let share = |key: &str| -> Result<Option<f64>, CannotJudge> {
        let share = pass.number(key).map_err(text)?;
        match share.filter(|share| *share < 0.0) {
            Some(_) => Err(CannotJudge::Pass(format!("option {key} is not negative"))),
            None => Ok(share),
        }
    };
    let limit = pass.int("max_in_flight").map_err(text)?;
    let in_flight = match limit.map(usize::try_from) {
        None => None,
        Some(Ok(limit)) => Some(limit),
        Some(Err(_)) => return Err(CannotJudge::Pass("option max_in_flight is not negative".into())),
    };
    let own = promises(config, all || stated.contains(&"all"));
    Ok(Promises {
        peak: own.peak.or(Some(config.budget()).filter(|_| stated.contains(&"peak"))),
        fsdp_in_flight: own.fsdp_in_flight.or(Some(1).filter(|_| stated.contains(&"fsdp"))),
        progress: own.progress || stated.contains(&"progress"),
        one_order: own.one_order || stated.contains(&"ranks"),
        exact: stated.iter().any(|&name| name == "order" || name == "all"),
        in_flight,
        exposed: budget(pass, "exposed_budget").map_err(CannotJudge::Pass)?,
        exposed_gather: share("exposed_gather_budget")?,
        displacement: share("displacement_budget")?,
        ..own
    })
}

/// What the options of a pass promise.
fn promises_of(pass: &PassConfig) -> Result<Promises, CannotJudge> {
    let config = schedule_config(pass).map_err(CannotJudge::Pass)?;
    // A budget is promised by whoever states one, except for a method that does not look at it.
    let heeds_budget = pass.get("method").is_none() || config.pass.keeps_peak();
    let peak = pass.get("budget").filter(|_| heeds_budget).map(|_| config.budget());
    let promised = promised(pass, &config, false)?;
    Ok(Promises { peak: peak.or(promised.peak), of_given: true, ..promised })
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
    check_ranks(ranks)?;
    Ok(judgement(&Evidence::per_rank(ranks, promises)))
}

/// Whether all ranks exist, and their graphs can be judged.
fn check_ranks(ranks: &[(Vec<u32>, &Graph, &Graph)]) -> Result<(), CannotJudge> {
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
    Ok(())
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
        peaks: if config.pass == Pass::SimpleOverlap { Vec::new() } else { config.budgets.clone() },
        in_flight: None,
        fsdp_in_flight: (all && config.pass == Pass::Fsdp).then_some(1),
        exposed: None::<Budget>,
        exposed_gather: None,
        displacement: None,
        progress: all && config.pass == Pass::SinkWaitsIterative && config.runtime_mode,
        one_order: all,
        exact: false,
        of_given: false,
        estimates: Estimates::agreed(&config.estimates).unwrap_or_default(),
    }
}

/// Runs a scheduler and judges what it gives: as every rank that has estimates or limits of its own, again, and under
/// other names.
pub fn judge_scheduler(
    graph: &Graph,
    config: &Config,
    scheduler: &dyn Scheduler,
    promises: Promises,
    references: &dyn References,
) -> Result<Judgement, CannotJudge> {
    check_input(graph)?;
    let ranks = (figures(config) as u32).min(graph.world.ranks.unwrap_or(1).max(1));
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
    check_programs(&evidence, false)?;
    evidence.noisy = (0..ranks).zip(&orders).skip(1).map(|(rank, after)| (rank, names(after))).collect();
    if let Ok(again) = scheduler.run(graph, config, 0) {
        evidence.again.push(("run again".into(), names(&again)));
    }
    let renamed = graph.with_names(|id| format!("renamed_{}", id.0));
    let mut renamed_config = config.clone();
    for table in &mut renamed_config.estimates {
        let by_name = std::mem::take(&mut table.seconds);
        let moved = by_name
            .into_iter()
            .filter_map(|(name, s)| Some((format!("renamed_{}", graph.find(&name)?.0), s)));
        table.seconds = moved.collect();
    }
    // Names say which inputs the caller keeps, so they may decide where memory does.
    if !config.pass.keeps_peak()
        && let Ok(other) = scheduler.run(&renamed, &renamed_config, 0)
    {
        let original =
            |name: String| match name.strip_prefix("renamed_").and_then(|n| n.parse::<usize>().ok()) {
                Some(n) if n < graph.len() => graph.name(crate::graph::NodeId(n as u32)).to_string(),
                _ => name,
            };
        evidence.again.push(("under other names".into(), names(&other).into_iter().map(original).collect()));
    }
    if evidence.promises.exact {
        evidence.expected_orders = expected(&evidence, config, references);
    }
    Ok(judgement(&evidence))
}

fn judgement(evidence: &Evidence) -> Judgement {
    let (findings, rules) = schedule::check_all(evidence);
    let undecided = undecided(&rules);
    let mut outcomes = evidence.outcomes.iter();
    let acted = outcomes.any(|of| names(evidence.before(of).graph) != names(of.after.graph));
    let verdict = verdict(findings, undecided);
    Judgement { verdict, rules, notes: evidence.warnings(), acted }
}
