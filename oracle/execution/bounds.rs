//! Inputs that are indices or divisors: which numbers a graph can be given for them.
//!
//! # The idea
//!
//! PyTorch raises where an index is outside its dimension, so a graph that runs is given none. An integer input each
//! element of which selects in a dimension of size *n* holds numbers below *n*: from 0, or from *-n* where negative ones
//! count from the end. A rewrite may count on that, as `torch._inductor.fx_passes.post_grad.scatter_upon_const_tensor`
//! does. It raises, too, where an integer is divided by 0, so an integer input that divides integers holds no 0.
//!
//! # What it does not do
//!
//! Where an index is computed from inputs, these are drawn from the lower half of its positions, which is a guess: what
//! lies outside all the same is noted by the run. An input that is written, and one that selects in an operator without a
//! kernel, is drawn from all integers, and so is what a divisor is computed from.

use crate::graph::{Dtype, DtypeClass, Graph, NodeId, Op, Value};
use crate::ops::{Binary, Bound, Collective, Kind, Move, Ops, View};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers that an integer input, or a part of one, holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The input's name.
    pub name: String,
    /// The elements of its storage, in increasing order; `None` for all of them.
    pub part: Option<Vec<i64>>,
    /// The least number.
    pub least: i64,
    /// One more than the greatest.
    pub end: i64,
    /// Whether they divide, so that 0 is none of them.
    pub divide: bool,
}

impl Bounds {
    /// The bounds of a graph's inputs that are indices, in the order of their names. `is_written` says of an input
    /// whether the graph writes to it.
    pub fn of(graph: &Graph, ops: &Ops, is_written: &dyn Fn(NodeId) -> bool) -> Vec<Bounds> {
        let mut found: BTreeMap<(&str, Option<Vec<i64>>), (i64, i64)> = BTreeMap::new();
        let mut room = MOST_LISTED;
        for id in graph.ids() {
            for (index, least, end) in selections(graph, ops, id) {
                let (inputs, least, end) = match shown(graph, ops, index, &mut room) {
                    Some(shown) => (vec![shown], least, end),
                    None => {
                        let inputs = inputs_behind(graph, index).into_iter();
                        (inputs.map(|input| (input, None)).collect(), 0, (end / 2).max(1))
                    }
                };
                for (input, part) in inputs.into_iter().filter(|&(input, _)| !is_written(input)) {
                    let (name, most) = (graph.name(input), most(graph, input));
                    let bounds = found.entry((name, part)).or_insert((least, most));
                    *bounds = (bounds.0.max(least), bounds.1.min(end));
                }
            }
        }
        let bounds = found.into_iter().map(|((name, part), (least, end))| {
            let name = name.to_string();
            Bounds { name, part, least, end, divide: false }
        });
        let bounds = bounds.filter(|bounds| bounds.least < bounds.end);
        let divisors = graph.ids().filter_map(|id| divisor(graph, ops, id));
        let divisors = divisors.filter_map(|node| shown(graph, ops, node, &mut room));
        let divisors: BTreeSet<_> = divisors.filter(|&(input, _)| !is_written(input)).collect();
        let divisors = divisors.into_iter().map(|(input, part)| {
            let name = graph.name(input).to_string();
            Bounds { name, part, least: i64::MIN, end: i64::MAX, divide: true }
        });
        bounds.chain(divisors).collect()
    }

    /// Whether they hold for an element of an input's storage.
    pub(super) fn hold_for(&self, element: i64) -> bool {
        self.part.as_ref().is_none_or(|part| part.binary_search(&element).is_ok())
    }

    /// A number within all bounds for any number.
    pub(super) fn within<'b>(all: impl Iterator<Item = &'b Bounds> + Clone, number: i64) -> i64 {
        let divide = all.clone().any(|one| one.divide);
        let (least, end) =
            all.fold((i64::MIN, i64::MAX), |(least, end), one| (least.max(one.least), end.min(one.end)));
        match end.checked_sub(least).filter(|&count| count > 0) {
            Some(count) => least + number.wrapping_sub(least).rem_euclid(count),
            None if divide && number == 0 => 1,
            None => number,
        }
    }
}

/// The index tensors of a call, each with the least number and the end of those that it can hold.
fn selections(graph: &Graph, ops: &Ops, id: NodeId) -> Vec<(NodeId, i64, i64)> {
    let Some((info, Kind::Move(movement))) = ops.call(graph, id).map(|info| (info, info.kind)) else {
        return Vec::new();
    };
    let Some(bound) = info.schema.as_ref().and_then(|schema| Bound::new(graph, id, schema).ok()) else {
        return Vec::new();
    };
    let sizes = |name| -> Option<Vec<i64>> {
        let tensor = graph.tensor_of(bound.node(name)?)?;
        graph.dims(tensor.shape).iter().map(|&dim| graph.hint(dim)).collect()
    };
    let size = |sizes: &[i64], dim: i64| -> Option<i64> {
        let rank = sizes.len() as i64;
        sizes.get(usize::try_from(if dim < 0 { dim + rank } else { dim }).ok()?).copied()
    };
    let found = || match movement {
        Move::Index | Move::IndexPut => {
            let sizes = sizes("self")?;
            let indices = bound.list("indices")?.iter().zip(sizes);
            let nodes = indices.filter_map(|(value, size)| match value {
                Value::Node(index) => Some((*index, -size, size)),
                _ => None,
            });
            Some(nodes.collect())
        }
        Move::IndexSelect | Move::Gather | Move::Scatter | Move::ScatterAdd => {
            Some(vec![(bound.node("index")?, 0, size(&sizes("self")?, bound.int("dim")?)?)])
        }
        Move::Embedding => Some(vec![(bound.node("indices")?, 0, size(&sizes("weight")?, 0)?)]),
        _ => None,
    };
    let is_index = |&(index, ..): &(NodeId, i64, i64)| {
        let tensor = graph.tensor_of(index);
        tensor.is_some_and(|tensor| is_integer(tensor.dtype) && graph.numel(tensor) != Some(0))
    };
    let mut found = found().unwrap_or_default();
    found.retain(is_index);
    found
}

/// What divides integers in a call.
fn divisor(graph: &Graph, ops: &Ops, id: NodeId) -> Option<NodeId> {
    let info = ops.call(graph, id)?;
    let rounds = match info.kind {
        Kind::Binary(Binary::FloorDivide | Binary::Remainder | Binary::Fmod) => true,
        Kind::Binary(Binary::Div) => matches!(graph.kwarg(id, "rounding_mode"), Some(Value::Str(_))),
        _ => false,
    };
    match graph.arg(id, 1)? {
        Value::Node(node) if rounds && is_integer(graph.tensor_at(id, 0)?.dtype) => Some(node),
        _ => None,
    }
}

/// One more than the greatest number that an input's dtype holds, as far as it counts.
fn most(graph: &Graph, input: NodeId) -> i64 {
    let bits = graph.tensor_of(input).map_or(64, |tensor| 8 * tensor.dtype.itemsize());
    1 << (bits - 1).min(62)
}

/// Whether numbers of a dtype select; those of booleans and bytes are masks, or may be.
fn is_integer(dtype: Dtype) -> bool {
    dtype.class() == DtypeClass::Int && dtype != Dtype::U8
}

/// Elements of parts that are listed in one graph.
const MOST_LISTED: i64 = 1 << 20;

/// The input whose elements a value shows, and which of them, if there is room to list them: not where they are computed
/// with.
fn shown(graph: &Graph, ops: &Ops, value: NodeId, room: &mut i64) -> Option<(NodeId, Option<Vec<i64>>)> {
    // The last node from which only views lead to the input.
    let (mut at, mut view) = (value, None);
    loop {
        let is_input = matches!(graph.node(at).op, Op::Placeholder | Op::GetAttr);
        if is_input {
            let tensor = graph.tensor_of(at).filter(|tensor| is_integer(tensor.dtype))?;
            let is_whole = |view: &NodeId| {
                graph.tensor_of(*view).is_some_and(|view| graph.numel(view) == graph.numel(tensor))
            };
            let part = view.filter(|view| !is_whole(view)).map(|view| elements(graph, view, room));
            // Where they cannot be listed, they count as computed.
            return match part {
                None => Some((at, None)),
                Some(part) => Some((at, Some(part?))),
            };
        }
        let kind = ops.call(graph, at)?.kind;
        match kind {
            Kind::View(View::Dtype | View::AsStrided) => return None,
            Kind::View(_) | Kind::GetItem => view = view.or(Some(at)),
            Kind::Cast if widens(graph, at) => view = None,
            Kind::Move(Move::Clone) | Kind::Wait | Kind::Collective(Collective::AllGather) => view = None,
            _ => return None,
        }
        at = graph.inputs(at).first().copied().filter(|input| *input < at)?;
    }
}

/// The elements of a storage that a recorded view shows, in increasing order.
fn elements(graph: &Graph, view: NodeId, room: &mut i64) -> Option<Vec<i64>> {
    let tensor = graph.tensor_of(view)?;
    let (sizes, strides) = graph.sizes(tensor.shape).zip(graph.sizes(tensor.stride))?;
    let count = sizes.iter().try_fold(1i64, |count, &size| count.checked_mul(size))?;
    if !(1..=*room).contains(&count) || sizes.len() != strides.len() {
        return None;
    }
    *room -= count;
    let mut elements = vec![tensor.offset];
    for (&size, &stride) in sizes.iter().zip(&strides) {
        let size = if stride == 0 { 1 } else { size };
        elements = elements
            .iter()
            .flat_map(|&at| (0..size).map(move |k| at.saturating_add(stride.saturating_mul(k))))
            .collect();
    }
    elements.sort_unstable();
    elements.dedup();
    Some(elements)
}

/// Nodes behind an index that are looked at.
const MOST_BEHIND: usize = 4096;

/// The inputs of integers that an index is computed from by integers.
fn inputs_behind(graph: &Graph, index: NodeId) -> Vec<NodeId> {
    let is_of_integers = |id: NodeId| graph.tensor_at(id, 0).is_some_and(|tensor| is_integer(tensor.dtype));
    let (mut behind, mut inputs, mut at) = (vec![index], Vec::new(), 0);
    let mut known = FxHashSet::from_iter([index]);
    while let Some(&id) = behind.get(at).filter(|_| at < MOST_BEHIND) {
        at += 1;
        if matches!(graph.node(id).op, Op::Placeholder | Op::GetAttr) {
            inputs.push(id);
            continue;
        }
        for input in graph.inputs(id) {
            if input < id && is_of_integers(input) && known.insert(input) {
                behind.push(input);
            }
        }
    }
    inputs
}

/// Whether a cast of integers keeps every number.
fn widens(graph: &Graph, cast: NodeId) -> bool {
    let from = graph.inputs(cast).first().and_then(|&input| graph.tensor_of(input));
    let both = from.zip(graph.tensor_of(cast));
    both.is_some_and(|(from, to)| is_integer(to.dtype) && to.dtype.itemsize() >= from.dtype.itemsize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text;

    #[test]
    fn inputs_that_are_indices() {
        let case = text::parse(
            "world 2 ranks, groups g = [0 1]\n\
             x = input : f32[4, 3]\nw = input : f32[200, 3]\ni = input : i64[2, 1]\nj = input : i64[2]\n\
             k = input : i8[2]\nmask = input : bool[4]\nsome = input : i64[8]\nsent = input : i32[2]\n\
             done = input : i64[2]\nmore = add(done, 1) : i64[2]\nl = aten.index_select.default(x, 0, more) : f32[2, 3]\n\
             v = permute(i, [1, 0]) : i64[1, 2]\ng1 = aten.gather.default(x, 1, v) : f32[1, 2]\n\
             g2 = aten.gather.default(x, 0, i) : f32[2, 1]\n\
             n = aten.index.Tensor(w, [j, None]) : f32[2, 3]\n\
             kk = cast(k, i64) : i64[2]\ne = aten.embedding.default(w, kk) : f32[2, 3]\n\
             b = aten.index.Tensor(x, [mask]) : f32[4, 3]\n\
             part = aten.slice.Tensor(some, 0, 1, 3) : i64[2] offset 1\ns = aten.index_select.default(x, 0, part) : f32[2, 3]\n\
             all = all_gather(sent, g) : i32[4]\nt = wait(all) : i32[4]\nu = aten.index_select.default(x, -1, t) : f32[4, 4]\n\
             output (g1, g2, n, e, b, s, u, l)\n",
        )
        .unwrap();
        let found = Bounds::of(&case.graph, &Ops::of(&case.graph), &|_| false);
        let found: Vec<_> = found
            .iter()
            .map(|bounds| (bounds.name.as_str(), bounds.part.clone(), bounds.least, bounds.end))
            .collect();
        let expected = [
            ("done", None, 0, 2),
            ("i", None, 0, 3),
            ("j", None, -200, 200),
            ("k", None, 0, 128),
            ("sent", None, 0, 3),
            ("some", Some(vec![1, 2]), 0, 4),
        ];
        assert_eq!(found, expected);
        let bounds = |least, end| Bounds { name: String::new(), part: None, least, end, divide: false };
        let (wide, narrow) = (bounds(-200, 200), bounds(0, 7));
        for number in [0, -200, -201, 200, i64::MAX, i64::MIN] {
            let within = Bounds::within([&wide].into_iter(), number);
            assert!((-200..200).contains(&within), "{number}");
            assert!((0..7).contains(&Bounds::within([&narrow, &wide].into_iter(), number)), "{number}");
        }
        assert_eq!(Bounds::within([&wide].into_iter(), -17), -17);
    }

    #[test]
    fn divisors_of_integers_are_not_zero() {
        let case = text::parse(
            "x = input : i64[4]\ny = input : i64[4]\nz = input : i64[4]\nf = input : f32[4]\ni = input : i64[4]\n\
             a = aten.remainder.Tensor(x, y) : i64[4]\nm = mul(z, z) : i64[4]\nb = aten.fmod.Tensor(a, m) : i64[4]\n\
             q = aten.div.Tensor(x, z) : f32[4]\nr = aten.remainder.Tensor(f, i) : f32[4]\noutput (b, q, r)\n",
        )
        .unwrap();
        let found = Bounds::of(&case.graph, &Ops::of(&case.graph), &|_| false);
        let names: Vec<_> = found.iter().map(|bounds| (bounds.name.as_str(), bounds.divide)).collect();
        assert_eq!(names, [("y", true)]);
        let within = |number| Bounds::within(found.iter(), number);
        assert_eq!([0, 1, -7, i64::MIN].map(within), [1, 1, -7, i64::MIN]);
    }
}
