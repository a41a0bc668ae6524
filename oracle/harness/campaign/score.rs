//! How soon a candidate is convicted: the measure of the oracle and its generator.
//!
//! For each of several seeds, cases are judged one after another until the candidate violates a rule on a case that the
//! reference masters. The number of cases it took is the score; the median over the seeds is what docs/score.md lists.
//!
//! The same cases measure the reducer: how small each of them becomes, and how long that takes.

use crate::candidates::{Candidate, Reference};
use crate::case::Case;
use crate::generate::{Wanted, offers};
use crate::judge::{self, Options, Verdict};
use crate::reduce::{self, Budget};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What the seeds gave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Score {
    /// For each seed the number of cases up to the first conviction; `None` where there was none.
    pub cases: Vec<Option<u64>>,
    /// The most fundamental rule of each conviction, and how often it was that.
    pub rules: BTreeMap<&'static str, u64>,
    /// Cases in which the candidate did something, of those that did not convict it.
    pub acted: u64,
}

impl Score {
    /// The median number of cases; seeds without conviction count as more than any.
    pub fn median(&self) -> Option<u64> {
        let mut cases: Vec<u64> = self.cases.iter().map(|n| n.unwrap_or(u64::MAX)).collect();
        cases.sort_unstable();
        cases.get(cases.len() / 2).copied().filter(|&n| n != u64::MAX)
    }

    /// The most cases that a seed took; `None` if some seed gave no conviction.
    pub fn worst(&self) -> Option<u64> {
        self.cases.iter().copied().collect::<Option<Vec<u64>>>()?.into_iter().max()
    }
}

/// What reducing a case that convicts a candidate gave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reduction {
    /// The rule that was kept violated.
    pub rule: &'static str,
    /// Nodes of the case.
    pub before: usize,
    /// Nodes of the reduced case.
    pub after: usize,
    /// How long it took.
    pub time: Duration,
}

/// Scores a candidate on seeds `0..seeds`, with at most `limit` cases each.
pub fn score(candidate: &dyn Candidate, seeds: u64, limit: u64, options: &Options) -> Score {
    let tried: Vec<(Option<Conviction>, u64)> =
        (0..seeds).into_par_iter().map(|seed| convict(candidate, seed, limit, options)).collect();
    let mut rules = BTreeMap::new();
    for found in tried.iter().filter_map(|(found, _)| found.as_ref()) {
        *rules.entry(found.rule).or_insert(0) += 1;
    }
    let cases = tried.iter().map(|(found, _)| found.as_ref().map(|found| found.number)).collect();
    Score { cases, rules, acted: tried.iter().map(|(_, acted)| acted).sum() }
}

/// Reduces, for each of the seeds `0..seeds`, the first case that convicts a candidate; one after another, so that none
/// waits for another. Seeds without a conviction among `limit` cases are left out, and so is what cannot be reduced.
pub fn reductions(candidate: &dyn Candidate, seeds: u64, limit: u64, options: &Options) -> Vec<Reduction> {
    let reduction = |seed| {
        let Conviction { case, rule, .. } = convict(candidate, seed, limit, options).0?;
        let started = Instant::now();
        let mut shows = |case: &Case| reduce::violates(case, candidate, options, &rule.into());
        let reduced = reduce::reduce(&case, Budget::default(), &mut shows, &mut |_| {}).ok()?;
        let time = started.elapsed();
        Some(Reduction { rule, before: case.graph.len(), after: reduced.case.graph.len(), time })
    };
    (0..seeds).filter_map(reduction).collect()
}

/// A case that convicts a candidate.
struct Conviction {
    /// Cases it took, this one included.
    number: u64,
    /// The most fundamental rule that is violated.
    rule: &'static str,
    case: Case,
}

/// The first case of a seed that convicts a candidate, and in how many before it the candidate did something.
fn convict(candidate: &dyn Candidate, seed: u64, limit: u64, options: &Options) -> (Option<Conviction>, u64) {
    let passes = candidate.capabilities().passes;
    let pass = if let [pass] = passes[..] { Some(pass) } else { None };
    let wanted = Wanted { seed, pass, offers: vec![offers(candidate)], ..Wanted::default() };
    let mut acted = 0;
    let found = (0..limit).find_map(|number| {
        let case = wanted.case(number);
        let judgement = judge::judge(&case, candidate, options).ok()?;
        acted += u64::from(judgement.acted);
        let rule = *judgement.violated_rules().first()?;
        let reference = judge::judge(&case, &Reference, options).ok()?;
        let is_sound = !matches!(reference.verdict, Verdict::Violated(_));
        is_sound.then_some(Conviction { number: number + 1, rule, case })
    });
    (found, acted)
}
