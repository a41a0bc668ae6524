//! Every text case under tests/cases/ and corpus/ is judged as its `expect` lines say.
//!
//! Each case is first put through identity checks, so that a false alarm is caught before anything else: its graph,
//! taken as its own outcome, is sound, and its text survives printing and parsing.

use graph_oracle::candidates::{self, Outcome, judging};
use graph_oracle::case::{Case, Expectation, Expected, Program, Recorded, RecordedGraphs, Subject};
use graph_oracle::format::text;
use graph_oracle::graph::Graph;
use graph_oracle::judge::{self, Judgement, Options, Values, Verdict};
use graph_oracle::rules::{self, CATALOGUE, PassKind, RuleStatus, WAYS_AGREE, memory, schedule};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn case_files() -> Vec<PathBuf> {
    fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(folder).into_iter().flatten().filter_map(|e| Some(e.ok()?.path())).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                walk(&path, into);
            } else if path.extension().is_some_and(|e| e == "graph") {
                into.push(path);
            }
        }
    }
    let mut files = Vec::new();
    walk(&root().join("tests/cases"), &mut files);
    walk(&root().join("corpus"), &mut files);
    files
}

fn read(path: &Path) -> Case {
    let bytes = std::fs::read(path).unwrap();
    text::parse(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn options() -> Options {
    Options { run_again: true, ..judging() }
}

#[test]
fn every_case_is_judged_as_it_expects() {
    let mut failures = Vec::new();
    let files = case_files();
    let mut expectations = 0;
    for path in &files {
        let case = read(path);
        for expectation in &case.expectations {
            expectations += 1;
            if let Err(why) = meets(&case, expectation) {
                failures.push(format!("{}: {why}", path.strip_prefix(root()).unwrap_or(path).display()));
            }
        }
        if case.expectations.is_empty() {
            failures.push(format!("{}: expects nothing", path.display()));
        }
    }
    assert!(failures.is_empty(), "{} of {expectations} fail:\n{}", failures.len(), failures.join("\n"));
    assert!(files.len() >= 12, "found only {} case files", files.len());
}

fn meets(case: &Case, expectation: &Expectation) -> Result<(), String> {
    match expectation {
        Expectation::Fault(kind) => {
            let faults = graph_oracle::analysis::validate::validate(&case.graph);
            let found: Vec<&str> = faults.iter().map(|fault| fault.kind.name()).collect();
            found
                .contains(&kind.as_str())
                .then_some(())
                .ok_or_else(|| format!("expected fault {kind}, found {found:?}"))
        }
        Expectation::Verdict { of, is } => {
            let judgement = judge_subject(case, of, &options()).map_err(|error| error.to_string())?;
            agrees(&judgement, is).map_err(|why| format!("{of:?}: {why}"))
        }
    }
}

fn judge_subject(case: &Case, of: &Subject, options: &Options) -> Result<Judgement, judge::CannotJudge> {
    let candidate = match of {
        Subject::Outcome => return judge::judge_recorded(case, options),
        Subject::Reference => "reference",
        Subject::Candidate(name) => name,
    };
    let candidate = candidates::find(candidate).map_err(judge::CannotJudge::Pass)?;
    judge::judge(case, candidate.as_ref(), options)
}

/// Concrete values, fingerprints, symbolic values and structure do not contradict each other, whether the case is sound
/// or not.
#[test]
fn the_ways_of_knowing_agree_on_every_case() {
    let options = Options { values: Values::Agree, ..judging() };
    let mut failures = Vec::new();
    let mut asked = 0;
    for path in case_files() {
        let case = read(&path);
        let Ok(PassKind::Bucketing | PassKind::Repair | PassKind::Partition) =
            PassKind::named(case.pass.as_ref().map_or("", |pass| &pass.name))
        else {
            continue;
        };
        for expectation in &case.expectations {
            let Expectation::Verdict { of, .. } = expectation else { continue };
            let Ok(judgement) = judge_subject(&case, of, &options) else { continue };
            asked += 1;
            if judgement.violated_rules().contains(&WAYS_AGREE) {
                let report = graph_oracle::report::text(&judgement, "the case", None, true);
                failures.push(format!("{} {of:?}: {report}", path.display()));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {asked} contradict themselves:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(asked > 100, "asked only {asked}");
}

fn agrees(judgement: &Judgement, expected: &Expected) -> Result<(), String> {
    let report = || graph_oracle::report::text(judgement, "the case", None, true);
    let right = match (expected, &judgement.verdict) {
        (Expected::Sound, Verdict::Sound)
        | (Expected::Refused, Verdict::Refused(_))
        | (Expected::Undecided, Verdict::Undecided(_)) => true,
        (Expected::Violates(rules), Verdict::Violated(_)) => {
            let found = judgement.violated_rules();
            rules.iter().all(|rule| found.contains(&rules::current_id(rule)))
        }
        _ => false,
    };
    right.then_some(()).ok_or_else(|| format!("expected {expected:?}, but\n{}", report()))
}

#[test]
fn every_graph_is_its_own_sound_outcome() {
    let mut judged = 0;
    for path in case_files() {
        let case = read(&path);
        let Some(pass) = &case.pass else { continue };
        let kind = PassKind::parse(&pass.name).unwrap();
        // The outcome of these is no single graph.
        let others = [PassKind::Partition, PassKind::Memory, PassKind::Schedule, PassKind::Execute];
        if others.contains(&kind) {
            continue;
        }
        let sorted = graph_oracle::analysis::topological::violations(
            &case.graph,
            &graph_oracle::analysis::Edges::new(&case.graph),
        );
        if !judge::input_faults(&case.graph, kind).is_empty() || !sorted.is_empty() {
            continue;
        }
        if case.expectations.iter().any(|e| matches!(e, Expectation::Fault(_))) {
            continue;
        }
        let same = |graph: &Graph| Outcome { unrepaired: Some(graph.clone()), repaired: graph.clone() };
        // A second run gives the same graph too.
        let options = Options { second_run: Some(Arc::new(case.graph.clone())), ..judging() };
        let outcomes = [(None, same(&case.graph))];
        let judgement = judge::judge_outcomes(&case.graph, pass, &outcomes, &options).unwrap();
        let report = graph_oracle::report::text(&judgement, "identity", None, false);
        assert_eq!(judgement.verdict, Verdict::Sound, "{}:\n{report}", path.display());
        judged += 1;
    }
    assert!(judged >= 12, "only {judged} cases were judged against themselves");
}

#[test]
fn every_case_survives_printing_and_parsing() {
    for path in case_files() {
        let printed = read(&path).to_string();
        let again =
            text::parse(printed.as_bytes()).unwrap_or_else(|e| panic!("{}: {e}\n{printed}", path.display()));
        assert_eq!(printed, again.to_string(), "{}", path.display());
    }
}

/// Each rule has a case that violates it and a case in which it was applied and holds.
#[test]
fn every_rule_has_an_accepting_and_a_rejecting_case() {
    let mut holds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut violated: BTreeMap<&str, usize> = BTreeMap::new();
    for path in case_files() {
        let case = read(&path);
        for expectation in &case.expectations {
            let Expectation::Verdict { of, .. } = expectation else { continue };
            let Ok(judgement) = judge_subject(&case, of, &options()) else { continue };
            for (id, status) in &judgement.rules {
                match status {
                    graph_oracle::rules::RuleStatus::Holds => *holds.entry(id).or_default() += 1,
                    graph_oracle::rules::RuleStatus::Violated(_) => *violated.entry(id).or_default() += 1,
                    _ => {}
                }
            }
        }
    }
    let lacking = |counts: &BTreeMap<&str, usize>| -> Vec<&str> {
        CATALOGUE.iter().map(|rule| rule.id).filter(|id| !counts.contains_key(id)).collect()
    };
    assert_eq!(lacking(&holds), [""; 0], "rules that no case accepts");
    // A case holds the outcome of one run; that of two is judged in tests/rewrites.rs.
    violated.entry("rewrite/policy-deterministic").or_default();
    assert_eq!(lacking(&violated), [""; 0], "rules that no case rejects");
}

/// A schedule that moves nothing is sound on all ranks, whatever their graphs; so is a claim about memory that says
/// nothing but that the graph stays as it is.
#[test]
fn nothing_done_is_sound() {
    let mut judged = 0;
    for path in files_of(&["memory", "schedule"]) {
        let case = read(&path);
        // What the reference refuses is wrong as it stands.
        let refused = |e: &Expectation| matches!(e, Expectation::Verdict { is: Expected::Refused, .. });
        if case.expectations.iter().any(refused) {
            continue;
        }
        let recorded =
            |graph: &Graph| RecordedGraphs { unrepaired: None, repaired: graph.clone(), refused: None };
        let outcome = match case.programs.is_empty() {
            true => Recorded::Same(Box::new(recorded(&case.graph))),
            false => {
                let of = |program: &Program| (program.ranks[0], recorded(&program.graph));
                Recorded::PerRank(case.programs.iter().map(of).collect())
            }
        };
        let pass = case.pass.clone().map(|pass| pass.without(schedule::JUDGE_OPTIONS));
        let same = Case { pass, outcome: Some(outcome), claim: None, ..case };
        let judgement = judge::judge_recorded(&same, &judging()).unwrap();
        let report = graph_oracle::report::text(&judgement, "identity", None, false);
        assert_eq!(judgement.verdict, Verdict::Sound, "{}:\n{report}", path.display());
        judged += 1;
    }
    assert!(judged >= 50, "only {judged} cases");
}

fn files_of(families: &[&str]) -> Vec<PathBuf> {
    let folders: Vec<PathBuf> =
        families.iter().map(|family| root().join("tests/cases").join(family)).collect();
    case_files().into_iter().filter(|path| folders.iter().any(|folder| path.starts_with(folder))).collect()
}

/// Each rule about memory and schedules has a case that violates it and a case in which it was applied and holds.
#[test]
fn every_rule_about_memory_and_schedules_has_an_accepting_and_a_rejecting_case() {
    for (family, ids) in [
        ("memory", memory::CATALOGUE.iter().map(|rule| rule.id).collect::<Vec<_>>()),
        ("schedule", schedule::CATALOGUE.iter().map(|rule| rule.id).collect()),
    ] {
        let mut holds: BTreeMap<&str, usize> = BTreeMap::new();
        let mut violated: BTreeMap<&str, usize> = BTreeMap::new();
        for path in files_of(&[family]) {
            let case = read(&path);
            for expectation in &case.expectations {
                let Expectation::Verdict { of, is } = expectation else { continue };
                let Ok(judgement) = judge_subject(&case, of, &options()) else { continue };
                for (id, status) in &judgement.rules {
                    match (status, is) {
                        (RuleStatus::Holds, Expected::Sound) => *holds.entry(id).or_default() += 1,
                        (RuleStatus::Violated(_), Expected::Violates(rules))
                            if rules.iter().any(|r| r == id) =>
                        {
                            *violated.entry(id).or_default() += 1
                        }
                        _ => {}
                    }
                }
            }
        }
        let lacking = |counts: &BTreeMap<&str, usize>| -> Vec<&str> {
            ids.iter().copied().filter(|id| !counts.contains_key(id)).collect()
        };
        assert_eq!(lacking(&holds), [""; 0], "rules that no case of {family} accepts");
        assert_eq!(lacking(&violated), [""; 0], "rules that no case of {family} rejects");
    }
}
