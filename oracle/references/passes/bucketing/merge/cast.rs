//! Casts in front of gathers, folded into the packing.
//!
//! A cast that only a gather uses is taken off: the packing copies the uncast values and converts them on the
//! way. Only a pure change of dtype is folded, and only if each value still comes out as the cast would have
//! made it; and only if its input is still what it was when the bucket is packed. (PyTorch 2.15 folds any
//! `_to_copy`, also one that changes the device, and looks neither at what the concatenation of different dtypes
//! does to the values nor at writes to the input.)

use super::emit::Piece;
use crate::graph::{Dtype, DtypeClass, Graph, NodeId, Value};
use crate::passes::bucketing::Mode;
use crate::passes::bucketing::member::Targets;
use crate::passes::bucketing::strategy::Context;

/// The cast in front of a gather that may be folded, and what it casts. One level only.
pub fn foldable(cx: &Context, input: NodeId, start: NodeId) -> Option<(NodeId, NodeId)> {
    let (graph, targets) = (cx.editor.graph(), cx.targets);
    let is_cast = Targets::calls(graph, input, &[targets.convert, targets.to_copy]);
    let is_plain = is_cast && !cx.facts.contradicted.contains_key(&input);
    if !is_plain || cx.editor.users(input) != [start] || (cx.careful && cx.facts.is_awaited(input)) {
        return None;
    }
    let Some(Value::Node(from)) = graph.arg(input, 0) else { return None };
    is_pure(graph, input, from).then_some((input, from))
}

/// Whether a cast changes nothing but the dtype.
fn is_pure(graph: &Graph, cast: NodeId, from: NodeId) -> bool {
    let (Some(before), Some(after)) = (graph.tensor_of(from), graph.tensor_of(cast)) else { return false };
    let same_place = before.device == after.device && before.shape == after.shape;
    same_place
        && graph.kwargs(cast).all(|(key, value)| match (key, value) {
            ("dtype" | "memory_format" | "non_blocking", _) | (_, Value::None) => true,
            ("device", Value::Device(device)) => device == before.device,
            ("layout", Value::Layout(layout)) => graph.text(layout) == "strided",
            ("pin_memory", Value::Bool(pin)) => !pin,
            _ => false,
        })
}

/// Whether packing `inputs` by a body of this mode gives each the value that a cast to `to` would.
pub fn packs_exactly(mode: Mode, inputs: &[Piece], to: Dtype) -> bool {
    let Some(common) = promoted(inputs.iter().map(|x| x.layout.dtype)) else { return false };
    match mode {
        // Each piece is converted on its own.
        Mode::CustomOps | Mode::CustomOpsMultidtype | Mode::Functional { copy_in: true } => true,
        // The concatenation is sent as it is.
        Mode::Functional { copy_in: false } => common == to,
        // The concatenation is converted to the common dtype, and then to the result's.
        Mode::Default | Mode::Coalesced => {
            let is_exact = |from: Dtype| embeds(from, common) && !is_left_open(from, common, to);
            common == to || inputs.iter().all(|x| is_exact(x.layout.dtype))
        }
    }
}

/// Whether an integer may come back from a float as one that cannot hold it: what C++ leaves open then, a cast of the
/// integer itself does not.
fn is_left_open(from: Dtype, through: Dtype, to: Dtype) -> bool {
    let classes = [from, through, to].map(Dtype::class);
    classes == [DtypeClass::Int, DtypeClass::Float, DtypeClass::Int] && !embeds(from, to)
}

/// The dtype of a concatenation; `None` where PyTorch has none.
pub fn promoted(dtypes: impl Iterator<Item = Dtype>) -> Option<Dtype> {
    let mut common = None;
    for dtype in dtypes {
        common = Some(match common {
            None => dtype,
            Some(common) => crate::ops::shape::promote(common, dtype)?,
        });
    }
    common
}

/// Whether every value of `from` is one of `to`.
fn embeds(from: Dtype, to: Dtype) -> bool {
    if from == to {
        return true;
    }
    let fits = || {
        let ((bits, range), (to_bits, to_range)) = (from.precision(), to.precision());
        bits <= to_bits && range <= to_range
    };
    let unsigned = |dtype: Dtype| matches!(dtype, Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64);
    match (from.class(), to.class()) {
        (DtypeClass::Bool, _) => true,
        (DtypeClass::Int, DtypeClass::Int) => fits() && (unsigned(from) || !unsigned(to)),
        (DtypeClass::Int, DtypeClass::Float | DtypeClass::Complex) => fits(),
        (DtypeClass::Float, DtypeClass::Float | DtypeClass::Complex) => fits(),
        (DtypeClass::Complex, DtypeClass::Complex) => fits(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_survive() {
        for (from, to) in [
            (Dtype::BF16, Dtype::F32),
            (Dtype::F8E4M3, Dtype::F16),
            (Dtype::I8, Dtype::BF16),
            (Dtype::U8, Dtype::I16),
            (Dtype::Bool, Dtype::F8E5M2),
            (Dtype::F32, Dtype::C64),
        ] {
            assert!(embeds(from, to), "{from:?} {to:?}");
        }
        for (from, to) in [
            (Dtype::BF16, Dtype::F16),
            (Dtype::F16, Dtype::BF16),
            (Dtype::I32, Dtype::F32),
            (Dtype::I16, Dtype::F16),
            (Dtype::I8, Dtype::U16),
            (Dtype::U8, Dtype::I8),
            (Dtype::F32, Dtype::I64),
            (Dtype::C64, Dtype::F64),
        ] {
            assert!(!embeds(from, to), "{from:?} {to:?}");
        }
    }
}
