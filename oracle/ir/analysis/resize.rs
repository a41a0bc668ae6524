//! Smaller sizes for a graph, so that it can be executed: consistent, or not at all.
//!
//! # The idea
//!
//! A size of a real model means something: 4096 is the hidden width wherever it stands. So sizes are changed as a
//! *map* from old sizes to new ones, applied to the shapes of inputs and to the size arguments of operators. Results
//! are recomputed by the shape rules; where a rule gives a size that the map does not (a gather over fewer ranks, a
//! concatenation), the map learns it, and the attempt starts again. Where two places want different new sizes for one
//! old size, or an operator refuses, the attempt is given up.

use super::propagate::{Refusal, propagate, propagated};
use crate::graph::{Dim, Graph, Group, NodeId, Op, Out, Tensor, Value, World, contiguous_strides};
use crate::ops::{Bound, Kind, Ops};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Attempts to learn a consistent map.
const ATTEMPTS: usize = 24;

/// Sizes below this are left alone: they are few, and ranks, heads or pieces are counted with them.
const SMALL: i64 = 5;

/// What a map may shrink a size to, best first.
const DIVISORS: [i64; 8] = [4096, 1024, 256, 64, 16, 8, 4, 2];

/// New sizes by old ones. Sizes that are not in it stay.
type Sizes = BTreeMap<i64, i64>;

/// The graph with groups of at most `ranks` ranks and its sizes divided as far as they can be. `None` where groups are
/// larger and cannot be made smaller consistently, or where recorded results do not follow from the rules.
pub fn shrink(graph: &Graph, ranks: u32) -> Option<Graph> {
    let mut base = graph.clone();
    if base.world.groups.iter().any(|group| group.size > ranks) || !base.world.is_explicit() {
        shrink_groups(&mut base, ranks);
    }
    let (mut best, mut map) = resized(graph, &base, &Sizes::new())?;
    for size in distinct(graph) {
        if map.contains_key(&size) || size < SMALL {
            continue;
        }
        for divisor in DIVISORS.into_iter().filter(|divisor| size % divisor == 0 && size / divisor >= 2) {
            let mut wanted = map.clone();
            wanted.insert(size, size / divisor);
            if let Some((smaller, learned)) = resized(graph, &base, &wanted) {
                (best, map) = (smaller, learned);
                break;
            }
        }
    }
    Some(best)
}

/// The graph with one size replaced wherever it stands, and what follows from that.
pub fn with_sizes(graph: &Graph, from: i64, to: i64) -> Option<Graph> {
    resized(graph, graph, &Sizes::from([(from, to)])).map(|(graph, _)| graph)
}

/// The graph with groups of at most `ranks` ranks, and what follows from that.
pub fn with_groups(graph: &Graph, ranks: u32) -> Option<Graph> {
    let mut base = graph.clone();
    shrink_groups(&mut base, ranks);
    propagated(base.clone()).or_else(|| resized(graph, &base, &Sizes::new()).map(|(graph, _)| graph))
}

/// All sizes of inputs, the largest first.
fn distinct(graph: &Graph) -> Vec<i64> {
    let inputs = graph.ids().filter(|&id| graph.node(id).op != Op::Call).filter_map(|id| graph.tensor_of(id));
    let mut sizes: Vec<i64> =
        inputs.flat_map(|tensor| graph.dims(tensor.shape)).filter_map(|dim| dim.known()).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup();
    sizes
}

/// `base` with its sizes as `wanted` says and what follows from that; `original` has the old sizes.
fn resized(original: &Graph, base: &Graph, wanted: &Sizes) -> Option<(Graph, Sizes)> {
    let mut map = wanted.clone();
    for _ in 0..ATTEMPTS {
        let mut graph = base.clone();
        apply(&mut graph, &map)?;
        let mut guess = |sizes: &[i64]| Some(sizes.iter().map(|n| *map.get(n).unwrap_or(n)).collect());
        match propagate(&mut graph, &mut guess) {
            Ok(()) => match surprise(original, &graph, &map) {
                None => return Some((graph, map)),
                Some((old, new)) => learn(&mut map, old, new)?,
            },
            Err(Refusal::Refused(node, _)) => {
                // The refusal may come of a size that the map does not know yet.
                match surprise_before(original, &graph, &map, node) {
                    Some((old, new)) => learn(&mut map, old, new)?,
                    None => factor(&graph, original, &mut map, node)?,
                }
            }
            Err(Refusal::Undecided(_)) => return None,
        }
    }
    None
}

/// Adds to the map; `None` where it says something else.
fn learn(map: &mut Sizes, old: i64, new: i64) -> Option<()> {
    match map.insert(old, new) {
        Some(before) if before != new => None,
        _ => Some(()),
    }
}

fn surprise(original: &Graph, graph: &Graph, map: &Sizes) -> Option<(i64, i64)> {
    surprise_before(original, graph, map, NodeId(graph.len() as u32))
}

/// The first result, of nodes before `end`, whose size is not what the map says: old and new size.
fn surprise_before(original: &Graph, graph: &Graph, map: &Sizes, end: NodeId) -> Option<(i64, i64)> {
    graph.ids().take(end.index()).find_map(|id| {
        let (old, new) = (original.tensor_of(id)?, graph.tensor_of(id)?);
        let (old, new) = (original.sizes(old.shape)?, graph.sizes(new.shape)?);
        old.into_iter().zip(new).find(|&(old, new)| *map.get(&old).unwrap_or(&old) != new)
    })
}

/// A view was refused because its sizes no longer multiply up: makes one of them smaller.
fn factor(graph: &Graph, original: &Graph, map: &mut Sizes, node: NodeId) -> Option<()> {
    let ops = Ops::of(graph);
    let info = ops.call(graph, node)?;
    if !matches!(info.kind, Kind::View(_)) {
        return None;
    }
    let input = *graph.inputs(node).first()?;
    let have = graph.numel(graph.tensor_of(input)?)?;
    let old = original.sizes(original.tensor_of(node)?.shape)?;
    let now = |n: i64| *map.get(&n).unwrap_or(&n);
    let want = old.iter().try_fold(1i64, |product, &n| product.checked_mul(now(n)))?;
    // A size becomes smaller by a whole ratio of at least 2. An empty tensor, which wants 0, has no such ratio.
    if have <= 0 || want <= have || want % have != 0 {
        return None;
    }
    let ratio = want / have;
    let size = old.into_iter().filter(|n| !map.contains_key(n) && n % ratio == 0).max()?;
    learn(map, size, size / ratio)
}

/// Changes the shapes of inputs and the size arguments of calls.
fn apply(graph: &mut Graph, map: &Sizes) -> Option<()> {
    if map.is_empty() {
        return Some(());
    }
    let ops = Ops::of(graph);
    let size = |n: i64| map.get(&n).copied();
    for id in graph.ids() {
        let node = *graph.node(id);
        match node.op {
            Op::Call => arguments(graph, &ops, id, &size),
            Op::Output => {}
            Op::Placeholder | Op::GetAttr => {
                let Out::Tensor(tensor) = node.out else { continue };
                let old = *graph.tensor(tensor);
                let Some(shape) = graph.sizes(old.shape) else { continue };
                if !shape.iter().any(|&n| size(n).is_some()) {
                    continue;
                }
                let new: Vec<i64> = shape.iter().map(|&n| size(n).unwrap_or(n)).collect();
                let stride = strides(&shape, &graph.sizes(old.stride)?, &new);
                let dims: Vec<Dim> = new.iter().map(|&n| Dim::Static(n)).collect();
                let (shape, stride) = (graph.intern_dims(&dims), graph.intern_sizes(&stride));
                let new = Tensor { shape, stride, offset: 0, storage: None, storage_bytes: None, ..old };
                *graph.tensor_mut(tensor) = new;
            }
        }
    }
    Some(())
}

/// Strides of the new shape in the order of the old ones.
pub(super) fn strides(old: &[i64], strides: &[i64], new: &[i64]) -> Vec<i64> {
    if strides == contiguous_strides(old) {
        return contiguous_strides(new);
    }
    let mut order: Vec<usize> = (0..new.len()).collect();
    order.sort_by_key(|&d| (strides[d], std::cmp::Reverse(d)));
    let mut result = vec![0; new.len()];
    let mut next = 1i64;
    for d in order.into_iter().filter(|&d| strides[d] != 0) {
        result[d] = next;
        next = next.saturating_mul(new[d].max(1));
    }
    result
}

/// Changes the arguments that are sizes by their type in the schema, and the ends of ranges.
fn arguments(graph: &mut Graph, ops: &Ops, id: NodeId, size: &impl Fn(i64) -> Option<i64>) {
    let Some(info) = ops.call(graph, id) else { return };
    let Some(schema) = info.schema.as_ref() else { return };
    if Bound::new(graph, id, schema).is_err() {
        return;
    }
    let is_size = |index: usize| {
        let param = &schema.params[index];
        param.ty.starts_with("SymInt") || (info.kind == Kind::Arange && param.name == "end")
    };
    let mut args = graph.args(id).to_vec();
    for (index, value) in args.iter_mut().enumerate() {
        if index < schema.params.len() && is_size(index) {
            *value = changed(graph, *value, size);
        }
    }
    let args = graph.push_values(&args);
    graph.node_mut(id).args = args;
    let pairs: Vec<(String, Value)> = graph.kwargs(id).map(|(key, value)| (key.to_string(), value)).collect();
    if pairs.is_empty() {
        return;
    }
    let mut kwargs = Vec::with_capacity(2 * pairs.len());
    for (key, value) in pairs {
        let value = match schema.param(&key) {
            Some(index) if is_size(index) => changed(graph, value, size),
            _ => value,
        };
        kwargs.extend([Value::Str(graph.intern(&key)), value]);
    }
    let kwargs = graph.push_values(&kwargs);
    graph.node_mut(id).kwargs = kwargs;
}

fn changed(graph: &mut Graph, value: Value, size: &impl Fn(i64) -> Option<i64>) -> Value {
    match value {
        Value::Int(n) => Value::Int(size(n).unwrap_or(n)),
        Value::List(span) => {
            let values: Vec<Value> =
                graph.values(span).to_vec().into_iter().map(|value| changed(graph, value, size)).collect();
            graph.list(&values)
        }
        other => other,
    }
}

/// Makes every group of `graph` at most `size` ranks large, in a world no larger than that takes, and the sizes that
/// its nodes state with it. A group that was as large as all others multiplied stays so. Results are not recomputed.
fn shrink_groups(graph: &mut Graph, size: u32) {
    let old = &graph.world.groups;
    let largest = (0..old.len()).max_by_key(|&i| (old[i].size, std::cmp::Reverse(i)));
    let whole =
        largest.filter(|&whole| old.len() > 1 && product_without(old, whole) == Some(old[whole].size));
    let mut groups: Vec<Group> = old
        .iter()
        .map(|group| Group {
            name: group.name.clone(),
            size: group.size.min(size),
            recorded_rank: None,
            instances: Vec::new(),
        })
        .collect();
    if let Some(whole) = whole {
        groups[whole].size = product_without(&groups, whole).unwrap_or(size);
    }
    let world = World { ranks: None, groups };
    let world = world.assume_mesh().unwrap_or(world);
    state_groups(graph, &world);
    graph.world = world;
}

/// States the sizes of the groups of a world in the calls of a graph and of its bodies.
fn state_groups(graph: &mut Graph, world: &World) {
    for (_, body) in &mut graph.subgraphs {
        state_groups(Arc::make_mut(body), world);
    }
    let ops = Ops::of(graph);
    for id in graph.ids() {
        let Some(schema) = ops.call(graph, id).and_then(|info| info.schema.as_ref()) else { continue };
        let (Some(at), Some(of)) = (schema.param("group_size"), schema.param("group_name")) else { continue };
        let mut args = graph.args(id).to_vec();
        let Some(&Value::Str(name)) = args.get(of) else { continue };
        let new = world.group(graph.text(name)).map(|group| i64::from(group.size));
        if let (Some(new), Some(slot)) = (new, args.get_mut(at)) {
            *slot = Value::Int(new);
            let args = graph.push_values(&args);
            graph.node_mut(id).args = args;
        }
    }
}

/// The sizes of all groups but one, multiplied.
fn product_without(groups: &[Group], index: usize) -> Option<u32> {
    let mut others = groups.iter().enumerate().filter(|&(i, _)| i != index);
    others.try_fold(1u32, |product, (_, group)| product.checked_mul(group.size))
}
