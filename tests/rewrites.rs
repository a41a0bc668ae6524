//! Rewrites of no particular pass: composed right edits are sound, and one wrong edit among them is not.

use crate::common::scale::scaled;
use graph_oracle::candidates::{self, Candidate, CandidateExt, Outcome, Reference, judging};
use graph_oracle::case::{Case, PassConfig, Setting};
use graph_oracle::format::text;
use graph_oracle::generate::{self, Config};
use graph_oracle::graph::{Graph, Out};
use graph_oracle::judge::{self, Options, Values, Verdict};
use graph_oracle::rules::{Finding, Policies};
use std::sync::Arc;

fn case(number: u64) -> Case {
    let case = generate::case(&Config { repair: 0, ..Config::default() }, 11, number).into_case();
    Case { pass: Some(PassConfig::new("rewrite")), ..case }
}

fn verdict(number: u64, candidate: &dyn Candidate) -> Verdict {
    let options = Options { values: Values::ProofFirst, ..judging() };
    judge::judge(&case(number), candidate, &options).expect("the case can be judged").verdict
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn right_edits_are_sound() {
    for number in 0..100 {
        let verdict = verdict(number, &Reference);
        assert!(
            matches!(verdict, Verdict::Sound),
            "case {number}: {verdict:?}\n{}",
            text::print(&case(number))
        );
    }
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn wrong_edits_are_not() {
    let (mut slept, mut convicted) = (Vec::new(), 0);
    for mutant in candidates::rewrite::mutants() {
        for number in 0..scaled(40) {
            match verdict(number, &mutant) {
                Verdict::Sound => {
                    let (case, pass) = (case(number), PassConfig::new("rewrite"));
                    let after = mutant.rewrite(&case.graph, &pass, 0).expect("it ran before").repaired;
                    let texts = format!("{}--- after\n{}", text::print(&case), text::print_graph(&after));
                    slept.push(format!("{}, case {number}:\n{texts}", mutant.name()));
                }
                Verdict::Violated(_) => convicted += 1,
                Verdict::Refused(_) | Verdict::Undecided(_) => {}
            }
        }
    }
    assert!(slept.is_empty(), "called sound:\n{}", slept.join("\n"));
    assert!(convicted > 250, "{convicted} convicted");
}

/// What a candidate that may do more than keep every bit is judged by: what it promises itself.
#[test]
fn what_is_allowed_is_right_and_what_looks_like_it_is_not() {
    for candidate in candidates::rewrite::loose() {
        for number in 0..20 {
            let verdict = verdict(number, &candidate);
            let is_wrong = matches!(verdict, Verdict::Violated(_));
            assert!(!is_wrong, "{}, case {number}: {verdict:?}", candidate.name());
        }
    }
    // Each has a place here.
    let text = "pass rewrite\nx = input : f32[4]\ny = input : f32[4]\nz = input : f32[4]\na = add(x, y) : f32[4]\n\
                b = add(a, z) : f32[4]\nu = rand([4]) : f32[4]\nv = rand([4]) : f32[4]\noutput (b, u, v)\n";
    let case = text::parse(text.as_bytes()).expect("it parses");
    let verdict = |candidate: &dyn Candidate| {
        judge::judge(&case, candidate, &judging()).expect("it can be judged").verdict
    };
    for candidate in candidates::rewrite::loose() {
        assert_eq!(verdict(&candidate), Verdict::Sound, "{}", candidate.name());
    }
    for name in ["rewrite-one-added", "rewrite-regrouped-twice", "rewrite-one-seed"] {
        let candidate = candidates::find(name).expect("there is one");
        let verdict = verdict(candidate.as_ref());
        assert!(matches!(verdict, Verdict::Violated(_)), "{name}: {verdict:?}");
    }
}

#[test]
fn two_runs_that_part_are_told() {
    let graph = |text: &str| text::parse(text.as_bytes()).expect("it parses").graph;
    let [before, one, other] = ["a", "b", "c"]
        .map(|name| graph(&format!("x = input : f32[4]\n{name} = neg(x) : f32[4]\noutput {name}\n")));
    let demand = |second: Option<&Graph>| {
        let pass = PassConfig::new("rewrite").with("demand", "deterministic");
        let outcome = Outcome { unrepaired: None, repaired: one.clone() };
        let options = Options { second_run: second.map(|graph| Arc::new(graph.clone())), ..judging() };
        judge::judge_outcomes(&before, &pass, &[(None, outcome)], &options).expect("it can be judged")
    };
    assert_eq!(demand(Some(&one)).verdict, Verdict::Sound);
    assert_eq!(demand(Some(&other)).violated_rules(), ["rewrite/policy-deterministic"]);
    assert!(matches!(demand(None).verdict, Verdict::Undecided(_)));
}

#[test]
fn options_that_are_no_options_are_refused() {
    let refused = |key: &str, items: &[&str]| {
        let items = items.iter().map(|item| Setting::Text(item.to_string())).collect();
        let mut pass = PassConfig::new("rewrite");
        pass.set(key.to_string(), Setting::List(items));
        Policies::from_pass(&pass, false).expect_err("it is refused")
    };
    for (key, items, why) in [
        ("allow", &["reasociation"][..], "nothing is called \"reasociation\" that may be allowed"),
        ("allow", &["zero-sign", "contraction"], "contraction takes in zero-sign"),
        ("allow", &["precision"], "precision needs a bound"),
        (
            "allow",
            &["reassociation", "tolerance=1e-3"],
            "tolerance counts for precision and approximate only",
        ),
        ("allow", &["numerics=exact"], "exact if nothing is said"),
        ("allow", &["approximate", "tolerance=2"], "between 0 and 1"),
        ("demand", &["stride"], "nothing is called \"stride\" that may be demanded"),
        ("demand", &["peak=much"], "peak should be a factor"),
        ("demand", &["collectives=same", "collectives=order"], "collectives is stated twice"),
        ("contracts", &["unchanged", "names"], "leave names out"),
    ] {
        let error = refused(key, items);
        assert!(error.contains(why), "{error}");
    }
}

/// A pass may leave its nodes without metadata, and its inputs too. What can be inferred is; what cannot leaves a verdict
/// open, and turns none into its opposite.
#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn metadata_that_is_missing_turns_no_verdict() {
    let mutants: Vec<_> = candidates::rewrite::mutants().collect();
    let all =
        std::iter::once(&Reference as &dyn Candidate).chain(mutants.iter().map(|one| one as &dyn Candidate));
    let (mut sound, mut convicted) = (0, 0);
    for candidate in all {
        for number in 0..scaled(12) {
            let case = case(number);
            let pass = PassConfig::new("rewrite");
            let Ok(outcome) = candidate.rewrite(&case.graph, &pass, 0) else { continue };
            let judged = |repaired: Graph| {
                let outcome = Outcome { unrepaired: None, repaired };
                judge::judge_outcomes(&case.graph, &pass, &[(None, outcome)], &judging())
                    .expect("it can be judged")
            };
            let whole = judged(outcome.repaired.clone()).verdict;
            let bare = judged(without_metadata(&outcome.repaired));
            // What is wrong in a record alone is gone with it.
            let is_wrong = |found: &[Finding]| found.iter().any(|finding| finding.rule != "rewrite/metadata");
            let is_turned = match (&whole, &bare.verdict) {
                (Verdict::Sound, Verdict::Violated(_)) => true,
                (Verdict::Violated(found), Verdict::Sound) => is_wrong(found),
                (_, verdict) => {
                    sound += usize::from(matches!(verdict, Verdict::Sound));
                    convicted += usize::from(matches!(verdict, Verdict::Violated(_)));
                    false
                }
            };
            assert!(!is_turned, "{} on case {number}: {whole:?} became {:?}", candidate.name(), bare.verdict);
        }
    }
    assert!(sound > 5 && convicted > 20, "{sound} sound, {convicted} convicted");
}

/// The graph without what is recorded of its results.
fn without_metadata(graph: &Graph) -> Graph {
    let mut bare = graph.clone();
    for id in graph.ids() {
        bare.node_mut(id).out = Out::Absent;
    }
    bare
}

/// The first finding about an outcome that a text case records.
fn first_finding(case: &str) -> Finding {
    let case = text::parse(case.as_bytes()).unwrap();
    match judge::judge_recorded(&case, &judging()).unwrap().verdict {
        Verdict::Violated(mut findings) => findings.remove(0),
        other => panic!("{other:?}"),
    }
}

/// Who moves to a larger group and slices wrongly has sliced wrongly.
#[test]
fn another_group_is_no_cause_where_it_is_right_for_other_slices() {
    let wrong = include_str!("cases/rewrite/one_gather_for_two_and_wrong_slices.graph");
    assert_eq!(first_finding(wrong).rule, "rewrite/values");
    let group = include_str!("cases/rewrite/group_of_other_ranks.graph");
    assert_eq!(first_finding(group).rule, "rewrite/groups");
}

/// An output that is no node any more is called as it was, and not as the next one.
#[test]
fn an_output_that_became_none_is_named() {
    let lost = include_str!("cases/rewrite/an_output_becomes_none.graph");
    let finding = first_finding(lost);
    assert_eq!((finding.rule, finding.title.as_str()), ("rewrite/values", "output a differs"));
}

/// Ranks that wait for each other break no value.
#[test]
fn a_deadlock_is_about_collectives() {
    let waiting = include_str!("cases/rewrite/all_ranks_receive_first.graph");
    assert_eq!(first_finding(waiting).rule, "rewrite/collectives");
}

/// A graph before with a reference to nothing, or out of order, is no input: before bodies are put in their places too.
#[test]
fn faults_of_the_graph_before_are_errors() {
    for (fault, wrong) in [("m, z", "z"), ("m, late", "late")] {
        let graph = format!(
            "x = input : f32[4]\nm = attr sub : other(GraphModule)\n\
             e = higher_order.control_deps([x], {fault}) : f32[4]\nlate = cos(x) : f32[4]\noutput (e, late)\n\
             body sub\n  p = input : f32[4]\n  r = cos(p) : f32[4]\n  output r\nend\n"
        );
        let case = text::parse(format!("pass rewrite\n{graph}--- after\n{graph}").as_bytes()).unwrap();
        let error = judge::judge_recorded(&case, &judging()).unwrap_err().to_string();
        assert!(error.contains(wrong), "{error}");
    }
}
