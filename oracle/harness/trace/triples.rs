//! Joint graphs with what they were cut into: forward and backward, put together again.
//!
//! Inductor's passes over the joint graph run between the joint graph that is written and its partition, and write
//! nothing. So the triple is no partition of that graph, and the rules of partitions do not apply; but both mean the
//! same, which is what a rewrite keeps: the two parts are put together again and compared with the joint graph.
//!
//! What is not judged: which values are saved.

use super::shown::Shown;
use crate::graph::{Graph, Op, Out, Tensor};
use crate::ops::Ops;
use crate::ops::shape::{ShapeFault, check};
use crate::rules::partition::{compose, returned, with_replays};
use ir::format::fx::Printed;
use ir::format::torch_trace::CompileId;
use rustc_hash::FxHashMap;

/// The joint and forward graphs of each compilation that wait for the rest.
#[derive(Default)]
pub(super) struct Triples(FxHashMap<CompileId, (Option<Shown>, Option<Shown>)>);

impl Triples {
    /// Forgets a compilation.
    pub(super) fn remove(&mut self, id: &CompileId) {
        self.0.remove(id);
    }

    /// Takes a graph; the joint graph, forward and backward that it completes. A compilation that is cut at graph
    /// breaks has several, one after the other.
    pub(super) fn add(&mut self, id: &CompileId, name: &str, shown: &Shown) -> Option<Vec<Shown>> {
        match name {
            "aot_joint_graph" => {
                self.0.insert(id.clone(), (Some(shown.clone()), None));
            }
            "aot_forward_graph" => self.0.entry(id.clone()).or_default().1 = Some(shown.clone()),
            "aot_backward_graph" => {
                if let (Some(joint), Some(forward)) = self.0.remove(id)? {
                    return Some(vec![joint, forward, shown.clone()]);
                }
            }
            _ => {}
        }
        None
    }
}

/// Forward and backward as one graph.
///
/// # Errors
/// Why they do not fit together.
pub(super) fn joined(joint: &Printed, forward: &Printed, backward: &Printed) -> Result<Graph, String> {
    let (all, of_backward) = (returned(&joint.graph).len(), returned(&backward.graph).len());
    let Some(of_forward) = all.checked_sub(of_backward) else {
        return Err(format!("backward returns {of_backward} values, and the joint graph {all}"));
    };
    let is_saved = |text: &&String| text.starts_with("SavedForBackwards");
    if !forward.descriptors.is_empty() {
        let own = forward.descriptors.iter().take_while(|text| !is_saved(text)).count();
        if own != of_forward {
            return Err(format!(
                "forward says of {own} of its results that they are the joint graph's own, and {of_forward} are expected"
            ));
        }
    }
    let backward = with_own_bodies(&backward.graph, &forward.graph);
    let composed = compose(&joint.graph, &forward.graph, &backward, of_forward)?;
    let mut joined = with_replays(&joint.graph, [&forward.graph, &backward], of_forward, composed);
    lay_as_given(&mut joined);
    Ok(joined)
}

/// Texts record no offsets: those of views of what forward saves were counted from the inputs of backward.
fn lay_as_given(graph: &mut Graph) {
    let ops = Ops::of(graph);
    for id in graph.ids() {
        let starts = |fault: &ShapeFault| match *fault {
            ShapeFault::Offset { result: 0, rule, .. } => Some(rule),
            _ => None,
        };
        // What is laid right lays what is made of it.
        let offset = check(graph, &ops, id).iter().find_map(starts);
        if let (Some(offset), Some(&tensor)) = (offset, graph.tensor_of(id)) {
            let tensor = graph.push_tensor(Tensor { offset, ..tensor });
            graph.node_mut(id).out = Out::Tensor(tensor);
        }
    }
}

/// The backward graph with names of bodies that the forward graph does not have.
fn with_own_bodies(backward: &Graph, forward: &Graph) -> Graph {
    let mut renamed = backward.clone();
    for id in backward.ids().filter(|&id| backward.node(id).op == Op::GetAttr) {
        let attribute = backward.target(id);
        let (Some(body), Some(_)) = (backward.subgraph(attribute), forward.subgraph(attribute)) else {
            continue;
        };
        let own = format!("{attribute}.backward");
        renamed.node_mut(id).target = renamed.intern_target(&own);
        if renamed.subgraph(&own).is_none() {
            renamed.subgraphs.push((own, body.clone()));
        }
    }
    renamed
}
