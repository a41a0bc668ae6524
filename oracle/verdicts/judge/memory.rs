//! Judging what is claimed about the memory of a graph.

use super::candidate::CandidateExt;
use super::seen_through::without_bodies;
use super::{CannotJudge, Judgement, Options, declined, undecided, verdict};
use crate::analysis::validate::validate;
use crate::case::{Case, Claim, PassConfig, Recorded};
use crate::family::Run;
use crate::graph::Graph;
use crate::rules::RuleStatus;
use crate::rules::memory::{self, MemoryConfig, MemoryEvidence};

const NOTHING_CLAIMED: &str = "the claim states nothing that can be judged; it may state an order, a peak, the bytes live \
    before the first step or in each step, the lives or offsets of storages, estimates, increments, runs of a verifier, or a \
    graph after";

/// Judges what a candidate claims about the memory of a graph.
pub(crate) fn judge_candidate(run: &Run) -> Result<Judgement, CannotJudge> {
    let graph = &run.case.graph;
    match run.candidate.claim(graph, run.config) {
        Ok(claim) => judge_memory(graph, &claim, &MemoryConfig::default()),
        Err(refusal) => Ok(declined(refusal)),
    }
}

/// Judges the claim about memory that a case records; the recorded outcome is the graph that came out of it.
pub(crate) fn judge_recorded_claim(
    case: &Case,
    _: &PassConfig,
    _: &Options,
) -> Result<Judgement, CannotJudge> {
    let after = match &case.outcome {
        None => None,
        Some(Recorded::Same(graphs)) => Some(graphs.repaired.clone()),
        Some(Recorded::PerRank(_)) => {
            return Err(CannotJudge::Pass(
                "a claim about memory is about one graph, not one per rank".into(),
            ));
        }
    };
    if case.claim.is_none() && after.is_none() {
        return Err(CannotJudge::Pass("the case records no claim".into()));
    }
    let claim = Claim { after, ..case.claim.as_deref().cloned().unwrap_or_default() };
    judge_memory(&case.graph, &claim, &MemoryConfig::default())
}

/// Judges what is claimed about the memory of `graph`.
///
/// # Errors
/// The graph, or one that is claimed, cannot be judged as an input; or the claimed order is none of its nodes.
pub fn judge_memory(graph: &Graph, claim: &Claim, config: &MemoryConfig) -> Result<Judgement, CannotJudge> {
    let judgement = judge_claim(graph, claim, config)?;
    let graphs: Vec<&Graph> = [graph].into_iter().chain(&claim.after).collect();
    Ok(without_bodies(judgement, &graphs, "memory is"))
}

fn judge_claim(graph: &Graph, claim: &Claim, config: &MemoryConfig) -> Result<Judgement, CannotJudge> {
    let unfit = |graph: &Graph| -> Vec<String> {
        // A list that is out of order is what an order is judged by.
        let faults = validate(graph).into_iter().filter(|fault| fault.is_fatal() && !fault.concerns_order());
        faults.map(|fault| fault.to_string()).collect()
    };
    let faults = [graph].into_iter().chain(&claim.after).map(unfit).find(|faults| !faults.is_empty());
    if let Some(faults) = faults {
        return Err(CannotJudge::Input(faults));
    }
    let ordered = claim.order.as_ref().map(|order| memory::reordered(graph, order)).transpose();
    let ordered = ordered.map_err(CannotJudge::Pass)?;
    let evidence = MemoryEvidence::new([graph, ordered.as_ref().unwrap_or(graph)], claim, config);
    let (findings, rules) = memory::check_all(&evidence);
    if rules.iter().all(|(_, status)| matches!(status, RuleStatus::NotChecked(_))) {
        return Err(CannotJudge::Pass(NOTHING_CLAIMED.into()));
    }
    let verdict = verdict(findings, undecided(&rules));
    let acted = memory::says_something(&evidence);
    Ok(Judgement { verdict, rules, notes: evidence.notes(), acted })
}
