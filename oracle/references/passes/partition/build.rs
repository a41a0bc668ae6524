//! The graph of one side.

use super::extract::Piece;
use super::joint::{Joint, Side};
use super::marks::retag;
use crate::graph::{Graph, NodeId, Op, Span};

impl Piece {
    /// The graph of this side: the joint graph's nodes under their names, with its tags as the passes left them.
    /// Backward nodes other than placeholders are marked as autograd's.
    pub fn build(&self, joint: &Joint) -> Graph {
        let mut graph = joint.graph.clone();
        let backward = self.side == Side::Backward;
        for &id in &self.inputs {
            let name = graph.name(id).to_string();
            let target = match graph.node(id).op {
                Op::Placeholder => graph.node(id).target,
                _ => graph.intern_target(&name),
            };
            let node = graph.node_mut(id);
            (node.op, node.target, node.args, node.kwargs) =
                (Op::Placeholder, target, Span::EMPTY, Span::EMPTY);
        }
        for &id in &self.list {
            let call = graph.node(id).op != Op::Placeholder;
            let recompute = joint.tags(id).recompute;
            let changed = graph.tags(id).and_then(|tags| tags.recompute).map(|text| graph.text(text))
                != recompute.map(|strategy| strategy.name());
            if changed || (backward && call) {
                retag(&mut graph, id, |graph, tags| {
                    if changed {
                        tags.recompute = recompute.map(|strategy| graph.intern(strategy.name()));
                    }
                    if backward && call {
                        tags.autograd_backward = Some(true);
                    }
                });
            }
        }
        let outputs = graph.list(&self.outputs);
        let args = graph.push_values(&[outputs]);
        graph.node_mut(joint.output).args = args;
        graph.name = format!("{}_{}", joint.graph.name, if backward { "bw" } else { "fw" });
        graph.kind = if backward { "backward" } else { "forward" }.to_string();
        graph.extra.retain(|(key, _)| {
            !matches!(key.as_str(), "num_fwd_outputs" | "static_lifetime_input_indices" | "num_nodes")
        });
        let mut list: Vec<NodeId> = self.list.clone();
        list.push(joint.output);
        graph.reordered(&list)
    }
}
