//! The reference partitioners are right on every joint graph: one target for each of them, and one for the merging of
//! equal nodes.
//!
//! Text is read as a joint graph that was made for another method; a graph of which even the simplest partition
//! (forward computes what it can, and everything that backward reads is saved) is not right is no joint graph, and no
//! test.

use super::{MOST_ELEMENTS, MOST_NODES, is_race_free, judging};
use crate::candidates::Reference;
use crate::case::{Case, PassConfig};
use crate::format::text;
use crate::generate::joint::{Config, generate, naive};
use crate::generate::{Bytes, Source};
use crate::graph::Graph;
use crate::judge::partition::{forward_outputs, judge_partition};
use crate::judge::{Judgement, Options, Values, Verdict, input_faults, judge};
use crate::ops::Ops;
use crate::passes::partition::common_subexpressions::merge;
use crate::passes::partition::{Joint, PartitionConfig, Reference as ReferencePolicy};
use crate::rules::partition::PartitionConfig as JudgedConfig;
use crate::rules::statement;
use crate::rules::{PassKind, Severity};
use crate::semantics::{self, Fingerprints, Program};

/// The default partition, on a joint graph in text.
pub fn check_default(data: &[u8]) {
    check_text(data, "default");
}

/// The default partition, on a case made from choices.
pub fn check_default_choices(data: &[u8]) {
    check_choices(data, "default");
}

/// The minimum cut, on a joint graph in text.
pub fn check_min_cut(data: &[u8]) {
    check_text(data, "min-cut");
}

/// The minimum cut, on a case made from choices.
pub fn check_min_cut_choices(data: &[u8]) {
    check_choices(data, "min-cut");
}

/// The replay, after a first partition or from tags, on a joint graph in text.
pub fn check_replay(data: &[u8]) {
    check_text(data, "replay");
}

/// The replay, on a case made from choices.
pub fn check_replay_choices(data: &[u8]) {
    check_choices(data, "replay");
}

/// The merging of equal nodes, on a joint graph in text.
pub fn check_cse(data: &[u8]) {
    if let Some(case) = joint_of_text(data) {
        merges(&case);
    }
}

/// The merging of equal nodes, on a case made from choices.
pub fn check_cse_choices(data: &[u8]) {
    merges(&case_of_choices(data, None));
}

/// A joint graph in text, small enough, without faults, and with a right partition.
fn joint_of_text(data: &[u8]) -> Option<Case> {
    let case = text::parse(data).ok()?;
    let graph = &case.graph;
    let is_small = graph.len() <= MOST_NODES && graph.world.ranks.unwrap_or(1) <= 8;
    if !is_small || !input_faults(graph, PassKind::Partition).is_empty() || !is_race_free(graph) {
        return None;
    }
    let pass = case.pass.as_ref().filter(|pass| pass.name == "partition")?;
    let outputs = forward_outputs(graph, pass).ok()?;
    let (forward, backward) = naive::partition(graph, outputs, &|_| false);
    let config = JudgedConfig { forward_outputs: Some(outputs), ..JudgedConfig::default() };
    let options = Options { values: Values::ProofFirst, ..judging(data) };
    let judgement = judge_partition(graph, &forward, &backward, &config, &options).ok()?;
    // Without recomputation gathers stay exposed: that is policy, and for the partitioner to keep.
    let is_right = match judgement.verdict {
        Verdict::Sound => true,
        Verdict::Violated(_) => is_sound(&judgement),
        Verdict::Refused(_) | Verdict::Undecided(_) => false,
    };
    is_right.then_some(case)
}

/// Whether no soundness rule is violated.
fn is_sound(judgement: &Judgement) -> bool {
    let unsound = |rule: &str| statement(rule).is_some_and(|rule| rule.severity == Severity::Soundness);
    !judgement.violated_rules().into_iter().any(unsound)
}

/// A case from choices, generated for `method`; for any of them where it is `None`. Tags are made for a method: those that
/// stop short of a gather's views ask a replay for what no other method can give.
fn case_of_choices(data: &[u8], method: Option<&str>) -> Case {
    let mut source = Bytes::new(data);
    source.step();
    let mut config = Config::default().swarmed(&mut source);
    if let Some(method) = method {
        let always = |other: &str| if method == other { 100 } else { 0 };
        (config.replay, config.default_method) = (always("replay"), always("default"));
    }
    generate(&mut source, &config)
}

fn check_text(data: &[u8], method: &str) {
    if let Some(case) = joint_of_text(data) {
        // Policy follows from tags, and changed text has tags that contradict one another.
        is_right(&with_method(case, method), false, &judging(data));
    }
}

fn check_choices(data: &[u8], method: &str) {
    is_right(&case_of_choices(data, Some(method)), true, &judging(data));
}

/// The case for another method; options that only the old one has are left out.
fn with_method(mut case: Case, method: &str) -> Case {
    let mut pass = case.pass.take().unwrap_or_else(|| PassConfig::new("partition"));
    if pass.word("method") != Ok(Some(method)) {
        pass.options.retain(|(key, _)| !["method", "first", "budget"].contains(&key.as_str()));
        pass = pass.with("method", method);
    }
    case.pass = Some(pass);
    case
}

/// Panics unless the reference is right on a case, by soundness alone or by policy too. That it declines, or that
/// values cannot be told, is an answer.
fn is_right(case: &Case, policy: bool, options: &Options) {
    let Ok(judgement) = judge(case, &Reference, options) else { return };
    if matches!(judgement.verdict, Verdict::Violated(_)) && (policy || !is_sound(&judgement)) {
        panic!("{}", crate::report::text(&judgement, &format!("\n{case}"), None, false));
    }
}

/// Panics unless merging equal nodes leaves a graph that computes the same and has no equal nodes left.
fn merges(case: &Case) {
    let graph = &case.graph;
    for joins in [false, true] {
        let Some(once) = merged(graph, joins) else { continue };
        assert!(input_faults(&once, PassKind::Partition).is_empty(), "merging leaves a fault\n{case}");
        assert!(merged(&once, joins).is_none(), "merging twice merges more\n{case}");
        // Draws are fresh in each run.
        let ops = Ops::of(graph);
        if graph.ids().any(|id| ops.draws(graph, id)) {
            continue;
        }
        if let (Some(before), Some(after)) = (executed(graph), executed(&once)) {
            let differences = semantics::compare(&before, &after);
            assert!(differences.is_empty(), "{:?}\n{case}\n{}", differences[0], text::print_graph(&once));
        }
    }
}

fn merged(graph: &Graph, joins: bool) -> Option<Graph> {
    let config = PartitionConfig { num_forward_outputs: Some(0), ..PartitionConfig::default() };
    let joint = Joint::new(graph.clone(), &config).ok()?;
    merge(&joint, &ReferencePolicy, |_| false, joins)
}

fn executed(graph: &Graph) -> Option<semantics::Run> {
    let world = graph.world.assume_mesh()?;
    let ops = Ops::of(graph);
    let program = Program::new(graph, &ops, &world).ok()?;
    let options = semantics::Options { max_elements: MOST_ELEMENTS, ..semantics::Options::default() };
    semantics::run(&[program], &world, &Fingerprints::in_bits(), &options).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Expectation, Expected, Subject};
    use crate::generate::{Seeded, joint};
    use crate::mutate::mutate;

    const TEXT: [fn(&[u8]); 4] = [check_default, check_min_cut, check_replay, check_cse];
    const CHOICES: [fn(&[u8]); 4] =
        [check_default_choices, check_min_cut_choices, check_replay_choices, check_cse_choices];

    /// A second's worth of each target.
    #[test]
    fn smoke() {
        let inputs: u64 = std::env::var("FUZZ_INPUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
        for (index, target) in CHOICES.iter().enumerate() {
            for case in 0..inputs {
                let mut source = Seeded::case(index as u64, case);
                let length = source.below(1500);
                let data: Vec<u8> = (0..length).map(|_| source.below(256) as u8).collect();
                target(&data);
            }
        }
        for case in 0..inputs {
            let mut data = joint::case(&Config::default(), 9, case).to_string().into_bytes();
            for change in 0..4 {
                TEXT.iter().for_each(|target| target(&data));
                data = mutate(&data, (case * 4 + change) as u32);
            }
        }
    }

    /// Seeds of the corpora: `FUZZ_SEEDS=1` writes them.
    #[test]
    fn seeds() {
        if std::env::var("FUZZ_SEEDS").is_err() {
            return;
        }
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        let methods = [
            ("partition_default", "default"),
            ("partition_min_cut", "min-cut"),
            ("partition_replay", "replay"),
            ("cse", ""),
        ];
        for (name, method) in methods {
            let folder = root.join(name);
            std::fs::create_dir_all(&folder).unwrap();
            let mut written = 0;
            for index in 0.. {
                let case = joint::case(&Config { steps: 5, ..Config::default() }, 20, index);
                let own = case.pass.as_ref().and_then(|pass| pass.word("method").ok().flatten());
                let sound =
                    judge(&case, &Reference, &judging(b"")).is_ok_and(|j| j.verdict == Verdict::Sound);
                if sound && case.graph.len() < 60 && (method.is_empty() || own == Some(method)) {
                    let mut case = case;
                    let expected = Expectation::Verdict { of: Subject::Reference, is: Expected::Sound };
                    case.expectations.push(expected);
                    std::fs::write(folder.join(format!("{written:02}.graph")), case.to_string()).unwrap();
                    written += 1;
                }
                if written == 8 {
                    break;
                }
            }
            let folder = root.join(format!("{name}_choices"));
            std::fs::create_dir_all(&folder).unwrap();
            for number in 0..8u64 {
                let mut source = Seeded::case(31, number);
                let data: Vec<u8> = (0..200 + 120 * number).map(|_| source.below(256) as u8).collect();
                std::fs::write(folder.join(format!("{number:02}")), data).unwrap();
            }
        }
    }
}
