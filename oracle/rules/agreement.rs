//! Whether the three ways of knowing values agree: what the oracle says about itself.
//!
//! # The statement
//!
//! On one case, numbers (N), terms (T) and extents (E) may each say *equal*, *different* or *unknown*. Terms and extents
//! know how a value came to be, numbers only what it is. So
//!
//! - where E says equal, N says equal; T may find different terms of one value (an exact cast folded into another), but
//!   no race and no unwritten memory that E does not see;
//! - where E says different, T says different, or N where T was not asked;
//! - where T says equal, N says equal.
//!
//! Numbers may be equal by accident where T and E differ. An answer *unknown* contradicts nothing.
//!
//! A contradiction is a fault of graph-oracle and of nobody else. It is asked for by `--values agree`, so that campaigns
//! look for it and the reducer shrinks it.

use super::values::{ValueDifference, ValueEvidence, ValueMethod, ValueResult};
use super::{Evidence, Finding, Severity, Stage};

/// The id under which contradictions are told; no rule about passes.
pub const WAYS_AGREE: &str = "oracle/ways-agree";

/// The contradictions, in words; and the ways that could not tell, each with its reason.
pub(crate) fn contradictions(evidence: &Evidence) -> (Vec<Finding>, Vec<String>) {
    let finding = |(title, nodes, left, right): Contradiction| Finding {
        rule: WAYS_AGREE,
        severity: Severity::Soundness,
        stage: Stage::After,
        title,
        nodes: nodes.iter().map(|name| evidence.mention(name)).collect(),
        facts: vec!["this is a fault of graph-oracle, not of the pass".to_string()],
        then: Some(left),
        however: Some(right),
        consequences: Vec::new(),
    };
    let unknown = evidence.values.results.iter().filter_map(|(method, result)| match result {
        ValueResult::Unknown(why) => Some(format!("{method}: {why}")),
        _ => None,
    });
    (find(&evidence.values).map(finding).into_iter().collect(), unknown.collect())
}

type Contradiction = (String, Vec<String>, String, String);

fn find(values: &ValueEvidence) -> Option<Contradiction> {
    let of = |wanted| values.results.iter().find(|(method, _)| *method == wanted).map(|(_, result)| result);
    let (numbers, terms) = (of(ValueMethod::Numbers), of(ValueMethod::Terms));
    let extents = of(ValueMethod::Extents);
    let contradiction = |equal: ValueMethod, different: ValueMethod, what: &ValueDifference| {
        (
            format!("{equal} say equal, {different} say different"),
            what.nodes.clone(),
            format!("by {equal}, everything is equal"),
            format!("by {different}, {}: {}", what.title, what.found),
        )
    };
    if let (Some(ValueResult::Equal(_)), Some(ValueResult::Different(all))) = (extents, numbers) {
        return all.first().map(|d| contradiction(ValueMethod::Extents, ValueMethod::Numbers, d));
    }
    if let (Some(ValueResult::Equal(_)), Some(ValueResult::Different(all))) = (extents, terms)
        && let Some(hazard) = all.iter().find(|difference| difference.is_hazard)
    {
        return Some(contradiction(ValueMethod::Extents, ValueMethod::Terms, hazard));
    }
    if let (Some(ValueResult::Different(all)), Some(ValueResult::Equal(_))) = (extents, terms) {
        return all.first().map(|d| contradiction(ValueMethod::Terms, ValueMethod::Extents, d));
    }
    if let (Some(ValueResult::Different(all)), Some(ValueResult::Equal(_)), None) = (extents, numbers, terms)
    {
        return all.first().map(|d| contradiction(ValueMethod::Numbers, ValueMethod::Extents, d));
    }
    if let (Some(ValueResult::Equal(_)), Some(ValueResult::Different(all))) = (terms, numbers) {
        return all.first().map(|d| contradiction(ValueMethod::Terms, ValueMethod::Numbers, d));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use ValueMethod::{Extents, Numbers, Terms};

    fn equal() -> ValueResult {
        ValueResult::Equal(String::new())
    }

    fn different(is_hazard: bool) -> ValueResult {
        let text = String::new;
        let (title, expected, found) = (text(), text(), text());
        ValueResult::Different(vec![ValueDifference { title, nodes: Vec::new(), expected, found, is_hazard }])
    }

    fn contradict(results: Vec<(ValueMethod, ValueResult)>) -> bool {
        find(&ValueEvidence { results, ..ValueEvidence::default() }).is_some()
    }

    #[test]
    fn answers_that_fit_and_answers_that_do_not() {
        let unknown = || ValueResult::Unknown(String::new());
        assert!(!contradict(vec![(Extents, equal()), (Numbers, equal()), (Terms, equal())]));
        assert!(!contradict(vec![
            (Extents, different(false)),
            (Numbers, equal()),
            (Terms, different(false))
        ]));
        assert!(!contradict(vec![(Extents, equal()), (Numbers, equal()), (Terms, different(false))]));
        assert!(!contradict(vec![
            (Extents, unknown()),
            (Numbers, different(false)),
            (Terms, different(false))
        ]));
        assert!(!contradict(vec![(Extents, different(false)), (Numbers, equal()), (Terms, unknown())]));
        assert!(contradict(vec![(Extents, equal()), (Numbers, different(false)), (Terms, different(false))]));
        assert!(contradict(vec![(Extents, equal()), (Numbers, equal()), (Terms, different(true))]));
        assert!(contradict(vec![(Extents, different(false)), (Numbers, equal()), (Terms, equal())]));
        assert!(contradict(vec![(Extents, different(false)), (Numbers, equal())]));
        assert!(contradict(vec![(Extents, unknown()), (Numbers, different(false)), (Terms, equal())]));
    }
}
