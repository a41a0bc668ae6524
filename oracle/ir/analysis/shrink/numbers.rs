//! Numbers that may make up for sizes at the recorded ones alone.
//!
//! A graph that divides the sum of 64 elements by 32 is one that takes twice their mean, but at no other size. So numbers that
//! only one of two graphs has are held against the sizes: a few times one, a product of two, or a root of one, or a part of
//! that. The product of such numbers has to reach a root of a size, or the ratio of two; 2 alone reaches none of 4096. The ratio of
//! a size and the next one, as in an unbiased variance, and the logarithm of a size need not.

use super::read::Read;
use super::scalars::{constants, is_factor, number};
use crate::graph::{Graph, NodeId, Value};
use crate::ops::{Bound, Kind, Ops, Param};
use std::collections::{BTreeMap, BTreeSet};

/// Sizes up to which a number that is one of them says nothing of it.
const SMALL_SIZE: i64 = 8;

/// How many times a size a number is at most that may stand for it.
const FEW_TIMES: f64 = 65.0;

/// The numbers that a graph computes with, by their bits: how often each operator is given each.
fn numbers<'g>(graph: &'g Graph, ops: &Ops, read: &Read) -> BTreeMap<(&'g str, u64), usize> {
    let mut found = BTreeMap::new();
    let sizes: BTreeSet<(NodeId, usize)> = read.edits.iter().map(|edit| (edit.node, edit.param)).collect();
    for id in graph.ids() {
        let Some(info) = ops.call(graph, id) else { continue };
        let schema = info.schema.as_ref();
        let bound = schema.and_then(|schema| Bound::new(graph, id, schema).ok());
        let params = schema.map_or(&[][..], |schema| &schema.params);
        let is_number = |&(at, param): &(usize, &Param)| is_factor(param) && !sizes.contains(&(id, at));
        for (at, param) in params.iter().enumerate().filter(is_number) {
            let value = bound.as_ref().and_then(|bound| bound.given(at));
            let is_computed_with =
                matches!(value, Some(Value::Float(_))) || info.kind.is_elementwise() || param.ty == "Scalar";
            if let Some(number) = value.and_then(number).filter(|_| is_computed_with) {
                let operator = graph.target(id).split('.').nth(1).unwrap_or_default();
                *found.entry((operator, number.to_bits())).or_default() += 1;
            }
        }
    }
    found
}

/// Whether numbers, or sums of what depends on no input, may make up for sizes.
pub fn may_make_up_for_sizes(graphs: &[&Graph], ops: &[Ops], reads: &[Read]) -> bool {
    let dims = |graph: &&Graph| -> Vec<i64> {
        let outs = graph.ids().flat_map(|id| graph.tensors_of(graph.node(id).out));
        outs.flat_map(|tensor| graph.dims(graph.tensor(tensor).shape)).filter_map(|dim| dim.known()).collect()
    };
    let sizes: BTreeSet<i64> = graphs.iter().flat_map(dims).filter(|&size| size > SMALL_SIZE).collect();
    let each = graphs.iter().zip(ops).zip(reads);
    let all: Vec<_> = each.map(|((graph, ops), read)| numbers(graph, ops, read)).collect();
    let is_new = all.iter().any(|after| {
        let given: BTreeSet<_> = all[0].keys().chain(after.keys()).collect();
        let times = |one| {
            let [before, after] = [&all[0], after].map(|numbers| numbers.get(one).copied().unwrap_or(0));
            (f64::from_bits(one.1), before.abs_diff(after))
        };
        let new: Vec<(f64, usize)> = given.into_iter().map(times).filter(|(_, times)| *times > 0).collect();
        let is_any = |is_such: fn(f64, &BTreeSet<i64>) -> bool| new.iter().any(|one| is_such(one.0, &sizes));
        is_any(is_ratio_or_logarithm) || reach_sizes(&new, &sizes) && is_any(is_of_sizes)
    });
    is_new || graphs.iter().zip(ops).any(|(graph, ops)| sums_constants(graph, ops))
}

/// Whether the product of some numbers, each so often, is as large as the fourth root of a size or the ratio of two.
fn reach_sizes(numbers: &[(f64, usize)], sizes: &BTreeSet<i64>) -> bool {
    let of = |&(x, times): &(f64, usize)| x.abs().max(1.0 / x.abs()).powi(times.min(64) as i32);
    let reach: f64 = numbers.iter().map(of).product();
    let is_reached = |least: f64| least <= reach * (1.0 + 1e-6);
    let ratios = sizes.iter().zip(sizes.iter().skip(1)).map(|(&low, &high)| high as f64 / low as f64);
    sizes.first().is_some_and(|&size| is_reached((size as f64).powf(0.25)))
        || ratios.into_iter().any(is_reached)
}

/// Whether a number is a few times a size, a product of two, or a root of one, or a part of that.
fn is_of_sizes(x: f64, sizes: &BTreeSet<i64>) -> bool {
    let is_of = |n: f64| {
        [x / n, x * n].into_iter().any(|ratio| {
            let times = ratio.abs().max(1.0 / ratio.abs());
            times < FEW_TIMES && (times * 2.0 - (times * 2.0).round()).abs() < 1e-6
        })
    };
    sizes.iter().map(|&size| size as f64).any(|n| {
        let is_of_two = |&other: &i64| is_of(n * other as f64);
        is_of(n) || is_of(n.sqrt()) || is_of(n.powf(0.25)) || sizes.iter().any(is_of_two)
    })
}

/// Whether a number is the ratio of a size and one of its neighbours, or the logarithm of a size.
fn is_ratio_or_logarithm(x: f64, sizes: &BTreeSet<i64>) -> bool {
    let x = x.abs();
    sizes.iter().map(|&size| size as f64).any(|n| {
        let is_neighbour =
            |off: f64| (1.0..=2.0).contains(&off.round().abs()) && (off - off.round()).abs() < 1e-3;
        let is_size = |y: f64| (y - n).abs() < 1e-6 * n;
        is_neighbour((x - 1.0) * n)
            || is_neighbour((1.0 - 1.0 / x) * n)
            || [x.exp(), x.exp2(), 10f64.powf(x)].into_iter().any(is_size)
    })
}

/// Whether something is summed, or put in order, that depends on no input.
fn sums_constants(graph: &Graph, ops: &Ops) -> bool {
    let constant = constants(graph, ops);
    graph.ids().filter(|id| constant[id.index()] && !graph.inputs(*id).is_empty()).any(|id| {
        !ops.call(graph, id).is_some_and(|info| {
            info.kind.takes_corresponding()
                || matches!(info.kind, Kind::View(_) | Kind::Move(_) | Kind::GetItem | Kind::Fill(_))
        })
    })
}
