//! Whether the evaluators agree: what the oracle says about itself.
//!
//! # The statement
//!
//! On one case, concrete values (C), fingerprints (F) and symbolic values (S) may each say *equal* or *unknown*, C and S
//! *different* too: C of numbers, S of facts alone, such as a race. So
//!
//! - where S says equal, C says equal;
//! - where F says equal, which looks at values alone, C finds no other value;
//! - where C says equal, S finds no race, no unwritten memory and no failure;
//! - of a partition, where structure says equal, each of the others does.
//!
//! Concrete values may be equal by accident. An answer *unknown* contradicts nothing.
//!
//! # What it leaves out
//!
//! S takes dtypes and sizes from the records where it does not compute a result, and does not ask whether operators
//! take what they are given. That arguments or a recorded result do not fit their operator is a fault of structure
//! (`rewrite/metadata`), which needs no values. The evaluators are not held against each other about a graph that has
//! such a fault.
//!
//! S is asked about the graph of one rank. Where each rank has a graph of its own, what only another one does, or what
//! they do to each other, is not its business.
//!
//! A contradiction is a fault of graph-oracle and of nobody else. It is asked for by `--values agree`, so that
//! campaigns look for it and the reducer shrinks it.

use super::evidence::misfits;
use super::partition::PartitionEvidence;
use super::values::{About, Observed, ValueDifference, ValueEvidence, ValueMethod, ValueResult};
use super::{Checked, Evidence, Finding, NodeMention, PassKind, Promise, Reason, Severity, Stage, comm};

/// The passes on which the evaluators are held against each other.
pub(super) const PASSES: &[PassKind] = &[PassKind::Bucketing, PassKind::Repair, PassKind::Partition];

/// The id under which contradictions are told; no rule about passes.
pub const WAYS_AGREE: &str = "oracle/ways-agree";

/// The rule, which is applied with `--values agree` only.
pub(super) static CATALOGUE: &[Promise] = &[Promise {
    id: WAYS_AGREE,
    statement: "With --values agree: concrete values, fingerprints, symbolic values and structure do not contradict each other about a case.",
    reason: "A contradiction is a fault of graph-oracle and of nobody else.",
}];

/// The contradictions, in words; and the evaluators that could not tell, each with its reason.
pub(crate) fn contradictions(evidence: &Evidence) -> (Vec<Finding>, Vec<Reason>) {
    if !evidence.misfits_after().is_empty() {
        return (Vec::new(), unknown(&evidence.values));
    }
    let mut values = evidence.values.clone();
    // Launches that meet across ranks and do not belong together mix up values that each graph by itself has right.
    if matches!(comm::same_order_across_ranks(evidence), Checked::Findings(found) if !found.is_empty()) {
        let all = values.results.iter_mut().filter(|(method, _)| *method != ValueMethod::Symbolic);
        for (_, result) in all {
            if let ValueResult::Different(differences) = result {
                differences.iter_mut().for_each(|difference| difference.about = About::OtherRank);
            }
        }
    }
    let finding = find(&values).map(|found| found.finding(|name| evidence.mention(name)));
    (finding.into_iter().collect(), unknown(&evidence.values))
}

/// The same of the values that a joint graph and its parts compute.
pub(crate) fn contradictions_of_partition(evidence: &PartitionEvidence) -> (Vec<Finding>, Vec<Reason>) {
    let values = &evidence.values.compared;
    if evidence.composed.as_deref().is_some_and(|side| !misfits(side.faults()).is_empty()) {
        return (Vec::new(), unknown(values));
    }
    let structure = || match &evidence.values.structure {
        Some(Ok(_)) => values.results.iter().find_map(|(method, result)| match result {
            ValueResult::Different(all) => {
                // Structure does not look at effects.
                let is_seen = |what: &&ValueDifference| what.observed != Observed::Effects;
                let what = all.iter().filter(is_seen).find(does_count)?;
                Some(Contradiction::new("structure", &method.to_string(), what))
            }
            _ => None,
        }),
        _ => None,
    };
    let found = find(values).or_else(structure);
    let found = found.map(|contradiction| contradiction.finding(|name| evidence.mention(name)));
    (found.into_iter().collect(), unknown(values))
}

/// The ways that could not tell, each with its reason.
fn unknown(values: &ValueEvidence) -> Vec<Reason> {
    let unknown = values.results.iter().filter_map(|(method, result)| match result {
        ValueResult::Unknown(why) => Some(why.clone().behind(format!("{method}: "))),
        _ => None,
    });
    unknown.collect()
}

/// Two ways that cannot both be right.
struct Contradiction {
    title: String,
    nodes: Vec<String>,
    expected: String,
    observed: String,
}

impl Contradiction {
    fn new(equal: &str, different: &str, what: &ValueDifference) -> Contradiction {
        Contradiction {
            title: format!("{equal} say equal, {different} say different"),
            nodes: what.nodes.clone(),
            expected: format!("by {equal}, everything is equal"),
            observed: format!("by {different}, {}: {}", what.title, what.found),
        }
    }

    fn finding(self, mention: impl Fn(&str) -> NodeMention) -> Finding {
        let finding = Finding::new(WAYS_AGREE, Severity::Soundness, Stage::After, self.title);
        let nodes = self.nodes.iter().map(|name| mention(name)).collect();
        let finding = Finding { nodes, ..finding }.fact("this is a fault of graph-oracle, not of the pass");
        finding.expected(self.expected).observed(self.observed)
    }
}

/// Whether a difference that an execution finds contradicts who says equal.
fn does_count(what: &&ValueDifference) -> bool {
    what.about != About::OtherRank
}

fn find(values: &ValueEvidence) -> Option<Contradiction> {
    use ValueMethod::{Concrete, Fingerprints, Symbolic};
    let of = |wanted| values.results.iter().find(|(method, _)| *method == wanted).map(|(_, result)| result);
    let differs = |method, counts: fn(&&ValueDifference) -> bool| match of(method) {
        Some(ValueResult::Different(all)) => all.iter().find(counts),
        _ => None,
    };
    let all: [(_, _, fn(&&ValueDifference) -> bool); 3] = [
        (Symbolic, Concrete, does_count),
        (Fingerprints, Concrete, |what| what.about == About::Values),
        (Concrete, Symbolic, |what| what.about == About::Execution),
    ];
    all.into_iter().filter(|(equal, ..)| matches!(of(*equal), Some(ValueResult::Equal(_)))).find_map(
        |(equal, different, counts)| {
            let what = differs(different, counts)?;
            Some(Contradiction::new(&equal.to_string(), &different.to_string(), what))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Code;
    use ValueMethod::{Concrete, Fingerprints, Symbolic};

    fn equal() -> ValueResult {
        ValueResult::Equal(String::new())
    }

    fn about(about: About) -> ValueResult {
        let text = String::new;
        let (title, expected, found) = (text(), text(), text());
        let nodes = vec!["mm".to_string()];
        ValueResult::Different(vec![ValueDifference {
            title,
            nodes,
            expected,
            found,
            about,
            observed: Observed::Outputs,
            is_cause: false,
        }])
    }

    fn different(is_hazard: bool) -> ValueResult {
        about(if is_hazard { About::Execution } else { About::Values })
    }

    fn contradict(results: Vec<(ValueMethod, ValueResult)>) -> bool {
        find(&ValueEvidence { results, ..ValueEvidence::default() }).is_some()
    }

    #[test]
    fn answers_that_fit_and_answers_that_do_not() {
        let unknown = || ValueResult::Unknown(Code::NotFollowed.because(""));
        assert!(!contradict(vec![(Symbolic, equal()), (Concrete, equal()), (Fingerprints, equal())]));
        assert!(!contradict(vec![(Symbolic, different(false)), (Concrete, equal())]));
        assert!(!contradict(vec![(Symbolic, unknown()), (Concrete, different(false))]));
        assert!(contradict(vec![(Symbolic, equal()), (Concrete, different(false))]));
        assert!(contradict(vec![(Symbolic, equal()), (Concrete, different(true))]));
        assert!(contradict(vec![(Symbolic, different(true)), (Concrete, equal())]));
        assert!(!contradict(vec![(Concrete, different(true)), (Fingerprints, equal())]));
        assert!(contradict(vec![
            (Symbolic, unknown()),
            (Concrete, different(false)),
            (Fingerprints, equal())
        ]));
    }

    #[test]
    fn what_only_other_ranks_do_contradicts_nothing() {
        let results = |about_what| vec![(Symbolic, equal()), (Concrete, about(about_what))];
        assert!(contradict(results(About::Arguments)));
        assert!(!contradict(results(About::OtherRank)));
    }
}
