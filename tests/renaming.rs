//! Names are a pass's to choose: what came out is judged alike under any names.
//!
//! Outcomes, right and wrong, are judged as they are and under other names: all with a prefix, all new, exchanged among
//! the calls, and with other names for inputs. The verdict stays, and so do the rules that are violated.

use crate::common::scale::scaled;
use graph_oracle::candidates::{self, CandidateExt, Outcome, judging};
use graph_oracle::case::{PassConfig, Recorded};
use graph_oracle::format::text;
use graph_oracle::generate;
use graph_oracle::graph::{Graph, NodeId, Op};
use graph_oracle::judge::{self, Judgement, Options, Values, Verdict};
use graph_oracle::rules::PassKind;
use std::path::Path;

/// Ways to choose other names.
const WAYS: [(&str, fn(&Graph) -> Graph); 5] = [
    ("a prefix for calls", |graph| {
        graph.with_names(|id| match graph.node(id).op {
            Op::Call => format!("z_{}", graph.name(id)),
            _ => graph.name(id).to_string(),
        })
    }),
    ("a prefix for all", |graph| graph.with_names(|id| format!("z_{}", graph.name(id)))),
    ("names of inputs", |graph| {
        graph.with_names(|id| match graph.node(id).op {
            Op::Placeholder => format!("arg{}", id.0),
            _ => graph.name(id).to_string(),
        })
    }),
    ("names exchanged one by one", |graph| exchanged(graph, 1)),
    ("names in reverse", |graph| {
        let calls: Vec<NodeId> = graph.ids().filter(|&id| graph.node(id).op == Op::Call).collect();
        graph.with_names(|id| match calls.binary_search(&id) {
            Ok(at) => graph.name(calls[calls.len() - 1 - at]).to_string(),
            Err(_) => graph.name(id).to_string(),
        })
    }),
];

/// Each call has the name of the one that stands `by` calls behind it.
fn exchanged(graph: &Graph, by: usize) -> Graph {
    let calls: Vec<NodeId> = graph.ids().filter(|&id| graph.node(id).op == Op::Call).collect();
    graph.with_names(|id| match calls.binary_search(&id) {
        Ok(at) => graph.name(calls[(at + by) % calls.len()]).to_string(),
        Err(_) => graph.name(id).to_string(),
    })
}

/// What is said of an outcome: in one word, and the rules that are violated.
#[derive(PartialEq, Eq, Debug)]
struct Said {
    verdict: &'static str,
    rules: Vec<&'static str>,
}

fn said(judgement: &Judgement) -> Said {
    let verdict = match judgement.verdict {
        Verdict::Sound => "sound",
        Verdict::Violated(_) => "violated",
        Verdict::Refused(_) => "refused",
        Verdict::Undecided(_) => "undecided",
    };
    let mut rules = judgement.violated_rules();
    rules.sort_unstable();
    Said { verdict, rules }
}

/// How outcomes are judged under other names, counted, with what differs in words.
#[derive(Default)]
struct Sweep {
    judged: usize,
    other_verdicts: Vec<String>,
    other_rules: Vec<String>,
}

impl Sweep {
    fn outcome(&mut self, what: &str, before: &Graph, pass: &PassConfig, graphs: &[&Graph]) {
        // A proof says most, and takes least; the order that the reference gives is a matter of names.
        let options = Options { values: Values::ProofFirst, ..judging() };
        let rank = |pass: &PassConfig| (pass.name == "bucketing").then_some(0);
        let judged = |graphs: Vec<Graph>| {
            let outcome = |repaired| (rank(pass), Outcome { unrepaired: None, repaired });
            let outcomes: Vec<_> = graphs.into_iter().map(outcome).collect();
            judge::judge_outcomes(before, pass, &outcomes, &options)
        };
        let Ok(own) = judged(graphs.iter().map(|graph| (*graph).clone()).collect()) else { return };
        let own = said(&own);
        for (way, renamed) in WAYS {
            self.judged += 1;
            let other = match judged(graphs.iter().map(|graph| renamed(graph)).collect()) {
                Ok(judgement) => said(&judgement),
                Err(error) => {
                    self.other_verdicts.push(format!("{what}, {way}: {error}"));
                    continue;
                }
            };
            let text = format!("{what}, {way}: {own:?} becomes {other:?}");
            if other.verdict != own.verdict {
                self.other_verdicts.push(text);
            } else if other != own {
                self.other_rules.push(text);
            }
        }
    }

    /// No verdict may differ. Of a wrong outcome the rules may, now and then: names alone said which of two
    /// explanations of what was done is the right one.
    fn check(&self, at_least: usize) {
        let Sweep { judged, other_verdicts, other_rules } = self;
        println!(
            "{judged} judged, {} other verdicts, {} other rules",
            other_verdicts.len(),
            other_rules.len()
        );
        other_rules.iter().for_each(|text| println!("{text}"));
        assert!(*judged >= at_least, "only {judged} were judged");
        assert!(other_verdicts.is_empty(), "{}", other_verdicts.join("\n"));
        assert!(20 * other_rules.len() <= *judged, "{}", other_rules.join("\n"));
    }
}

/// What the reference and the mutants make of generated cases.
#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn generated_outcomes_of_bucketing() {
    let config = generate::Config::default();
    let all = candidates::all();
    let mut sweep = Sweep::default();
    for index in 0..scaled(12) {
        let case = generate::case(&config, 11, index).into_case();
        let Some(pass) = &case.pass else { continue };
        for candidate in &all {
            if !candidate.capabilities().passes.contains(&PassKind::Bucketing) {
                continue;
            }
            let Ok(outcome) = candidate.rewrite(&case.graph, pass, 0) else { continue };
            let what = format!("case {index}, {}", candidate.name());
            sweep.outcome(&what, &case.graph, pass, &[&outcome.repaired]);
        }
    }
    sweep.check(500);
}

/// What text cases record of bucketing, repairs, schedules and partitions.
#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn recorded_outcomes() {
    let mut sweep = Sweep::default();
    for folder in ["bucket", "comm", "graph", "order", "partition", "policy", "schedule"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(folder);
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            let case = text::parse(std::fs::read(&file).unwrap()).unwrap();
            let Some(pass) = case.pass.as_ref().filter(|_| case.programs.is_empty()) else { continue };
            let what = file.file_name().unwrap().to_string_lossy().into_owned();
            match (&case.outcome, &case.parts) {
                (_, Some(parts)) => {
                    sweep.outcome(&what, &case.graph, pass, &[&parts.forward, &parts.backward]);
                }
                (Some(Recorded::Same(graphs)), None) if graphs.refused.is_none() => {
                    sweep.outcome(&what, &case.graph, pass, &[&graphs.repaired]);
                }
                _ => {}
            }
        }
    }
    sweep.check(300);
}

/// Every result is new after the pass, and so is an operand of whatever stands in between: gathered weights at one end,
/// reduced gradients at the other. In the middle is a record that contradicts itself, which is no fault of the pass.
#[test]
fn what_stands_between_two_buckets() {
    let before = r#"world 2 ranks, groups g = [0 1] at 0
pass bucketing kind=all_gather
a = input: f32[2, 4]
b = input: f32[2, 4]
x = input: f32[4, 4]
ga = all_gather(a, g): f32[4, 4]
gb = all_gather(b, g): f32[4, 4]
wa = wait(ga): f32[4, 4]
wb = wait(gb): f32[4, 4]
m = mm(x, wa): f32[4, 4]
n = mm(m, wb): f32[4, 4]
k = all_to_all(n, [1, 1], [1, 1], g): f32[4, 4]
wk = wait(k): f32[4, 4]
p = mm(wk, wa): f32[4, 4]
q = mm(p, wb): f32[4, 4]
rp = reduce_scatter(p, "sum", g): f32[2, 4]
rq = reduce_scatter(q, "sum", g): f32[2, 4]
wp = wait(rp): f32[2, 4]
wq = wait(rq): f32[2, 4]
output (wp, wq)
"#;
    let case = |kind: &str, text: String| text::parse(text.replace("kind=all_gather", kind)).unwrap();
    let gathered = case("kind=all_gather", before.to_string());
    let reference = candidates::find("reference").unwrap();
    let pass = gathered.pass.clone().unwrap();
    let first = reference.rewrite(&gathered.graph, &pass, 0).unwrap();
    let scattered = case("kind=reduce_scatter", before.to_string()).pass.unwrap();
    let both = reference.rewrite(&first.repaired, &scattered, 0).unwrap();
    let mut sweep = Sweep::default();
    let either = PassConfig { options: Vec::new(), ..pass };
    sweep.outcome("both", &gathered.graph, &either, &[&both.repaired]);
    sweep.check(WAYS.len());
    let outcome = Outcome { unrepaired: None, repaired: exchanged(&both.repaired, 1) };
    let judged = judge::judge_outcomes(&gathered.graph, &either, &[(Some(0), outcome)], &judging());
    let judged = judged.unwrap();
    assert!(!matches!(judged.verdict, Verdict::Violated(_)), "{:?}", judged.violated_rules());
}
