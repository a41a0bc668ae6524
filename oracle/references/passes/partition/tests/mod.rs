//! Partitions of small graphs, and of captured ones against what PyTorch made of them.

mod legality;
mod listing;
mod meaning;
mod pytorch;
mod recorded;
mod small;
mod tags;
mod two_stages;

use super::*;
use crate::format::text;
use crate::graph::Op;

/// A joint graph from text, with this many forward outputs.
fn graph(lines: &str) -> Graph {
    text::parse(lines).unwrap_or_else(|errors| panic!("{errors}")).graph
}

/// A configuration from words.
fn config(words: &str) -> PartitionConfig {
    let option = |word: &str| word.split_once('=').map(|(key, value)| (key.to_string(), value.to_string()));
    PartitionConfig::from_options(&words.split_whitespace().filter_map(option).collect::<Vec<_>>()).unwrap()
}

/// The names of what is saved.
fn saved(partition: &Partition) -> Vec<&str> {
    partition.saved().map(|value| value.name.as_str()).collect()
}

/// The names of a graph's nodes in order, the output left out.
fn names(graph: &Graph) -> Vec<&str> {
    graph.ids().filter(|&id| graph.node(id).op != Op::Output).map(|id| graph.name(id)).collect()
}

/// What a graph returns, by name.
fn returned(graph: &Graph) -> Vec<&str> {
    graph.output().map(|id| graph.inputs(id)).unwrap_or_default().iter().map(|&id| graph.name(id)).collect()
}

/// A graph's nodes that have a `recompute` tag, with it.
fn tagged(graph: &Graph) -> Vec<(&str, &str)> {
    let tag = |id| graph.tags(id)?.recompute.map(|tag| (graph.name(id), graph.text(tag)));
    graph.ids().filter_map(tag).collect()
}
