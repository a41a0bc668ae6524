//! Forward, then backward, means what the joint graph means, whatever the tags; and a partition holds together.

use super::pytorch::joints;
use super::recorded::read;
use super::*;
use crate::ops::Ops;
use crate::semantics::{self, Failure, Fingerprints, Options, Program, Run as Execution};
use std::collections::BTreeSet;

fn execute(graph: &Graph) -> Result<Execution, Failure> {
    let ops = Ops::of(graph);
    let world = graph.world.assume_mesh().unwrap();
    let program = Program::new(graph, &ops, &world)?;
    let options = Options { max_elements: 1 << 20, ..Options::default() };
    semantics::run(&[program], &world, &Fingerprints::in_bits(), &options)
}

/// A stream of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// The same graph with other tags.
fn retagged(joint: &Graph, numbers: &mut Numbers) -> Graph {
    let mut graph = joint.clone();
    let names = ["MUST_SAVE", "PREFER_RECOMPUTE", "MUST_RECOMPUTE", "PREFER_SAVE"];
    for id in joint.ids().filter(|&id| joint.node(id).op == Op::Call) {
        if numbers.below(3) == 0 {
            let strategy = names[numbers.below(4) as usize];
            let region = (numbers.below(2) == 0).then(|| numbers.below(3) as i64);
            marks::retag(&mut graph, id, |graph, tags| {
                tags.recompute = Some(graph.intern(strategy));
                tags.ac_graph_id = region;
            });
        }
        if numbers.below(4) == 0 {
            let index = (numbers.below(2) == 0).then(|| numbers.below(3) as i64);
            marks::set_must_save(&mut graph, id, index);
        }
    }
    graph
}

/// What is wrong with a partition as such.
fn faults(joint: &Graph, partition: &Partition) -> Vec<String> {
    let mut found = Vec::new();
    for (side, graph) in [("forward", &partition.forward), ("backward", &partition.backward)] {
        let fatal = crate::analysis::validate::validate(graph).into_iter().filter(|fault| fault.is_fatal());
        found.extend(fatal.map(|fault| format!("{side}: {fault:?}")));
    }
    let saved: Vec<&str> = partition.saved().map(|value| value.name.as_str()).collect();
    if saved.iter().collect::<BTreeSet<_>>().len() != saved.len() {
        found.push(format!("saved twice: {saved:?}"));
    }
    let inputs = names(&partition.backward).into_iter().filter(|name| {
        let id = partition.backward.find(name);
        id.is_some_and(|id| partition.backward.node(id).op == Op::Placeholder)
    });
    let given: BTreeSet<&str> = inputs.filter(|name| !name.contains("tangents")).collect();
    if given != saved.iter().copied().collect() {
        found.push(format!("saved {saved:?}, but backward takes {given:?}"));
    }
    let certificate = partition.proof.as_ref().map(|proof| proof.certificate);
    if certificate.is_some_and(|certificate| certificate.flow != certificate.cut) {
        found.push(format!("{certificate:?}"));
    }
    for value in partition.saved() {
        if joint.name(value.node) != value.name {
            found.push(format!("{} is not node {}", value.name, value.node.0));
        }
    }
    found
}

#[test]
fn the_parts_mean_the_whole() {
    let mut numbers = Numbers(7);
    let (mut compared, mut refused, mut wrong) = (0, 0, Vec::new());
    let captured = ["small_mlp_joint", "small_gpt_joint", "small_tp_allreduce_joint", "small_fsdp4_joint"];
    let captured = captured.iter().filter_map(|name| read(name));
    for (number, joint) in joints().into_iter().step_by(2).chain(captured).enumerate() {
        // Draws are fresh in each run.
        if joint.ids().any(|id| joint.target(id).contains("rand") || joint.target(id).contains("dropout")) {
            continue;
        }
        let Ok(whole) = execute(&joint) else { continue };
        for words in
            ["method=default", "method=min-cut", "method=min-cut budget=0.3 runtime=testing", "method=replay"]
        {
            let tagged = if numbers.below(3) == 0 { joint.clone() } else { retagged(&joint, &mut numbers) };
            let partition = match run(&tagged, &config(words)) {
                Ok(partition) => partition,
                Err(error) => {
                    refused += 1;
                    assert!(!error.constraints.is_empty() || error.problem == Problem::Malformed, "{error}");
                    continue;
                }
            };
            wrong.extend(
                faults(&tagged, &partition).into_iter().map(|fault| format!("{number} {words}: {fault}")),
            );
            let again =
                retrace::retrace(&partition.forward, &partition.backward, partition.num_forward_outputs);
            let again = again.unwrap().joint;
            match execute(&again) {
                Ok(parts) => {
                    let differences = semantics::compare(&whole, &parts);
                    wrong.extend(differences.first().map(|first| format!("{number} {words}: {first:?}")));
                    compared += 1;
                }
                Err(failure) => wrong.push(format!("{number} {words}: {failure}")),
            }
        }
    }
    println!("{compared} partitions executed, {refused} refused");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 100 && refused * 10 < compared);
}

/// Torn graphs are refused, not fallen over.
#[test]
fn nothing_panics() {
    let mut numbers = Numbers(3);
    for joint in joints().into_iter().step_by(3) {
        for _ in 0..4 {
            let mut graph = retagged(&joint, &mut numbers);
            let n = graph.len() as u64;
            match numbers.below(4) {
                0 => {
                    let (from, to) = (numbers.below(n) as u32, numbers.below(n + 3) as u32);
                    graph.map_references(|id| if id.0 == from { NodeId(to) } else { id });
                }
                1 => {
                    let keep: Vec<NodeId> = graph.ids().filter(|_| numbers.below(12) != 0).collect();
                    graph = graph.reordered(&keep);
                }
                2 => {
                    let id = NodeId(numbers.below(n) as u32);
                    graph.node_mut(id).out = crate::graph::Out::Absent;
                }
                _ => {
                    let id = NodeId(numbers.below(n) as u32);
                    graph.node_mut(id).args = crate::graph::Span::EMPTY;
                }
            }
            for words in ["method=default", "method=min-cut budget=0.2", "method=replay", "method=min-cut"] {
                let words = format!("{words} num_fwd_outputs={}", numbers.below(4));
                if let Ok(partition) = run(&graph, &config(&words)) {
                    let tagged = tagging::tag_forward(&partition.forward);
                    let _ = retrace::retrace(&tagged, &partition.backward, partition.num_forward_outputs);
                }
            }
            let _ = fsdp::mark(&graph, true);
            let _ = fsdp::mark(&graph, false);
            let _ = activation_checkpointing::checkpoint(&graph, Stage::Auto);
        }
    }
}
