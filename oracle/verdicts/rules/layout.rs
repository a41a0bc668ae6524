//! Whether an equality rests on strides that nobody knows, or on what a custom operator makes of other strides.
//!
//! # The idea
//!
//! What an operator without a rule for strides gives lies in memory as it likes. Where nobody recorded how, its
//! strides are a guess. What `as_strided`, `view` or `reshape` make of such a tensor depends on it, so whatever is
//! equal then is not believed, unless it is the same view of the same calls as before. That convicts nobody: the
//! guess, or the record, may be right.
//!
//! The same call of the same inputs that is recorded with other strides than before is in doubt too: one of the
//! records is not true.
//!
//! A custom operator, or the body of a higher-order one, may be a kernel that takes rows to lie side by side. So where
//! one is given a tensor of other strides than before, what it gives is not known, whatever the tensor holds.
//!
//! # What it does not do
//!
//! It does not ask whether what such a view shows is read, nor whether a custom operator minds where in its storage a
//! tensor begins: members of a bucket begin anywhere.

use super::overlap::strides_in_memory;
use super::{Code, Evidence, Reason};
use crate::graph::{Graph, NodeId, Op, TensorId};
use crate::ops::shape::leaves_strides_open;
use crate::ops::{Kind, OpInfo, Schema, View, by_target};

/// Why what is equal is not believed; `None` where it is.
pub(super) fn doubt(evidence: &Evidence) -> Option<Reason> {
    let (before, after, of) = (&evidence.before, &evidence.after, &evidence.correspondence);
    let (old, new) = (before.graph, after.graph);
    // Calls that are what they were, back to the inputs; and results whose strides are not known.
    let (mut is_kept, mut is_unknown) = (vec![false; new.len()], vec![false; new.len()]);
    for id in new.ids() {
        let inputs: Vec<NodeId> =
            after.edges.inputs(id).iter().copied().filter(|&input| input < id).collect();
        let is_any = |of: &[bool]| inputs.iter().any(|input| of[input.index()]);
        let is_passed_on = after.ops.call(new, id).is_some_and(passes_strides_on)
            && inputs.first().is_some_and(|input| is_unknown[input.index()]);
        let twin = of.before_of[id.index()];
        let is_call = new.node(id).op == Op::Call;
        let is_the_same = twin.is_some_and(|twin| {
            let theirs = before.edges.inputs(twin).iter().copied().map(Some);
            let takes_theirs = inputs.iter().map(|input| of.before_of[input.index()]).eq(theirs);
            let takes_kept = inputs.iter().all(|input| is_kept[input.index()]);
            match is_call {
                true => !of.changed.contains(&twin) && takes_theirs && takes_kept,
                false => new.same_result(id, old, twin),
            }
        });
        // The same call of the same inputs gives the same memory: records that differ are not both true.
        let is_recorded_otherwise = |twin: NodeId| {
            is_call
                && is_the_same
                && !is_any(&is_unknown)
                && other_strides((old, twin), (new, id))
                && leaves_strides_open(new, &after.ops, id)
        };
        let is_guessed = new.is_guessed(id) || twin.is_some_and(|twin| old.is_guessed(twin));
        if !is_guessed && twin.is_some_and(is_recorded_otherwise) {
            return Some(Code::NotRecorded.because(format!(
                "{} is the same call of the same inputs as before, and recorded with other strides; its operator does not \
                 tell which are true",
                new.name(id)
            )));
        }
        is_unknown[id.index()] = is_guessed || is_passed_on;
        is_kept[id.index()] = is_the_same;
    }
    let depends = |&id: &NodeId| {
        let info = after.ops.call(new, id);
        let is_view = info.is_some_and(|info| {
            matches!(
                info.kind,
                Kind::View(View::AsStrided | View::Sizes | View::Dtype | View::AsComplex) | Kind::SymStride
            )
        });
        is_view && !is_kept[id.index()]
    };
    if let Some((id, input)) = given_otherwise(evidence) {
        return Some(Code::NotRecorded.because(format!(
            "{} calls {}, which may depend on strides, and {} has others than what it was given before",
            new.name(id),
            new.target(id),
            new.name(input)
        )));
    }
    let found = new.ids().filter(depends).find_map(|id| {
        let &input = after.edges.inputs(id).first()?;
        (is_unknown.get(input.index()) == Some(&true)).then_some((id, input))
    });
    let (id, input) = found?;
    Some(Code::NotRecorded.because(format!(
        "{} depends on the strides of {}, which are not known",
        new.name(id),
        new.name(input)
    )))
}

/// A call of a custom operator that is given a tensor of other strides than before, and the tensor.
fn given_otherwise(evidence: &Evidence) -> Option<(NodeId, NodeId)> {
    let (before, after) = (&evidence.before, &evidence.after);
    let is_custom = |info: &&OpInfo| {
        let is_of_pytorch = |schema: &Schema| ["aten", "prims"].contains(&schema.namespace.as_str());
        matches!(info.kind, Kind::Opaque | Kind::Unknown)
            && !info.schema.as_ref().is_some_and(is_of_pytorch)
            && (by_target(&info.target).is_none() || info.target.starts_with("higher_order."))
    };
    // Where names do not say which call it was: as often as both graphs make it, the one in its place.
    let in_place = |id: NodeId| {
        let calls = |graph: &Graph| -> Vec<NodeId> {
            let target = after.graph.target(id);
            graph.ids().filter(|&call| graph.target(call) == target).collect()
        };
        let (old, new) = (calls(before.graph), calls(after.graph));
        let place = new.iter().position(|&call| call == id).filter(|_| old.len() == new.len())?;
        old.get(place).copied()
    };
    after.graph.ids().find_map(|id| {
        after.ops.call(after.graph, id).filter(is_custom)?;
        let twin = evidence.correspondence.before_of[id.index()].or_else(|| in_place(id))?;
        let (was, is) = (before.graph.inputs(twin), after.graph.inputs(id));
        let is_alike = |pair: &(&NodeId, &NodeId)| {
            strides_in_memory(before.graph, *pair.0) == strides_in_memory(after.graph, *pair.1)
        };
        let pairs_up = was.len() == is.len() && before.graph.target(twin) == after.graph.target(id);
        let (_, &input) = was.iter().zip(&is).filter(|_| pairs_up).find(|pair| !is_alike(pair))?;
        Some((id, input))
    })
}

/// Whether the strides of a result follow from those of the first input.
fn passes_strides_on(info: &OpInfo) -> bool {
    info.is_view() || matches!(info.kind, Kind::GetItem | Kind::Unary(_) | Kind::Cast | Kind::Wait)
}

/// Whether tensors of the same sizes are recorded with other strides.
fn other_strides(one: (&Graph, NodeId), other: (&Graph, NodeId)) -> bool {
    let layout = |graph: &Graph, id: TensorId| {
        let tensor = graph.tensor(id);
        graph.sizes(tensor.shape).zip(graph.sizes(tensor.stride))
    };
    let tensors = |(graph, id): (&Graph, NodeId)| graph.tensors_of(graph.node(id).out);
    let (a, b) = (tensors(one), tensors(other));
    let is_other = |(&a, &b): (&TensorId, &TensorId)| match (layout(one.0, a), layout(other.0, b)) {
        (Some((sizes, was)), Some((others, is))) => sizes == others && was != is,
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(&b).any(is_other)
}
