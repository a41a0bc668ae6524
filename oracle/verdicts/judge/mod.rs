//! The one door: a case and what a candidate makes of it go in, a verdict comes out.
//!
//! The judge gathers evidence and applies the rules. It trusts nobody: what a candidate says about its own
//! decisions is not read, only its graphs.

mod accounts;
mod allowed;
pub mod bodies;
pub mod candidate;
pub(crate) mod execute;
mod functionalized;
pub(crate) mod memory;
mod offer;
pub mod options;
pub mod partition;
mod recorded_calls;
mod references;
mod remarks;
pub mod schedule;
mod seen_through;
mod without;
mod written_lists;

use crate::analysis::contradictions::make_opaque;
use crate::analysis::cycle::shortest_cycle;
use crate::analysis::fault::Fault;
use crate::analysis::topological;
use crate::analysis::validate::validate;
use crate::analysis::{Edges, are_on_several_devices, tell_devices_apart};
use crate::case::{Case, PassConfig, Recorded};
use crate::family::{self, Gives};
use crate::graph::{Editor, Graph, NodeId, Op, World};
use crate::limits::Limit;
use crate::ops::shape::complete;
use crate::rules::worker::{Class, Failure};
use crate::rules::{
    self, AnalyzedGraph, AsGiven, Correspondence, Evidence, Finding, PassKind, Policies, RuleStatus,
};
use crate::rules::{Code, Evaluated, Evaluators, Given, OnRanks, RankGraph, Reason};
use crate::threads;
use allowed::Comparable;
use candidate::{Candidate, CandidateExt, Outcome, Refusal};
pub use memory::judge_memory;
pub use offer::{Offer, OfferedPromise};
pub use references::References;
use remarks::remarked;
pub use remarks::{Remark, remarks};
use seen_through::{SeenThrough, resting_on_a_record, resting_on_bodies, seen_through};
use std::borrow::{Borrow, Cow};
use std::sync::Arc;
pub use without::Without;

/// What the oracle says about an outcome.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// Every rule that was applied holds.
    Sound,
    /// Some rules are violated: all findings, the most fundamental first.
    Violated(Vec<Finding>),
    /// The candidate declined, with its reason.
    Refused(Reason),
    /// The oracle could not tell, with the reasons.
    Undecided(Vec<Reason>),
}

/// A verdict with what it rests on.
#[derive(Clone, PartialEq, Debug)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// What became of each rule, in catalogue order.
    pub rules: Vec<(&'static str, RuleStatus)>,
    /// Lines for people: sizes, how values were compared.
    pub notes: Vec<String>,
    /// Whether the pass did something: made a bucket, or moved a node.
    pub acted: bool,
}

impl Judgement {
    /// Does something to every text for people.
    fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        match &mut self.verdict {
            Verdict::Sound => {}
            Verdict::Violated(findings) => findings.iter_mut().for_each(|finding| finding.each_text(change)),
            Verdict::Refused(reason) => change(&mut reason.message),
            Verdict::Undecided(reasons) => reasons.iter_mut().for_each(|reason| change(&mut reason.message)),
        }
        for (_, status) in &mut self.rules {
            match status {
                RuleStatus::NotChecked(why) => change(why),
                RuleStatus::Undecided(reason) => change(&mut reason.message),
                RuleStatus::Holds | RuleStatus::Violated(_) => {}
            }
        }
        self.notes.iter_mut().for_each(change);
    }

    /// The rules that findings name, each once, roots before consequences.
    pub fn violated_rules(&self) -> Vec<&'static str> {
        let mut ids = Vec::new();
        if let Verdict::Violated(findings) = &self.verdict {
            let roots = findings.iter().map(|f| f.rule);
            let rest = findings.iter().flat_map(Finding::all).map(|f| f.rule);
            for id in roots.chain(rest) {
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
        }
        ids
    }
}

/// Why there is nothing to judge: the case itself is at fault.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CannotJudge {
    /// The graph before cannot be judged as an input.
    #[error("{}", .0.join("\n"))]
    Input(Vec<String>),
    /// The pass or its options make no sense.
    #[error("{0}")]
    Pass(String),
}

/// Which evaluators are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Values {
    /// None.
    Off,
    /// The symbolic one; and execution where the case is small enough and each rank's graph is at hand.
    #[default]
    Auto,
    /// Execution only: concrete values, and fingerprints where these do not differ.
    Execute,
    /// The symbolic one; and execution where that cannot tell.
    ProofFirst,
    /// The symbolic one only.
    Symbolic,
    /// All three, held against each other: whether the oracle agrees with itself, and nothing about the pass.
    Agree,
}

impl Values {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Values::Off => "off",
            Values::Auto => "auto",
            Values::ProofFirst => "proof first",
            Values::Execute => "execute",
            Values::Symbolic => "symbolic",
            Values::Agree => "agree",
        }
    }
}

/// As which ranks a candidate is run that bakes the rank into its graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ranks {
    /// As each of them.
    #[default]
    All,
    /// As one, which is this number modulo the ranks of the world: values are then proved, not executed.
    One(u32),
}

/// How to judge.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which values to compare.
    pub values: Values,
    /// The most elements, over all ranks and nodes, that execution may touch.
    pub element_limit: u64,
    /// Whether to run the candidate again: on its own result, and on a renamed graph.
    pub run_again: bool,
    /// As which ranks a candidate runs that bakes the rank in.
    pub ranks: Ranks,
    /// What a second run of a rewrite gave on the first rank, where two runs are to give the same graph.
    pub second_run: Option<Arc<Graph>>,
    /// The reference passes.
    pub references: &'static dyn References,
}

impl Options {
    /// Values as they apply, at most 4 million elements (a fraction of a second), no further runs.
    pub fn new(references: &'static dyn References) -> Options {
        Options {
            references,
            values: Values::Auto,
            element_limit: Limit::Elements.standard(),
            run_again: false,
            ranks: Ranks::All,
            second_run: None,
        }
    }
}

/// Runs `candidate` on the case, on every rank where that matters, and judges what it gives.
pub fn judge(case: &Case, candidate: &dyn Candidate, options: &Options) -> Result<Judgement, CannotJudge> {
    let judgement = judge_case(case, candidate, options)?;
    Ok(remarked(judgement, &case.graph, case.pass.as_ref(), &graphs_of(case)))
}

/// The graphs of a case but the first.
fn graphs_of(case: &Case) -> Vec<&Graph> {
    let programs = case.programs.iter().map(|program| &program.graph);
    let recorded = case.outcome.iter().flat_map(|recorded| recorded.entries());
    programs.chain(recorded.map(|(_, graphs)| &graphs.repaired)).collect()
}

fn judge_case(case: &Case, candidate: &dyn Candidate, options: &Options) -> Result<Judgement, CannotJudge> {
    let (pass, config) = pass_of(case)?;
    let config = &candidate.promised(config);
    let before = Arc::new(AnalyzedGraph::new(&case.graph));
    check_input(&before, pass)?;
    candidate.check_options(config).map_err(CannotJudge::Pass)?;
    if !candidate.capabilities().passes.contains(&pass) {
        let reason = format!("{} does not implement {}", candidate.name(), pass.name());
        return Ok(refused(Code::NotImplemented.because(reason)));
    }
    check_programs(case, pass)?;
    (pass.row().judge)(&family::Run { case, before: &before, config, pass, candidate, options })
}

/// Judges the graph that a candidate makes of a case.
pub(crate) fn judge_run(run: &family::Run) -> Result<Judgement, CannotJudge> {
    let &family::Run { case, before, config, pass, candidate, options } = run;
    let capabilities = candidate.capabilities();
    if !case.programs.is_empty() {
        return judge_candidate_on_programs(run);
    }
    let policies = policies(config, capabilities.keeps_promises)?;
    let bakes_rank = capabilities.bakes_rank && !pass.row().sorts;
    let ranks = ranks_to_run(&case.graph, bakes_rank, options);
    let outcomes = match candidate.rewrite_on(&case.graph, config, &ranks) {
        Ok(outcomes) => outcomes,
        Err(refusal) => return Ok(judge_refusal(&case.graph, &refusal, pass)),
    };
    let runs_twice = policies.demanded.deterministic;
    let second = runs_twice.then(|| candidate.rewrite_on(&case.graph, config, &ranks[..1]).ok()).flatten();
    let second = second.as_ref().and_then(|outcomes| outcomes.first()).map(|outcome| &outcome.repaired);
    let mut all = std::iter::once(&case.graph).chain(outcomes.iter().map(|outcome| &outcome.repaired));
    if all.any(|graph| !graph.subgraphs.is_empty()) {
        // As graphs that are given: what runs once more would be seen through too.
        let of_rank = |(i, &rank)| Some((Some(rank), outcomes.get(i).or(outcomes.last())?.clone()));
        let of_ranks: Vec<(Option<u32>, Outcome)> = ranks.iter().enumerate().filter_map(of_rank).collect();
        let options = Options { second_run: second.cloned().map(Arc::new), ..options.clone() };
        return judge_pair(&case.graph, config, &of_ranks, &options);
    }
    let Some(last) = outcomes.len().checked_sub(1) else {
        let reason = format!("{} gave no outcome", candidate.name());
        return Ok(refused(Code::NoOutcome.because(reason)));
    };
    // The last one is that of all ranks that have none of their own.
    let ranks_of =
        |at: usize| ranks.get(at..if at == last { ranks.len() } else { at + 1 }).unwrap_or_default();
    let of_ranks = outcomes.iter().enumerate().map(|(at, of)| (ranks_of(at).to_vec(), Cow::Borrowed(of)));
    let side = Side { before: Cow::Borrowed(&case.graph), outcomes: of_ranks.collect() };
    let mut ran_again = None;
    judge_sides(vec![side], Some(before), policies, second, pass, options, &mut |first| {
        if options.run_again && ran_again.is_none() {
            ran_again = Some(again(case, config, candidate, first));
        }
        ran_again.clone().unwrap_or_default()
    })
}

/// Judges what a candidate makes of the graphs of ranks that have graphs of their own.
fn judge_candidate_on_programs(run: &family::Run) -> Result<Judgement, CannotJudge> {
    let &family::Run { case, config, pass, candidate, options, .. } = run;
    let of_rank = schedule::graphs_of_ranks(&case.graph, &case.programs)?;
    let bakes_rank =
        candidate.capabilities().bakes_rank && of_rank.len() as u64 <= Limit::Executed.standard();
    let mut outcomes = Vec::new();
    for (rank, &graph) in of_rank.iter().enumerate() {
        if !bakes_rank && of_rank[..rank].iter().any(|known| std::ptr::eq(*known, graph)) {
            continue;
        }
        match candidate.rewrite(graph, config, rank as u32) {
            Ok(outcome) => outcomes.push((Some(rank as u32), outcome)),
            Err(refusal) => return Ok(judge_refusal(graph, &refusal, pass)),
        }
    }
    judge_programs(case, config, &outcomes, options)
}

/// Judges outcomes that somebody else produced: one for all ranks (`None`), or one per rank; of a partition the forward
/// graph and the backward graph.
pub fn judge_outcomes(
    before: &Graph,
    config: &PassConfig,
    outcomes: &[(Option<u32>, Outcome)],
    options: &Options,
) -> Result<Judgement, CannotJudge> {
    let mut judgement = judge_pair(before, config, outcomes, options)?;
    // Rules about all ranks look at those that are known.
    let given = outcomes.iter().filter(|(rank, _)| rank.is_some()).count();
    let world = before.world.assume_mesh().and_then(|world| world.ranks).unwrap_or(1) as usize;
    let is_one_a_rank = PassKind::parse(&config.name).is_none_or(|pass| pass.row().gives == Gives::Graph);
    if is_one_a_rank && (1..world).contains(&given) {
        judgement
            .notes
            .push(format!("graphs of {given} of {world} ranks are given; those of the others are not known"));
    }
    let after: Vec<&Graph> = outcomes.iter().map(|(_, outcome)| &outcome.repaired).collect();
    Ok(remarked(judgement, before, Some(config), &after))
}

fn judge_pair(
    before: &Graph,
    config: &PassConfig,
    outcomes: &[(Option<u32>, Outcome)],
    options: &Options,
) -> Result<Judgement, CannotJudge> {
    let pass = PassKind::named(&config.name).map_err(CannotJudge::Pass)?;
    check_options(config)?;
    let prepared = Prepared::new(pass, before, outcomes, options, true);
    let (before, outcomes) = (&*prepared.before, &prepared.outcomes[..]);
    let given = family::Given { before, programs: &[], config, pass, outcomes, options };
    Ok(prepared.finish((pass.row().judge_given)(&given)?, config, options))
}

/// Judges outcomes on ranks that had graphs of their own, each beside the graph that its rank had.
fn judge_programs(
    case: &Case,
    config: &PassConfig,
    outcomes: &[(Option<u32>, Outcome)],
    options: &Options,
) -> Result<Judgement, CannotJudge> {
    let pass = PassKind::named(&config.name).map_err(CannotJudge::Pass)?;
    check_options(config)?;
    check_ranks(&case.graph.world, outcomes)?;
    let ranks = schedule::ranks_recorded(&case.graph, &case.programs, outcomes)?;
    let mut befores: Vec<(&Graph, Vec<Vec<u32>>, Vec<(Option<u32>, Outcome)>)> = Vec::new();
    for (ranks, before, after) in ranks {
        let at = befores.iter().position(|(known, ..)| std::ptr::eq(*known, before)).unwrap_or_else(|| {
            befores.push((before, Vec::new(), Vec::new()));
            befores.len() - 1
        });
        let outcome = Outcome { unrepaired: None, repaired: after.clone() };
        befores[at].2.push((ranks.first().copied(), outcome));
        befores[at].1.push(ranks);
    }
    let prepared: Vec<Prepared> = befores
        .iter()
        .map(|(before, _, outcomes)| Prepared::new(pass, before, outcomes, options, false))
        .collect();
    let sides = prepared.iter().zip(&befores).map(|(prepared, (_, ranks, _))| Side {
        before: Cow::Borrowed(&*prepared.before),
        outcomes: prepared
            .outcomes
            .iter()
            .zip(ranks)
            .map(|((_, outcome), ranks)| (ranks.clone(), Cow::Borrowed(outcome)))
            .collect(),
    });
    let (policies, second) = (policies(config, false)?, options.second_run.as_deref());
    let sides = sides.collect();
    let judgement = judge_sides(sides, None, policies, second, pass, options, &mut |_| Again::default())?;
    Ok(prepared.iter().fold(judgement, |judgement, prepared| prepared.finish(judgement, config, options)))
}

/// A graph and what came of it, as they are compared: with results that were not recorded, and bodies in the places of
/// their calls.
struct Prepared<'g> {
    before: Cow<'g, Graph>,
    outcomes: Cow<'g, [(Option<u32>, Outcome)]>,
    seen: Option<SeenThrough>,
}

impl<'g> Prepared<'g> {
    /// `is_of_all`: whether no rank had another graph before.
    fn new(
        pass: PassKind,
        before: &'g Graph,
        outcomes: &'g [(Option<u32>, Outcome)],
        options: &Options,
        is_of_all: bool,
    ) -> Prepared<'g> {
        // Passes often leave their new nodes without recorded results.
        // Partitions are completed where they are judged, which asks what was recorded.
        let is_graph = pass.row().gives == Gives::Graph;
        let completed = if is_graph { complete(before) } else { None };
        let before = completed.map_or(Cow::Borrowed(before), Cow::Owned);
        let known =
            outcomes.iter().map(|(_, outcome)| if is_graph { outcome.completed_from(&before) } else { None });
        let known: Vec<Option<Outcome>> = known.collect();
        let outcomes = match known.iter().any(Option::is_some) {
            true => {
                let each = outcomes.iter().zip(known);
                each.map(|((rank, given), known)| (*rank, known.unwrap_or_else(|| given.clone()))).collect()
            }
            false => Cow::Borrowed(outcomes),
        };
        match seen_through(pass, &before, &outcomes, options, is_of_all) {
            None => Prepared { before, outcomes, seen: None },
            Some(mut seen) => {
                let before = Cow::Owned(std::mem::take(&mut seen.before));
                let outcomes = Cow::Owned(std::mem::take(&mut seen.outcomes));
                Prepared { before, outcomes, seen: Some(seen) }
            }
        }
    }

    /// The judgement with what it rests on.
    fn finish(&self, judgement: Judgement, config: &PassConfig, options: &Options) -> Judgement {
        let Some(seen) = &self.seen else { return judgement };
        let judgement = match &seen.misrecorded {
            Some(call) => resting_on_a_record(judgement, call),
            None => judgement,
        };
        match seen.calls_differ || !seen.assumed.is_empty() {
            true => resting_on_bodies(judgement, &seen.assumed, config, options),
            false => judgement,
        }
    }
}

/// A graph that some ranks had, and what came of it: each outcome with its ranks, none where it is for all.
struct Side<'g> {
    before: Cow<'g, Graph>,
    outcomes: Vec<(Vec<u32>, Cow<'g, Outcome>)>,
}

/// The outcome on a rank, with the number of its graph before.
type OfRank<'o> = (usize, Option<u32>, &'o Outcome);

/// Judges graphs that are given: one for all ranks, or one per rank.
pub(crate) fn judge_given(given: &family::Given) -> Result<Judgement, CannotJudge> {
    let &family::Given { before, config, pass, outcomes, options, .. } = given;
    check_ranks(&before.world, outcomes)?;
    let outcomes =
        outcomes.iter().map(|(rank, outcome)| (rank.iter().copied().collect(), Cow::Borrowed(outcome)));
    let side = Side { before: Cow::Borrowed(before), outcomes: outcomes.collect() };
    let (policies, second) = (policies(config, false)?, options.second_run.as_deref());
    judge_sides(vec![side], None, policies, second, pass, options, &mut |_| Again::default())
}

/// Judges graphs that ranks had, and what came of them. `known`: the first graph, where it is analyzed already; `second`:
/// what a second run gave on the first rank; `again`: what further runs gave, by the first outcome.
fn judge_sides(
    mut sides: Vec<Side>,
    known: Option<&Arc<AnalyzedGraph>>,
    mut policies: Policies,
    second: Option<&Graph>,
    pass: PassKind,
    options: &Options,
    again: &mut dyn FnMut(&Outcome) -> Again,
) -> Result<Judgement, CannotJudge> {
    let mut given_as = AsGiven::default();
    let mut known = known.cloned();
    for (at, side) in sides.iter_mut().enumerate() {
        let outcomes = || side.outcomes.iter().map(|(_, outcome)| &**outcome);
        let own = as_given(&policies, &side.before, outcomes(), second.filter(|_| at == 0));
        given_as = if at == 0 { own } else { given_as.join(own) };
        if let Some((before, after)) = comparable(&mut policies, &side.before, outcomes()) {
            (side.before, known) = (Cow::Owned(before), None);
            let places = side.outcomes.iter_mut().map(|(_, outcome)| outcome);
            places.zip(after).for_each(|(place, outcome)| *place = Cow::Owned(outcome));
        }
    }
    let befores: Vec<Arc<AnalyzedGraph>> = sides
        .iter()
        .map(|side| known.take().unwrap_or_else(|| Arc::new(AnalyzedGraph::new(&side.before))))
        .collect();
    let pairs: Vec<_> = sides
        .iter()
        .flat_map(|side| side.outcomes.iter().map(|(_, outcome)| (&*side.before, &outcome.repaired)))
        .collect();
    let named =
        |account| pairs.iter().map(|(before, after)| rules::named_as(before, after, account)).collect();
    accounts::by_any_account(&pairs, named, |named| {
        let given = sides.iter().flat_map(|side| side.outcomes.iter().map(|(_, outcome)| &**outcome));
        let named: Vec<Cow<Outcome>> = given.zip(named).map(with_names).collect();
        let mut of_ranks: Vec<OfRank> = Vec::new();
        let ranks =
            (0..).zip(&sides).flat_map(|(at, side)| side.outcomes.iter().map(move |(ranks, _)| (at, ranks)));
        for ((at, ranks), outcome) in ranks.zip(&named) {
            of_ranks.extend(ranks.is_empty().then_some((at, None, &**outcome)));
            of_ranks.extend(ranks.iter().map(|&rank| (at, Some(rank), &**outcome)));
        }
        let (Some(&(_, _, first)), Some(before)) = (of_ranks.first(), befores.first()) else {
            return Err(CannotJudge::Pass("there is no outcome to judge".into()));
        };
        let after = AnalyzedGraph::new(&first.repaired);
        both(before, || before.faults(), || after.storages());
        befores.iter().try_for_each(|before| check_input(before, pass))?;
        let again = Again { as_given: given_as.clone(), ..again(first) };
        Ok(judge_outcomes_with(&befores, after, pass, policies.clone(), &of_ranks, options, again))
    })
}

/// Whether each graph stands in the place of its rank: there are no more of them than ranks, and what a graph records
/// of its rank is its place, where that is recorded at all. (Files that all record one rank were made by one process.)
fn check_ranks<O: Borrow<Outcome>>(world: &World, outcomes: &[(Option<u32>, O)]) -> Result<(), CannotJudge> {
    let Some(world) = world.assume_mesh() else { return Ok(()) };
    let known = world.ranks.unwrap_or(1).max(1);
    let ranked = || outcomes.iter().filter_map(|(rank, of)| Some(((*rank)?, of.borrow())));
    if let Some((rank, _)) = ranked().find(|(rank, _)| *rank >= known) {
        let why = format!("there is a graph for rank {rank}, and the world has {known} ranks");
        return Err(CannotJudge::Input(vec![why]));
    }
    let recorded = |outcome: &Outcome| {
        let groups = outcome.repaired.world.groups.iter();
        groups.filter_map(|group| Some((group.name.clone(), group.recorded_rank?))).collect::<Vec<_>>()
    };
    let records: Vec<(u32, Vec<(String, u32)>)> =
        ranked().map(|(rank, outcome)| (rank, recorded(outcome))).collect();
    if records.windows(2).all(|pair| pair[0].1 == pair[1].1) {
        return Ok(());
    }
    let by_name = world.by_name();
    for (rank, groups) in &records {
        for (name, own) in groups {
            let place = by_name.get(name.as_str()).and_then(|group| group.instance_of(*rank));
            if let Some((_, place)) = place
                && place as u32 != *own
            {
                let why = format!(
                    "the graph in the place of rank {rank} records that it is that of index {own} of group {name}; \
                     rank {rank} has index {place} there"
                );
                return Err(CannotJudge::Input(vec![why]));
            }
        }
    }
    Ok(())
}

/// An outcome with the names that its nodes have in the graph before, where they have others: rules go by names.
fn with_names((given, named): (&Outcome, Option<Graph>)) -> Cow<'_, Outcome> {
    let Some(repaired) = named else { return Cow::Borrowed(given) };
    let unrepaired = given.unrepaired.as_ref();
    let unrepaired = unrepaired.map(|graph| rules::named_through(graph, &given.repaired, &repaired));
    Cow::Owned(Outcome { unrepaired, repaired })
}

/// Judges the outcome recorded in a case.
pub fn judge_recorded(case: &Case, options: &Options) -> Result<Judgement, CannotJudge> {
    let judgement = judge_record(case, options)?;
    Ok(remarked(judgement, &case.graph, case.pass.as_ref(), &graphs_of(case)))
}

fn judge_record(case: &Case, options: &Options) -> Result<Judgement, CannotJudge> {
    let (pass, config) = pass_of(case)?;
    check_options(config)?;
    check_programs(case, pass)?;
    (pass.row().judge_recorded)(case, config, options)
}

/// Judges the graphs that a case records.
pub(crate) fn judge_recorded_graphs(
    case: &Case,
    config: &PassConfig,
    options: &Options,
) -> Result<Judgement, CannotJudge> {
    let pass = PassKind::named(&config.name).map_err(CannotJudge::Pass)?;
    let Some(recorded) = &case.outcome else {
        return Err(CannotJudge::Pass("the case records no outcome".into()));
    };
    for (_, graphs) in recorded.entries() {
        if let Some(reason) = &graphs.refused {
            let left_behind = Some(Box::new(graphs.repaired.clone()));
            let refusal = Refusal { left_behind, ..Refusal::of(Code::Recorded, reason.clone()) };
            return Ok(judge_refusal(&case.graph, &refusal, pass));
        }
    }
    let mut outcomes = recorded_outcomes(recorded);
    if pass.row().compares_values {
        return match case.programs.is_empty() {
            true => judge_pair(&case.graph, config, &outcomes, options),
            false => judge_programs(case, config, &outcomes, options),
        };
    }
    let (mut before, mut programs) = (case.graph.clone(), case.programs.clone());
    let given = || {
        let programs = case.programs.iter().map(|program| &program.graph);
        let after = recorded.entries().into_iter().map(|(_, graphs)| &graphs.repaired);
        std::iter::once(&case.graph).chain(programs).chain(after).collect::<Vec<_>>()
    };
    if let Some(apart) = seen_through::told_apart(&given(), Some(options)) {
        let places = std::iter::once(&mut before)
            .chain(programs.iter_mut().map(|program| &mut program.graph))
            .chain(outcomes.iter_mut().map(|(_, outcome)| &mut outcome.repaired));
        places.zip(apart).for_each(|(place, graph)| *place = graph);
    }
    let (before, programs, outcomes) = (&before, &programs[..], &outcomes[..]);
    (pass.row().judge_given)(&family::Given { before, programs, config, pass, outcomes, options })
}

/// The outcomes that a case records.
pub fn recorded_outcomes(recorded: &Recorded) -> Vec<(Option<u32>, Outcome)> {
    let entries = recorded.entries().into_iter();
    entries
        .map(|(rank, graphs)| {
            let outcome =
                Outcome { unrepaired: graphs.unrepaired.clone(), repaired: graphs.repaired.clone() };
            (rank, outcome)
        })
        .collect()
}

/// Most passes see the graph of one rank, for all of them.
fn check_programs(case: &Case, pass: PassKind) -> Result<(), CannotJudge> {
    match case.programs.is_empty() || pass.row().takes_programs {
        true => Ok(()),
        false => Err(CannotJudge::Pass(format!("{} takes one graph for all ranks", pass.name()))),
    }
}

/// Nobody else looks at options where an outcome is given.
fn check_options(config: &PassConfig) -> Result<(), CannotJudge> {
    options::check_options(config).map_err(CannotJudge::Pass)
}

fn pass_of(case: &Case) -> Result<(PassKind, &PassConfig), CannotJudge> {
    let Some(config) = &case.pass else {
        return Err(CannotJudge::Pass("the case names no pass".into()));
    };
    Ok((PassKind::named(&config.name).map_err(CannotJudge::Pass)?, config))
}

/// The faults that make a graph unfit as the input of `pass`, in words. A repair takes unsorted and cyclic lists.
pub fn input_faults(graph: &Graph, pass: PassKind) -> Vec<Fault> {
    validate(graph).into_iter().filter(|fault| is_unfit(fault, pass)).collect()
}

fn is_unfit(fault: &Fault, pass: PassKind) -> bool {
    fault.is_fatal() && !(pass.row().sorts && fault.concerns_order())
}

/// Whether no fault of the input makes it unfit.
fn check_input(before: &AnalyzedGraph, pass: PassKind) -> Result<(), CannotJudge> {
    let unfit = before.faults().iter().filter(|fault| is_unfit(fault, pass));
    let unfit: Vec<String> = unfit.map(ToString::to_string).collect();
    if unfit.is_empty() { Ok(()) } else { Err(CannotJudge::Input(unfit)) }
}

/// What the configuration promises. The reference keeps all promises of the selection that it is asked for; of
/// others only what the options state is demanded.
fn policies(config: &PassConfig, all_promises: bool) -> Result<Policies, CannotJudge> {
    Policies::from_pass(config, all_promises).map_err(CannotJudge::Pass)
}

/// A judgement with nothing to add.
fn bare(verdict: Verdict, rules: Vec<(&'static str, RuleStatus)>) -> Judgement {
    Judgement { verdict, rules, notes: Vec::new(), acted: false }
}

fn refused(reason: Reason) -> Judgement {
    bare(Verdict::Refused(reason), Vec::new())
}

/// A judgement that could not be made, before any rule was looked at.
fn left_open(reason: Reason) -> Judgement {
    bare(Verdict::Undecided(vec![reason]), Vec::new())
}

/// A candidate gave no outcome: a refusal, or a finding where it failed.
fn declined(refusal: Refusal) -> Judgement {
    match &refusal.failure {
        None => refused(refusal.reason),
        Some(failure) => failed(failure),
    }
}

fn failed(failure: &Failure) -> Judgement {
    let (finding, rules) = failure.finding();
    bare(Verdict::Violated(vec![finding]), rules)
}

fn judge_refusal(before: &Graph, refusal: &Refusal, pass: PassKind) -> Judgement {
    let has_raised = refusal.failure.as_ref().is_some_and(|failure| failure.class == Class::Error);
    if pass.row().sorts
        && has_raised
        && let Some(cycle) = shortest_cycle(&Edges::new(before))
    {
        // No list is in order, so to raise is to refuse.
        let reason = Code::Cycle.because(format!("the graph has a cycle: {}", cycle.chain(before)));
        let refusal = Refusal { reason, failure: None, left_behind: refusal.left_behind.clone() };
        return judge_refusal(before, &refusal, pass);
    }
    let Some(left) = refusal.left_behind.as_ref().filter(|_| refusal.failure.is_none()) else {
        return declined(refusal.clone());
    };
    let mut evidence = Evidence::new(before, None, left, Policies::default());
    evidence.refused = Some(refusal.reason.message.clone());
    let (findings, statuses) = rules::check_only(&evidence, pass, "bucket/failure-atomic");
    match findings.is_empty() {
        true => Judgement { rules: statuses, ..refused(refusal.reason.clone()) },
        false => bare(Verdict::Violated(findings), statuses),
    }
}

/// The ranks whose graphs are needed. Of a candidate that bakes the rank in: the one that is asked for, or, where
/// values are executed, every rank; else the first one. Large worlds are represented by the first rank.
fn ranks_to_run(graph: &Graph, bakes_rank: bool, options: &Options) -> Vec<u32> {
    const MOST: u32 = Limit::Executed.standard() as u32;
    let ranks = graph.world.ranks.filter(|_| graph.world.is_explicit()).unwrap_or(1);
    match options.ranks {
        Ranks::One(number) if bakes_rank => vec![number % ranks.max(1)],
        Ranks::All if bakes_rank && ranks <= MOST && executes(options.values) => (0..ranks).collect(),
        _ => vec![0],
    }
}

/// Whether the list differs, names aside: in what is called and what it is called on.
fn has_moved(before: &Graph, after: &Graph) -> bool {
    let place = |graph: &Graph, id: NodeId| {
        let mut inputs = Vec::new();
        graph.for_each_input(id, &mut |input| inputs.push(input));
        (graph.node(id).op, inputs)
    };
    let is_same = |id: NodeId| {
        let is_call = before.node(id).op == Op::Call;
        place(before, id) == place(after, id) && (!is_call || before.target(id) == after.target(id))
    };
    before.len() != after.len() || !before.ids().all(is_same)
}

/// Whether graphs are executed, whatever a proof says.
fn executes(values: Values) -> bool {
    matches!(values, Values::Auto | Values::Execute | Values::Agree)
}

/// The evaluators that compare values.
fn evaluators(options: &Options) -> Evaluators {
    Evaluators {
        prove: matches!(options.values, Values::Auto | Values::ProofFirst | Values::Symbolic | Values::Agree),
        execute: executes(options.values) || options.values == Values::ProofFirst,
        only_in_doubt: options.values == Values::ProofFirst,
        agree: options.values == Values::Agree,
        element_limit: options.element_limit,
    }
}

/// What running the candidate again gave.
#[derive(Clone, Default)]
struct Again {
    on_result: Option<Graph>,
    renamed_plan: Option<Vec<Vec<String>>>,
    as_given: AsGiven,
}

fn again(case: &Case, config: &PassConfig, candidate: &dyn Candidate, first: &Outcome) -> Again {
    let on_result = candidate.rewrite(&first.repaired, config, 0).ok().map(|o| o.repaired);
    let renamed = renamed(&case.graph);
    let renamed_plan = candidate.rewrite(&renamed, config, 0).ok().map(|outcome| {
        let (before, after) = (AnalyzedGraph::new(&renamed), AnalyzedGraph::new(&outcome.repaired));
        let correspondence = Correspondence::new(&before, &after);
        let original = |launch: &usize| {
            let name = before.graph.name(before.collectives.calls[*launch].node);
            let position = name.strip_prefix("renamed_").and_then(|n| n.parse().ok());
            position.map_or(name.to_string(), |n| case.graph.name(NodeId(n)).to_string())
        };
        correspondence.merges.iter().map(|merge| merge.members.iter().map(original).collect()).collect()
    });
    Again { on_result, renamed_plan, as_given: AsGiven::default() }
}

/// The graph and the outcomes as they are compared, where what is allowed has them written otherwise.
fn comparable<'o>(
    policies: &mut Policies,
    before: &Graph,
    outcomes: impl Iterator<Item = &'o Outcome>,
) -> Option<(Graph, Vec<Outcome>)> {
    let after: Vec<&Graph> = outcomes.map(|outcome| &outcome.repaired).collect();
    let comparable = Comparable::new(before, &after, &policies.allowed)?;
    policies.are_draws_ambiguous |= comparable.are_draws_ambiguous;
    let outcome = |repaired| Outcome { unrepaired: None, repaired };
    Some((comparable.before, comparable.after.into_iter().map(outcome).collect()))
}

/// What is to be said of the outcomes as they were given.
fn as_given<'o>(
    policies: &Policies,
    before: &Graph,
    outcomes: impl Iterator<Item = &'o Outcome>,
    second: Option<&Graph>,
) -> AsGiven {
    let each = outcomes.enumerate().map(|(at, outcome)| {
        AsGiven::new(&policies.demanded, before, &outcome.repaired, second.filter(|_| at == 0))
    });
    each.reduce(AsGiven::join).unwrap_or_default()
}

/// The graph under other names, with its inputs in reverse order.
fn renamed(graph: &Graph) -> Graph {
    let renamed = graph.with_names(|id| format!("renamed_{}", id.0));
    let mut editor = Editor::from_owned(renamed);
    let inputs: Vec<NodeId> = graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder).collect();
    if let Some(&first) = inputs.first() {
        let mut anchor = first;
        for &input in &inputs[1..] {
            editor.move_before(Some(anchor), input);
            anchor = input;
        }
    }
    editor.finish()
}

/// Computes what two parts of the evidence need: at once where the graph is large, since each of them takes
/// milliseconds there.
fn both<A: Send, B: Send>(
    side: &AnalyzedGraph,
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) {
    /// Below this handing work to another thread costs more than it saves.
    const LARGE: usize = 2000;
    if side.graph.len() >= LARGE {
        threads::both(one, other);
    }
}

/// Judges graphs as they are compared, with the calls opaque that what the input records contradicts, and in a rewrite those
/// that another device rounds otherwise.
fn judge_outcomes_with<'a>(
    befores: &[Arc<AnalyzedGraph<'a>>],
    after: AnalyzedGraph<'a>,
    pass: PassKind,
    policies: Policies,
    outcomes: &[OfRank<'a>],
    options: &Options,
    mut again: Again,
) -> Judgement {
    let notes: Vec<String> =
        befores.iter().filter_map(|before| rules::contradicting_records(before)).collect();
    let sides = befores.iter().map(|before| before.graph);
    let are_mixed = pass == PassKind::Rewrite
        && are_on_several_devices(sides.chain(outcomes.iter().map(|(.., outcome)| &outcome.repaired)));
    if notes.is_empty() && !are_mixed {
        return judge_comparable(befores, after, pass, policies, outcomes, options, again);
    }
    let mut opaque: Vec<Graph> = befores.iter().map(|before| before.graph.clone()).collect();
    let mut outcomes: Vec<(usize, Option<u32>, Outcome)> =
        outcomes.iter().map(|&(number, rank, outcome)| (number, rank, outcome.clone())).collect();
    for (number, before) in opaque.iter_mut().enumerate() {
        let of_before = outcomes.iter_mut().filter(|(of, ..)| *of == number);
        let graphs = of_before
            .flat_map(|(.., of)| of.unrepaired.iter_mut().chain([&mut of.repaired]))
            .chain(again.on_result.as_mut().filter(|_| number == 0));
        let mut graphs: Vec<&mut Graph> = graphs.collect();
        make_opaque(before, graphs.iter_mut().map(|graph| &mut **graph).collect());
        if are_mixed {
            graphs.push(before);
            tell_devices_apart(graphs, rules::most_rounded(policies.allowed.numerics));
        }
    }
    let befores: Vec<Arc<AnalyzedGraph>> =
        opaque.iter().map(|before| Arc::new(AnalyzedGraph::new(before))).collect();
    let outcomes: Vec<OfRank> = outcomes.iter().map(|(number, rank, of)| (*number, *rank, of)).collect();
    let Some(&(.., first)) = outcomes.first() else {
        return refused(Code::NoOutcome.because("there is no outcome"));
    };
    let after = AnalyzedGraph::new(&first.repaired);
    let mut judgement = judge_comparable(&befores, after, pass, policies, &outcomes, options, again);
    judgement.notes.extend(notes);
    judgement
}

fn judge_comparable<'a>(
    befores: &[Arc<AnalyzedGraph<'a>>],
    after: AnalyzedGraph<'a>,
    pass: PassKind,
    policies: Policies,
    outcomes: &[OfRank<'a>],
    options: &Options,
    again: Again,
) -> Judgement {
    let before_in_order = befores.iter().all(|before| in_order(before.graph, &before.edges));
    let evaluators = match (before_in_order, evaluators(options)) {
        // A proof follows one program for all ranks.
        (true, asked) if befores.len() > 1 => {
            let execute = asked.execute || asked.prove;
            Evaluators { prove: false, execute, only_in_doubt: false, ..asked }
        }
        (true, asked) => asked,
        // Nothing executes a list that is not in order: what it means is defined by its repair.
        (false, asked) => Evaluators { prove: false, execute: false, ..asked },
    };
    let mut first = Some(Arc::new(after));
    let mut graphs: Vec<(Arc<AnalyzedGraph<'a>>, RankGraph<'a>)> = Vec::new();
    for (number, before) in befores.iter().enumerate() {
        let of_before = outcomes.iter().filter(|(at, ..)| *at == number);
        let given: Vec<Given> = of_before
            .map(|&(_, rank, outcome)| Given {
                rank: rank.or((outcomes.len() > 1).then_some(0)),
                unrepaired: outcome.unrepaired.as_ref(),
                after: &outcome.repaired,
            })
            .collect();
        let Some(one) = given.first() else { continue };
        let first = first.take().unwrap_or_else(|| Arc::new(AnalyzedGraph::new(one.after)));
        graphs.extend(rules::distinct(&given, first).into_iter().map(|graph| (before.clone(), graph)));
    }
    let evidence = |(before, graph): (Arc<AnalyzedGraph<'a>>, RankGraph<'a>)| {
        let mut evidence = Evidence::of_ranks(before, graph, policies.clone());
        let (side, after, nodes) = (&*evidence.before, &*evidence.after, &*evidence.correspondence);
        // The proof takes as long as all other evidence together.
        let mut evaluated = None;
        both(
            side,
            || evaluated = evaluators.prove.then(|| Evaluated::new(side, after, &evidence.start())),
            || (side.dependences(), after.faults_given(side, nodes)),
        );
        evidence.expected_order = expected_order(&evidence, pass, before_in_order, options.references);
        rules::prove_values(&mut evidence, evaluators, evaluated);
        evidence
    };
    let mut all: Vec<Evidence> = threads::map(graphs, evidence);
    let mut notes = rules::execute_values(&mut all, evaluators);
    if !evaluators.prove && !evaluators.execute {
        let why = if before_in_order { "that is switched off" } else { "the list before is not in order" };
        notes.push(format!("values were not compared: {why}"));
    }
    let Some((first, _)) = all.split_first_mut() else {
        return refused(Code::NoOutcome.because("there is no outcome"));
    };
    first.again = if pass.row().sorts { again.on_result } else { None };
    first.renamed_plan = again.renamed_plan;
    first.as_given = again.as_given;
    if evaluators.agree {
        let (findings, unknown) = rules::contradictions(first);
        let acted = has_acted(first);
        return Judgement { verdict: verdict(findings, unknown), rules: Vec::new(), notes, acted };
    }
    let check = |evidence: &Evidence| {
        let (findings, rules) = rules::check_all(evidence, pass);
        OnRanks { ranks: evidence.own_ranks.clone(), findings, rules }
    };
    let (findings, rules) = rules::join(threads::map(all.iter().collect(), check));
    let foreign = all.iter().find_map(rules::foreign_unrepaired);
    let undecided = undecided(&rules).into_iter().chain(foreign).collect();
    let acted = all.iter().any(has_acted);
    suppose(&mut notes, &findings);
    Judgement { verdict: verdict(findings, undecided), rules, notes, acted }
}

/// A proof follows one rank, and supposes that all launch the same: where a finding denies that, its line says so.
fn suppose(notes: &mut [String], findings: &[Finding]) {
    const MEET: &[&str] =
        &["rewrite/collectives", "rewrite/payloads", "rewrite/groups", "comm/rank-invariant-choice"];
    if findings.iter().flat_map(Finding::all).any(|finding| MEET.contains(&finding.rule)) {
        for note in notes.iter_mut().filter(|note| note.contains(": proved at full size")) {
            *note +=
                "; this supposes that the same meets in each collective as before, which a finding denies";
        }
    }
}

/// Whether the pass made a bucket, or moved a node.
fn has_acted(evidence: &Evidence) -> bool {
    !evidence.correspondence.merges.is_empty() || has_moved(evidence.before.graph, evidence.after.graph)
}

/// The order that a stable sort gives, where the pass promises it.
fn expected_order<'a>(
    evidence: &Evidence<'a>,
    pass: PassKind,
    before_in_order: bool,
    references: &dyn References,
) -> Option<Vec<&'a str>> {
    if !evidence.policies.exact_order {
        return None;
    }
    // What is in order stays as it is.
    let (graph, in_order) = match (pass.row().sorts, &evidence.unrepaired) {
        (true, _) => (evidence.before.graph, before_in_order),
        (_, Some(unrepaired)) => (unrepaired.graph, in_order(unrepaired.graph, &unrepaired.edges)),
        _ => return None,
    };
    let order = if in_order { graph.ids().collect() } else { references.stable_order(graph)? };
    Some(order.into_iter().map(|id| graph.name(id)).collect())
}

fn in_order(graph: &Graph, edges: &Edges) -> bool {
    topological::violations(graph, edges).is_empty()
}

/// The rules that could not be decided, each with its reason. A policy applies only where it was asked for, so it
/// counts as much as soundness.
pub(crate) fn undecided(rules: &[(&'static str, RuleStatus)]) -> Vec<Reason> {
    let why = |(id, status): &(&'static str, RuleStatus)| match status {
        RuleStatus::Undecided(why) => Some(why.clone().behind(format!("{id}: "))),
        _ => None,
    };
    rules.iter().filter_map(why).collect()
}

pub(crate) fn verdict(findings: Vec<Finding>, undecided: Vec<Reason>) -> Verdict {
    match (findings.is_empty(), undecided.is_empty()) {
        (false, _) => Verdict::Violated(findings),
        (true, false) => Verdict::Undecided(undecided),
        (true, true) => Verdict::Sound,
    }
}
