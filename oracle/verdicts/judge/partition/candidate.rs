//! Judging a candidate that cuts joint graphs: what it gives at one place, and whether that holds elsewhere.
//!
//! It is asked on two ranks and twice, and where the case has a memory budget, with other budgets too; where the case
//! says so, for two partitions one after the other ([`super::replay`]). A refusal is an answer only where the reference
//! refuses too, or where the candidate is one that may decline.

use super::super::{CannotJudge, Judgement, Options, Ranks, References, check_ranks, refused};
use super::failure::without_parts;
use super::replay::{StageGraphs, judge_replay, next_round};
use super::{config, judge_partition_with};
use crate::case::PassConfig;
use crate::family::{Given, Run};
use crate::graph::Graph;
use crate::judge::candidate::{Candidate, CandidateExt, Place, Refusal};
use crate::judge::options::partition_config;
use crate::rules::partition::{
    BudgetUse, Further, Method, PartitionConfig, PartitionEvidence, compose, returned_names, saved_bytes,
};
use crate::rules::{Code, Reason};
use std::borrow::Cow;

/// Where a candidate is asked: the first answer is judged, the others are held against it.
const PLACES: [Place; 3] =
    [Place { rank: 0, turn: 0 }, Place { rank: 1, turn: 0 }, Place { rank: 0, turn: 1 }];

/// Budgets that are compared with the case's.
const BUDGETS: [f64; 4] = [0.1, 0.25, 0.6, 0.9];

/// Runs a candidate on a joint graph and judges what it gives.
pub(crate) fn judge_candidate(run: &Run) -> Result<Judgement, CannotJudge> {
    let &Run { case, config: pass, candidate, options, .. } = run;
    let joint = &case.graph;
    let config = config(pass)?;
    if config.first.is_some() {
        let first = StageGraphs { joint: joint.clone(), parts: None };
        return judge_replay(&first, None, candidate, pass, options);
    }
    let cut = Cut::by(joint, pass, candidate, options.references)?;
    let mut further = Further::default();
    if let (true, Method::Replay, Some((forward, backward))) = (options.run_again, config.method, cut.parts())
    {
        further.again = next_round(joint, forward, backward, pass, (candidate, options.references));
    }
    cut.judge(pass, candidate, &config, further, options)
}

/// Judges parts that somebody else made.
pub(super) fn judge_given(
    joint: &Graph,
    parts: &(Graph, Graph),
    pass: &PassConfig,
    further: Further,
    options: &Options,
) -> Result<Judgement, CannotJudge> {
    let config = config(pass)?;
    let cut = Cut { joint: checkpointed(joint, pass, options.references)?, ..Cut::given(joint, parts) };
    cut.judge(pass, options.references, &config, further, options)
}

/// Judges forward and backward graphs that are given: of the first rank, or of each rank in turn.
pub(crate) fn judge_pairs(given: &Given) -> Result<Judgement, CannotJudge> {
    let &Given { before, config, outcomes, options, .. } = given;
    let [(_, forward), (_, backward), others @ ..] = outcomes else { return Err(no_pairs(outcomes.len())) };
    if others.len() % 2 != 0 {
        return Err(no_pairs(outcomes.len()));
    }
    let parts = (forward.repaired.clone(), backward.repaired.clone());
    if !others.is_empty() {
        for part in [0, 1] {
            let part = outcomes.iter().skip(part).step_by(2).map(|(_, outcome)| outcome);
            let of_ranks: Vec<_> = (0u32..).map(Some).zip(part).collect();
            check_ranks(&before.world, &of_ranks)?;
        }
    }
    let others = (1u32..).zip(others.chunks_exact(2));
    let ranks = others.map(|(rank, pair)| (rank, &pair[0].1.repaired, &pair[1].1.repaired)).collect();
    judge_given(before, &parts, config, Further { ranks, ..Further::default() }, options)
}

fn no_pairs(graphs: usize) -> CannotJudge {
    CannotJudge::Pass(format!(
        "a partition is a forward and a backward graph, or these of each rank in turn, not {graphs} graphs"
    ))
}

/// A joint graph that a candidate has cut.
pub(super) struct Cut<'a> {
    /// The joint graph that was given.
    given: &'a Graph,
    /// The joint graph with the tags that the pass sets before it cuts.
    joint: Cow<'a, Graph>,
    /// Whether the candidate made them.
    is_own: bool,
    /// The parts at each place; where the candidate refused, those of the reference, if there are any.
    parts: Cow<'a, [(Graph, Graph)]>,
    /// The reason of a refusal.
    refused: Option<Reason>,
    /// A refusal that is an answer, or a failure.
    declined: Option<Refusal>,
}

impl<'a> Cut<'a> {
    /// Asks a candidate everywhere.
    pub(super) fn by(
        joint: &'a Graph,
        pass: &PassConfig,
        candidate: &dyn Candidate,
        references: &dyn References,
    ) -> Result<Cut<'a>, CannotJudge> {
        let tagged = checkpointed(joint, &candidate.known(pass), references)?;
        let cut = |parts, refused, declined| Cut {
            given: joint,
            joint: tagged,
            is_own: true,
            parts,
            refused,
            declined,
        };
        Ok(match candidate.partition_at(joint, pass, &PLACES) {
            Ok(parts) => cut(Cow::Owned(parts), None, None),
            Err(refusal) if refusal.failure.is_some() || candidate.capabilities().may_decline => {
                cut(Cow::Owned(Vec::new()), None, Some(refusal))
            }
            Err(refusal) => {
                let parts = references.partition(joint, pass, Place::default());
                cut(Cow::Owned(parts.into_iter().collect()), Some(refusal.reason), None)
            }
        })
    }

    /// Parts that were given.
    pub(super) fn given(joint: &'a Graph, parts: &'a (Graph, Graph)) -> Cut<'a> {
        Cut {
            given: joint,
            joint: Cow::Borrowed(joint),
            is_own: false,
            parts: Cow::Borrowed(std::slice::from_ref(parts)),
            refused: None,
            declined: None,
        }
    }

    /// The parts at the first place.
    pub(super) fn parts(&self) -> Option<&(Graph, Graph)> {
        self.parts.first().filter(|_| self.refused.is_none())
    }

    /// Judges the parts at the first place, with what the other places, and other budgets, give.
    pub(super) fn judge<'s>(
        &'s self,
        pass: &PassConfig,
        candidate: &dyn Candidate,
        config: &PartitionConfig,
        mut further: Further<'s>,
        options: &Options,
    ) -> Result<Judgement, CannotJudge> {
        if let Some(refusal) = &self.declined {
            return Ok(without_parts(&self.joint, config, refusal));
        }
        let config = config.clone().or_from_file(self.given);
        let Some(own) = self.parts.first() else {
            let reason = || Code::NoOutcome.because(format!("{} gave no parts", candidate.name()));
            return Ok(refused(self.refused.clone().unwrap_or_else(reason)));
        };
        let (forward, backward) = own;
        further.refused = self.refused.as_ref().map(ToString::to_string);
        for (place, (forward, backward)) in PLACES.iter().zip(&*self.parts).skip(1) {
            match place.turn {
                0 => further.ranks.push((place.rank, forward, backward)),
                _ => {
                    let names = returned_names(forward, config.forward_outputs.unwrap_or(0));
                    further.variants.push(("the same joint graph, asked for once more".into(), names));
                }
            }
        }
        let budget = config.budget.filter(|&budget| config.method == Method::MinCut && budget < 1.0);
        if let Some(budget) = budget
            && further.refused.is_none()
        {
            // Half a dozen further runs: too many for a candidate that is asked as one rank only because it is slow.
            further.budgets = match self.is_own && options.ranks == Ranks::All {
                true => self.budgets(pass, (candidate, options.references), &config, (budget, own)),
                false => {
                    let at = |budget| self.at_budget(pass, options.references, &config, budget);
                    BudgetUse { range: at(0.0).zip(at(1.0)), ..BudgetUse::default() }
                }
            };
        }
        // Under a budget too: which values it keeps is PyTorch's choice to the last tie.
        let is_promised =
            config.promises.minimum_cut || (self.is_own && candidate.capabilities().keeps_promises);
        if is_promised && config.method == Method::MinCut && further.network.is_none() {
            further.network = options.references.cut_network(self.given, pass).ok().flatten();
        }
        judge_partition_with(&self.joint, forward, backward, &config, further, options)
    }

    /// What is saved with other budgets.
    ///
    /// The least is what the candidate saves with a budget of 0, or what the reference does if that is more: a
    /// candidate may save less than it is allowed to. That a smaller budget never saves more follows from choosing the
    /// fastest option within it; solvers that only come near the fastest may fail that, the reference's too, and where
    /// it does nothing is demanded of others.
    fn budgets(
        &self,
        pass: &PassConfig,
        (candidate, references): (&dyn Candidate, &dyn References),
        config: &PartitionConfig,
        own: (f64, &(Graph, Graph)),
    ) -> BudgetUse {
        let (budget, (forward, backward)) = own;
        let bytes = self.bytes(forward, backward, config);
        let mut used = self.used(pass, candidate, config, (budget, bytes));
        let least = self.at_budget(pass, references, config, 0.0);
        used.range = used.range.zip(least).map(|((low, high), least)| (low.max(least), high));
        if !used.reversals().is_empty() {
            let needed = self.at_budget(pass, references, config, budget);
            if !self.used(pass, references, config, (budget, needed)).reversals().is_empty() {
                used.budgets.clear();
            }
        }
        used
    }

    /// What a candidate saves with other budgets; with its own it saves `own`.
    fn used(
        &self,
        pass: &PassConfig,
        candidate: &dyn Candidate,
        config: &PartitionConfig,
        own: (f64, Option<i64>),
    ) -> BudgetUse {
        let at = |budget: f64| self.at_budget(pass, candidate, config, budget);
        let others = BUDGETS.into_iter().filter(|&other| other != own.0);
        let others = others.filter_map(|budget| Some((budget, at(budget)?)));
        let budgets = others.chain(own.1.map(|bytes| (own.0, bytes))).collect();
        BudgetUse { budgets, range: at(0.0).zip(at(1.0)) }
    }

    /// What a candidate saves with a budget, in bytes.
    fn at_budget(
        &self,
        pass: &PassConfig,
        candidate: &dyn Candidate,
        config: &PartitionConfig,
        budget: f64,
    ) -> Option<i64> {
        let mut pass = pass.clone();
        pass.options.retain(|(key, _)| key != "budget");
        let pass = pass.with("budget", budget.to_string());
        let (forward, backward) = candidate.partition(self.given, &pass, Place::default()).ok()?;
        self.bytes(&forward, &backward, config)
    }

    /// Saved bytes of distinct storages, inputs that live anyway left out.
    fn bytes(&self, forward: &Graph, backward: &Graph, config: &PartitionConfig) -> Option<i64> {
        let composition = compose(&self.joint, forward, backward, config.forward_outputs?);
        let evidence = PartitionEvidence::new(&self.joint, forward, backward, &composition, config.clone());
        saved_bytes(&evidence).map(|saved| saved.bytes)
    }
}

/// The joint graph with the tags of activation checkpointing, where the pass asks for it.
fn checkpointed<'a>(
    joint: &'a Graph,
    pass: &PassConfig,
    references: &dyn References,
) -> Result<Cow<'a, Graph>, CannotJudge> {
    let config = partition_config(pass).map_err(CannotJudge::Pass)?;
    match config.checkpoint {
        None => Ok(Cow::Borrowed(joint)),
        Some(stage) => match references.checkpointed(joint, stage) {
            Ok(graph) => Ok(Cow::Owned(graph)),
            Err(refusal) => Err(CannotJudge::Pass(refusal.reason.message)),
        },
    }
}
