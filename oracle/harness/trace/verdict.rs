//! The verdict on graphs of a trace: one graph after for all ranks, or one for each.

use super::Options;
use super::contracts;
use super::doubtful::without_doubtful_strides;
use super::row::Outcome;
use crate::case::PassConfig;
use crate::graph::Graph;
use crate::judge::candidate::Outcome as PassOutcome;
use crate::judge::{Verdict, judge_outcomes};
use crate::passes::repair::{first_violation, stable_topological_sort};
use std::sync::Arc;

/// What is said of a pass.
pub(super) struct Said {
    pub(super) outcome: Outcome,
    /// What passes of its name may do, where the verdict rests on that.
    pub(super) allowed: Option<String>,
    /// How the graphs were taken, a line each.
    pub(super) notes: Vec<String>,
}

/// Judges what a pass made of `before`: graphs with the ranks that they are of, where there are several.
pub(super) fn verdict(
    pass: &str,
    before: &Graph,
    after: &[(Option<u32>, &Graph)],
    options: &Options,
) -> Said {
    let mut notes = Vec::new();
    // Overlap scheduling prints the graph before it is sorted.
    let sorted = match first_violation(before).map(|_| stable_topological_sort(before)) {
        None => None,
        Some(Ok(sorted)) => {
            notes.push("before: the text uses nodes before they are defined, and is judged sorted".into());
            Some(sorted)
        }
        Some(Err(_)) => {
            let outcome = Outcome::NotJudged("before: nodes depend on one another in a cycle".into());
            return Said { outcome, allowed: None, notes };
        }
    };
    let mut outcomes = Vec::with_capacity(after.len());
    for &(rank, graph) in after {
        let corrected = without_doubtful_strides(graph);
        if let Some((_, nodes)) = &corrected
            && let [first, others @ ..] = &nodes[..]
        {
            let more = if others.is_empty() { String::new() } else { format!(", and {} more", others.len()) };
            let name = graph.name(*first);
            notes.push(format!(
                "after: the strides recorded of {name}{more} are not what its operator gives: they do not count"
            ));
        }
        let repaired = corrected.map_or_else(|| graph.clone(), |(graph, _)| graph);
        outcomes.push((rank, PassOutcome { unrepaired: None, repaired }));
    }
    let before = sorted.as_ref().unwrap_or(before);
    let judging = contracts::judging(pass, &options.allow, &options.demand);
    let judged = |config: &PassConfig| judge_outcomes(before, config, &outcomes, &options.judge);
    let mut judgement = judged(&judging.strict);
    let mut allowed = None;
    if let (Ok(strict), Some(loose)) = (&judgement, &judging.loose)
        && strict.verdict != Verdict::Sound
        && let Ok(loose) = judged(loose)
        && loose.verdict == Verdict::Sound
    {
        allowed = Some(judging.allowed);
        judgement = Ok(loose);
    }
    let outcome = match judgement {
        Ok(judgement) => Outcome::Judged(Arc::new(judgement)),
        Err(why) => Outcome::NotJudged(format!("before: {}", why.to_string().replace('\n', "; "))),
    };
    Said { outcome, allowed, notes }
}
