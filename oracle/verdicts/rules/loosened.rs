//! What tells roundings, or the signs of zeros, apart.
//!
//! # The idea
//!
//! What a level of [`Numerics`] lets part is *loose*, and all that is computed of it. Nothing loose may reach a call that tells
//! such differences apart: of roundings a comparison, an index, a cast to an integer; of the sign of a zero a quotient, a function
//! that is not known to take both zeros for one, or a look at the bits. There the law is no law, and nothing is proved.

use super::{AnalyzedGraph, Evidence, executed};
use crate::definitions::{Rounded, defined_calls};
use crate::graph::{DtypeClass, Graph, NodeId};
use crate::ops::{Binary, Kind, OpInfo, Unary, View};
use crate::semantics::{Numerics, tells_roundings_apart};

/// How terms may be rounded otherwise by a level.
pub(crate) fn most_rounded(level: Numerics) -> Rounded {
    match level {
        Numerics::Exact => Rounded::Alike,
        Numerics::ZeroSign => Rounded::Zeros,
        Numerics::Reassociation => Rounded::Regrouped,
        _ => Rounded::Otherwise,
    }
}

/// How terms may be rounded in the place of the calls of these graphs, by what a level allows: alike, where something tells
/// the roundings of such a call from those of its definition.
fn rounded<'g>(level: Numerics, mut graphs: impl Iterator<Item = &'g Graph>) -> Rounded {
    let most = most_rounded(level);
    if graphs.any(|graph| decides_by_roundings(graph, most)) { Rounded::Alike } else { most }
}

/// The graph before of all ranks, then those after, with the calls written out that are defined; `None` where none are.
pub(super) fn written(evidence: &Evidence, level: Numerics) -> Option<Vec<Graph>> {
    let sides = evidence.afters().into_iter().chain([&*evidence.before]);
    executed::written(evidence, rounded(level, sides.map(|side| side.graph)))
}

/// Whether something is decided by what a term may round otherwise than its call. A rounding, too, makes zeros of numbers:
/// where roundings may part, it has to tell those apart as well.
fn decides_by_roundings(graph: &Graph, most: Rounded) -> bool {
    let calls = defined_calls(graph);
    let of = |is_loose: fn(Rounded) -> bool| -> Vec<NodeId> {
        calls.iter().filter(|(_, rounded)| is_loose(*rounded)).map(|&(id, _)| id).collect()
    };
    let (zeros, others) = (of(|one| one == Rounded::Zeros), of(|one| one > Rounded::Zeros));
    let tells = |loose: &[NodeId], levels: &[Numerics]| tells_all(graph, loose, levels, false);
    match most {
        Rounded::Alike => false,
        Rounded::Zeros => tells(&zeros, &[Numerics::ZeroSign]),
        _ => {
            tells(&others, &[Numerics::Contraction])
                || tells(&zeros, &[Numerics::ZeroSign, Numerics::Contraction])
        }
    }
}

/// Whether some call reads the sign of a zero that another one gives.
pub(super) fn reads_signs_of_zeros(evidence: &Evidence) -> bool {
    evidence.afters().into_iter().chain([&*evidence.before]).any(|side| {
        let calls: Vec<NodeId> =
            side.graph.ids().filter(|&id| side.ops.call(side.graph, id).is_some()).collect();
        tells(side.graph, &calls, Numerics::ZeroSign, false)
    })
}

/// Whether some call reads the bits of a float that another one computes: as numbers they are not known.
pub(super) fn reads_bits(evidence: &Evidence) -> bool {
    evidence.afters().into_iter().chain([&*evidence.before]).any(|side| {
        let graph = side.graph;
        let kind = |id: NodeId| side.ops.call(graph, id).map(|info| info.kind);
        let is_float =
            |id: NodeId| graph.tensor_of(id).is_some_and(|of| of.dtype.class() >= DtypeClass::Float);
        let is_computed = |mut id: NodeId| {
            while let (Some(Kind::View(_)), Some(&of)) = (kind(id), graph.inputs(id).first()) {
                if of >= id {
                    return true;
                }
                id = of;
            }
            kind(id).is_some()
        };
        graph.ids().any(|id| {
            matches!(kind(id), Some(Kind::View(View::Dtype)))
                && graph.inputs(id).first().is_some_and(|&of| is_float(of) && of < id && is_computed(of))
        })
    })
}

/// Whether something loose reaches a call that tells what a level lets part. `on_ranks`: whatever comes from other ranks
/// may be loose.
pub(crate) fn tells(graph: &Graph, loose: &[NodeId], level: Numerics, on_ranks: bool) -> bool {
    tells_all(graph, loose, &[level], on_ranks)
}

/// The same of a call that tells what each of some levels lets part.
fn tells_all(graph: &Graph, loose: &[NodeId], levels: &[Numerics], on_ranks: bool) -> bool {
    if loose.is_empty() && !on_ranks {
        return false;
    }
    let side = AnalyzedGraph::new(graph);
    let mut is_loose = vec![false; graph.len()];
    loose.iter().for_each(|id| is_loose[id.index()] = true);
    let ids = || graph.ids();
    if on_ranks {
        ids()
            .filter(|&id| side.collectives.launch_at(id).is_some())
            .for_each(|id| is_loose[id.index()] = true);
    }
    loop {
        let mut grows = false;
        for id in ids() {
            let inputs = side.graph.inputs(id);
            if !is_loose[id.index()] && !inputs.iter().any(|input| is_loose[input.index()]) {
                continue;
            }
            grows |= !std::mem::replace(&mut is_loose[id.index()], true);
            let written = side.storages().accesses_by(id).iter().filter(|access| access.touch.writes());
            for access in written {
                for &shows in side.shown_by(access.part.storage) {
                    grows |= !std::mem::replace(&mut is_loose[shows.index()], true);
                }
            }
        }
        if !grows {
            break;
        }
    }
    let tells = |id: NodeId| match side.ops.call(graph, id) {
        None => false,
        Some(OpInfo { kind: Kind::Unknown | Kind::Item | Kind::Assert | Kind::Effect, .. }) => true,
        Some(info) => levels.iter().all(|&level| match level {
            Numerics::ZeroSign => !takes_zeros_for_one(graph, id, info),
            _ => tells_roundings_apart(graph, id, info),
        }),
    };
    ids().filter(|&id| side.graph.inputs(id).iter().any(|input| is_loose[input.index()])).any(tells)
}

/// Whether a call gives the same, but for the signs of zeros, whatever signs the zeros have that it is given.
fn takes_zeros_for_one(graph: &Graph, id: NodeId, info: &OpInfo) -> bool {
    use Binary::{Add, Eq, Ge, Gt, Le, Lt, Maximum, Minimum, Mul, Ne, Rmul, Rsub, Sub};
    let shown = graph.inputs(id).into_iter().flat_map(|input| graph.tensors_of(graph.node(input).out));
    match info.kind {
        // Other zeros have no sign.
        _ if shown.into_iter().all(|of| graph.tensor(of).dtype.class() < DtypeClass::Float) => true,
        Kind::View(_) => !graph.target(id).ends_with(".dtype"),
        Kind::Binary(op) => {
            matches!(op, Add | Sub | Rsub | Mul | Rmul | Maximum | Minimum | Eq | Ne | Lt | Le | Gt | Ge)
        }
        Kind::Unary(op) => matches!(
            op,
            Unary::Relu
                | Unary::Neg
                | Unary::Abs
                | Unary::Exp
                | Unary::Exp2
                | Unary::Sqrt
                | Unary::Sigmoid
                | Unary::Silu
                | Unary::Tanh
                | Unary::Sin
                | Unary::Cos
                | Unary::Square
        ),
        Kind::Reduce(_) | Kind::Cumsum | Kind::Matmul(_) | Kind::Where | Kind::Fma | Kind::Clamp => true,
        // A cast to another float, or of the bits to an integer, keeps what a zero is.
        Kind::Move(_) | Kind::Cast | Kind::Wait | Kind::GetItem | Kind::MaskedFill => true,
        Kind::Collective(collective) => !collective.is_unmodelled(),
        _ => false,
    }
}
