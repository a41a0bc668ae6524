//! Kernels of several kinds of devices.
//!
//! One operator is several functions of bits: the kernels of a CPU and of a GPU round otherwise, or add up in another order.
//! So where a call may have moved from one kind of device to another, the calls on all kinds but one are those of operators
//! that are not computed: equal arguments still give equal results on one kind of device.
//!
//! # What it does not do
//!
//! Sums and products of two numbers, quotients, square roots, comparisons, choices and casts are taken to be rounded as
//! IEEE 754 says, wherever they are made. Draws and communication are looked at by rules of their own.

use super::contradictions::leave_uncomputed;
use crate::definitions::Rounded;
use crate::graph::{DtypeClass, Graph, NodeId};
use crate::ops::{Binary, Kind, Ops, Reduce, Unary, kind_of_device};
use std::collections::{BTreeMap, BTreeSet};

/// Where operators of these graphs are called on several kinds of devices, and round otherwise there than `most` allows:
/// makes their calls on all kinds but the last those of operators that are not computed.
pub fn tell_devices_apart(mut graphs: Vec<&mut Graph>, most: Rounded) {
    let found: Vec<Vec<(NodeId, String)>> = graphs.iter().map(|graph| rounding(graph, most)).collect();
    let mut kinds: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (graph, calls) in graphs.iter().zip(&found) {
        for (id, kind) in calls {
            kinds.entry(graph.target(*id).to_string()).or_default().insert(kind);
        }
    }
    for (graph, calls) in graphs.iter_mut().zip(&found) {
        let mut of_kind: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
        for (id, kind) in calls {
            let last = kinds.get(graph.target(*id)).and_then(BTreeSet::last);
            if last.is_some_and(|last| last != kind) {
                of_kind.entry(kind).or_default().push(*id);
            }
        }
        of_kind.into_iter().for_each(|(kind, calls)| leave_uncomputed(graph, &calls, kind));
    }
}

/// Whether [`tell_devices_apart`] may change one of these graphs.
pub fn are_on_several_devices<'g>(graphs: impl Iterator<Item = &'g Graph>) -> bool {
    let kinds: BTreeSet<&str> =
        graphs.flat_map(|graph| graph.ids().filter_map(|id| device(graph, id))).collect();
    kinds.len() > 1
}

/// The kind of device that a call is made on.
fn device(graph: &Graph, id: NodeId) -> Option<&str> {
    let first = graph.tensors_of(graph.node(id).out).first().copied()?;
    Some(kind_of_device(graph.text(graph.tensor(first).device)))
}

/// The calls of a graph that another device rounds otherwise than `most` allows, with the kinds of their devices.
fn rounding(graph: &Graph, most: Rounded) -> Vec<(NodeId, String)> {
    let ops = Ops::of(graph);
    let rounds = |id: &NodeId| {
        let gives_floats = graph
            .tensors_of(graph.node(*id).out)
            .iter()
            .any(|&tensor| graph.tensor(tensor).dtype.class() >= DtypeClass::Float);
        gives_floats && ops.call(graph, *id).is_some_and(|info| rounded(info.kind) > most)
    };
    let calls = graph.ids().filter(rounds);
    calls.filter_map(|id| Some((id, device(graph, id)?.to_string()))).collect()
}

/// How the kernels of several devices part.
fn rounded(kind: Kind) -> Rounded {
    match kind {
        Kind::Unary(
            Unary::Relu
            | Unary::Neg
            | Unary::Abs
            | Unary::Sign
            | Unary::Sqrt
            | Unary::Reciprocal
            | Unary::Square
            | Unary::Floor
            | Unary::Ceil
            | Unary::Round
            | Unary::Trunc,
        ) => Rounded::Alike,
        Kind::Binary(Binary::Pow) | Kind::Unary(_) | Kind::Pointwise | Kind::Opaque => Rounded::Otherwise,
        Kind::Reduce(Reduce::Sum | Reduce::Mean | Reduce::Prod) | Kind::Cumsum | Kind::Matmul(_) => {
            Rounded::Regrouped
        }
        _ => Rounded::Alike,
    }
}
