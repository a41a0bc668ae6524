mod examples;

use super::*;
use crate::format::text;

fn graph(source: &str) -> Graph {
    text::parse(source).unwrap_or_else(|e| panic!("{}", e.render(None))).graph
}

/// The names of the operations in the order that a pass gives.
fn order(graph: &Graph, config: &Config) -> String {
    let scheduled = schedule(graph, config).unwrap_or_else(|e| panic!("{e}"));
    let is_call = |id: &NodeId| graph.node(*id).op == crate::graph::Op::Call;
    let names: Vec<&str> =
        scheduled.order.iter().filter(|id| is_call(id)).map(|&id| graph.name(id)).collect();
    names.join(" ")
}
