//! Inputs that are indices: which numbers a graph can be given for them.
//!
//! # The idea
//!
//! PyTorch raises where an index is outside its dimension, so a graph that runs is given none. An integer input each
//! element of which selects in a dimension of size *n* holds numbers below *n*: from 0, or from *-n* where negative ones
//! count from the end. A rewrite may count on that, as `torch._inductor.fx_passes.post_grad.scatter_upon_const_tensor`
//! does.
//!
//! # What it does not do
//!
//! What is computed on the way to an index may have any value. An input of which a part selects, or that is written or
//! cast to fewer bits before it does, is drawn from all integers, and so is what selects in an operator without a kernel.

use crate::graph::{Dtype, DtypeClass, Graph, NodeId, Op, Value};
use crate::ops::{Bound, Collective, Kind, Move, Ops, View};
use std::collections::BTreeMap;

/// Numbers that an integer input holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The input's name.
    pub name: String,
    /// The least number.
    pub least: i64,
    /// One more than the greatest.
    pub end: i64,
}

impl Bounds {
    /// The bounds of a graph's inputs that are indices, in the order of their names. `is_written` says of an input
    /// whether the graph writes to it.
    pub fn of(graph: &Graph, ops: &Ops, is_written: &dyn Fn(NodeId) -> bool) -> Vec<Bounds> {
        let mut found: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        for id in graph.ids() {
            for (index, least, end) in selections(graph, ops, id) {
                let Some(input) = input_of(graph, ops, index).filter(|&input| !is_written(input)) else {
                    continue;
                };
                let (name, most) = (graph.name(input), most(graph, input));
                let bounds = found.entry(name).or_insert((least, most));
                *bounds = (bounds.0.max(least), bounds.1.min(end));
            }
        }
        let bounds =
            found.into_iter().map(|(name, (least, end))| Bounds { name: name.to_string(), least, end });
        bounds.filter(|bounds| bounds.least < bounds.end).collect()
    }

    /// A number within the bounds for any number.
    pub(super) fn within(&self, number: i64) -> i64 {
        self.least + number.wrapping_sub(self.least).rem_euclid(self.end - self.least)
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

/// One more than the greatest number that an input's dtype holds, as far as it counts.
fn most(graph: &Graph, input: NodeId) -> i64 {
    let bits = graph.tensor_of(input).map_or(64, |tensor| 8 * tensor.dtype.itemsize());
    1 << (bits - 1).min(62)
}

/// Whether numbers of a dtype select; those of booleans and bytes are masks, or may be.
fn is_integer(dtype: Dtype) -> bool {
    dtype.class() == DtypeClass::Int && dtype != Dtype::U8
}

/// The input all elements of which a value shows, and no others.
fn input_of(graph: &Graph, ops: &Ops, value: NodeId) -> Option<NodeId> {
    let mut at = value;
    loop {
        if matches!(graph.node(at).op, Op::Placeholder | Op::GetAttr) {
            return graph.tensor_of(at).is_some_and(|tensor| is_integer(tensor.dtype)).then_some(at);
        }
        let is_whole = match ops.call(graph, at)?.kind {
            Kind::View(view) => is_whole(view),
            Kind::Cast => widens(graph, at),
            Kind::Move(Move::Clone) | Kind::Wait | Kind::Collective(Collective::AllGather) => true,
            _ => false,
        };
        let input = graph.inputs(at).first().copied()?;
        if !is_whole || input >= at {
            return None;
        }
        at = input;
    }
}

/// Whether a cast of integers keeps every number.
fn widens(graph: &Graph, cast: NodeId) -> bool {
    let from = graph.inputs(cast).first().and_then(|&input| graph.tensor_of(input));
    let both = from.zip(graph.tensor_of(cast));
    both.is_some_and(|(from, to)| is_integer(to.dtype) && to.dtype.itemsize() >= from.dtype.itemsize())
}

/// Whether a view shows all elements.
fn is_whole(view: View) -> bool {
    matches!(
        view,
        View::Sizes
            | View::Permute
            | View::Transpose
            | View::T
            | View::Unsqueeze
            | View::Squeeze
            | View::Expand
            | View::Alias
    )
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
             v = permute(i, [1, 0]) : i64[1, 2]\ng1 = aten.gather.default(x, 1, v) : f32[1, 2]\n\
             g2 = aten.gather.default(x, 0, i) : f32[2, 1]\n\
             n = aten.index.Tensor(w, [j, None]) : f32[2, 3]\n\
             kk = cast(k, i64) : i64[2]\ne = aten.embedding.default(w, kk) : f32[2, 3]\n\
             b = aten.index.Tensor(x, [mask]) : f32[4, 3]\n\
             part = aten.slice.Tensor(some, 0, 0, 2) : i64[2]\ns = aten.index_select.default(x, 0, part) : f32[2, 3]\n\
             all = all_gather(sent, g) : i32[4]\nt = wait(all) : i32[4]\nu = aten.index_select.default(x, -1, t) : f32[4, 4]\n\
             output (g1, g2, n, e, b, s, u)\n",
        )
        .unwrap();
        let found = Bounds::of(&case.graph, &Ops::of(&case.graph), &|_| false);
        let found: Vec<_> =
            found.iter().map(|bounds| (bounds.name.as_str(), bounds.least, bounds.end)).collect();
        assert_eq!(found, [("i", 0, 3), ("j", -200, 200), ("k", 0, 128), ("sent", 0, 3)]);
        let bounds = Bounds { name: String::new(), least: -200, end: 200 };
        for (number, within) in
            [(0, 0), (-200, -200), (-201, 199), (200, -200), (i64::MAX, bounds.within(i64::MAX))]
        {
            assert_eq!(bounds.within(number), within);
            assert!((-200..200).contains(&bounds.within(number)), "{number}");
        }
    }
}
