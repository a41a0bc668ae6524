//! Joint graphs of a chosen length.

use graph_oracle::candidates::{CandidateExt, Reference};
use graph_oracle::case::{Case, PassConfig};
use graph_oracle::generate::joint::{self, Config};
use graph_oracle::generate::{Longest, Seeded};
use graph_oracle::graph::Graph;
use graph_oracle::judge::References;
use graph_oracle::judge::partition::stages;
use graph_oracle::rules::partition::PartitionConfig;

/// A joint graph of so many nodes at least, and its pass without a method.
pub fn long(nodes: usize) -> (Graph, PassConfig) {
    // A step makes three nodes, more or less.
    let mut steps = u32::try_from(nodes / 4).unwrap_or(u32::MAX);
    loop {
        let (graph, pass) = of_steps(steps);
        if graph.len() >= nodes {
            return (graph, pass);
        }
        steps += steps / 8 + 1;
    }
}

fn of_steps(steps: u32) -> (Graph, PassConfig) {
    // Tags of checkpointing and stray tags would be another graph's; the gathers are tagged.
    let config = Config {
        steps,
        reshard: 100,
        replay: 0,
        checkpoint: 0,
        checkpoint_pass: 0,
        loose_tag: 0,
        long_chain: 0,
        symbolic: 0,
        no_tangent: 0,
        ..Config::default()
    };
    let Case { graph, pass, .. } = joint::generate(&mut Longest(Seeded::case(1, 1)), &config);
    let mut pass = pass.unwrap_or_else(|| PassConfig::new("partition"));
    pass.options.retain(|(key, _)| !["method", "budget"].contains(&key.as_str()));
    (graph, pass)
}

/// The second joint graph and its pass.
pub fn replayed(joint: &Graph, pass: &PassConfig) -> (Graph, PassConfig) {
    let two = pass.clone().with("method", "replay").with("first", "default");
    let (first, second) = stages(&two).unwrap().unwrap();
    let (forward, backward) = Reference.partition(joint, &first, Default::default()).unwrap();
    let outputs = PartitionConfig::from_pass(pass).unwrap().forward_outputs.unwrap();
    (Reference.traced_again(joint, &forward, &backward, outputs).unwrap().second, second)
}
