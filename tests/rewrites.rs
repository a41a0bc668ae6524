//! Rewrites of no particular pass: composed right edits are sound, and one wrong edit among them is not.

use graph_oracle::candidates::{self, Candidate, CandidateExt, Reference, judging};
use graph_oracle::case::{Case, PassConfig};
use graph_oracle::format::text;
use graph_oracle::generate::{self, Config};
use graph_oracle::judge::{self, Options, Values, Verdict};

fn case(number: u64) -> Case {
    let case = generate::case(&Config { repair: 0, ..Config::default() }, 11, number).into_case();
    Case { pass: Some(PassConfig::new("rewrite")), ..case }
}

fn verdict(number: u64, candidate: &dyn Candidate) -> Verdict {
    let options = Options { values: Values::ProofFirst, ..judging() };
    judge::judge(&case(number), candidate, &options).expect("the case can be judged").verdict
}

#[test]
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
fn wrong_edits_are_not() {
    let (mut slept, mut convicted) = (Vec::new(), 0);
    for mutant in candidates::rewrite::mutants() {
        for number in 0..40 {
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
