//! Every mutant is convicted by the judge, which is told nothing, and the reference is not.

use super::*;
use crate::candidates::Reference as ReferenceCandidate;
use crate::candidates::judging;
use crate::case::Case;
use crate::format::text::print_graph;
use crate::generate::joint;
use crate::judge::{self, Judgement, Verdict};
use crate::scale::scaled;

fn judged(case: &Case, candidate: &dyn Candidate) -> Option<Judgement> {
    judge::judge(case, candidate, &judging()).ok()
}

/// Whether a mutant does somewhere what the reference does not: only then a verdict is worth its time.
fn differs(case: &Case, mutant: &'static PartitionMutant) -> bool {
    let pass = case.pass.as_ref().unwrap();
    let budgeted = pass.word("budget").ok().flatten().is_some();
    if budgeted || pass.word("first").ok().flatten().is_some() {
        return true;
    }
    let config = crate::judge::options::partition_config(pass).unwrap();
    let place = Place { rank: 1, turn: 1 };
    let text = |parts: Partition| (print_graph(&parts.forward), print_graph(&parts.backward));
    let own = mutant.cut(&case.graph, &config, place).map(text).ok();
    own != partition::run(&case.graph, &config).map(text).ok()
}

/// Mutants that some hundred cases may miss: they differ under a budget only, on equal draws, or on tuples that must be
/// saved. Text cases, or longer campaigns, convict them.
const RARE: [&str; 11] = [
    "partition-own-budget",
    "partition-saves-inputs-only",
    "partition-saves-tuples",
    "partition-unbans-tagged",
    "partition-loses-merged-tags",
    "partition-merges-written",
    "partition-merges-sides",
    "partition-merges-draws",
    "partition-splits-budget",
    "partition-counts-twice",
    "partition-counts-on",
];

/// Generated cases convict every mutant, and never the reference.
#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn the_reference_is_sound_and_every_mutant_is_convicted() {
    let cases = scaled(150);
    let mut convicted: Vec<Option<(u64, &str)>> = vec![None; PARTITION_MUTANTS.len()];
    let mut faults = Vec::new();
    for index in 0..cases {
        let case = joint::case(&joint::Config::default(), 81, index);
        let reference = judged(&case, &ReferenceCandidate);
        let violated = reference.as_ref().map(Judgement::violated_rules).unwrap_or_default();
        if !violated.is_empty() {
            let report = crate::report::text(reference.as_ref().unwrap(), &format!("\n{case}"), None, false);
            println!("case {index}: the reference violates {violated:?}\n{report}");
            faults.push(index);
        }
        if !reference.is_some_and(|judgement| judgement.verdict == Verdict::Sound) {
            continue;
        }
        for (i, mutant) in PARTITION_MUTANTS.iter().enumerate() {
            let is_expected = cases >= 20_000 || !RARE.contains(&mutant.name);
            if convicted[i].is_some() || !is_expected || !differs(&case, mutant) {
                continue;
            }
            let rules = judged(&case, &mutant).map(|judgement| judgement.violated_rules());
            let by = mutant.convicted_by.iter().find(|rule| rules.as_ref().is_some_and(|r| r.contains(rule)));
            convicted[i] = by.map(|rule| (index + 1, *rule));
        }
    }
    for (mutant, found) in PARTITION_MUTANTS.iter().zip(&convicted) {
        match found {
            Some((cases, rule)) => println!("{} after {cases} cases by {rule}", mutant.name),
            None => println!("{} was not convicted, or not tried: it {}", mutant.name, mutant.about),
        }
    }
    assert_eq!(faults, [0u64; 0], "cases in which the reference is at fault");
    let alive: Vec<&str> = PARTITION_MUTANTS
        .iter()
        .zip(&convicted)
        .filter(|(_, found)| found.is_none())
        .map(|(m, _)| m.name)
        .collect();
    let alive: Vec<&str> = alive.into_iter().filter(|name| cases >= 20_000 || !RARE.contains(name)).collect();
    assert_eq!(alive, [""; 0], "these live on");
}
