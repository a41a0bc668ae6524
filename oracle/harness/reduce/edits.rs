//! The edits: each makes a case smaller or simpler, if it gives a graph at all.
//!
//! A family numbers its edits of a given graph. Asked for edit `n` it answers with the edited graph, with
//! `Some(None)` where that edit does not apply, and with `None` behind its last one.

use crate::generate::{propagated, with_groups, with_sizes};
use crate::graph::{Dim, Editor, Graph, NodeId, Op, Out, Span, Tensor, Value, contiguous_strides};
use crate::judge::bodies::inlined;
use std::sync::Arc;

/// A family of edits.
pub(super) type Family = fn(&Graph, usize) -> Option<Option<Graph>>;

/// The operator that stands for any that need not be what it is.
pub(super) const SIMPLEST: &str = "aten.relu.default";

/// All families, those that remove most first.
pub(super) const FAMILIES: &[Family] = &[
    drop_outputs,
    drop_dead,
    drop_chunks,
    simplify_bodies,
    bypass,
    drop_nodes,
    drop_elements,
    simplify,
    shrink_world,
    shrink_sizes,
    shrink_inputs,
    drop_features,
];

/// Chunks of `len`, `len / 2`, ..., 1 elements over `len` elements: the `n`-th.
fn chunk(len: usize, mut n: usize) -> Option<std::ops::Range<usize>> {
    let mut size = len;
    while size >= 1 {
        let count = len.div_ceil(size);
        if n < count {
            return Some(n * size..((n + 1) * size).min(len));
        }
        n -= count;
        size /= 2;
    }
    None
}

/// Removes elements of the output.
fn drop_outputs(graph: &Graph, n: usize) -> Option<Option<Graph>> {
    let output = graph.output()?;
    let (nested, elements) = match graph.args(output) {
        [Value::List(span)] => (true, graph.values(*span).to_vec()),
        args => (false, args.to_vec()),
    };
    let range = chunk(elements.len(), n)?;
    let kept: Vec<Value> =
        elements.iter().enumerate().filter(|(i, _)| !range.contains(i)).map(|(_, &v)| v).collect();
    let mut editor = Editor::new(graph);
    let args = if nested { vec![editor.graph_mut().list(&kept)] } else { kept };
    editor.set_args(output, &args);
    Some(Some(editor.finish()))
}

/// Removes, all at once, the calls and inputs that nobody uses; then each of them alone.
fn drop_dead(graph: &Graph, n: usize) -> Option<Option<Graph>> {
    let mut editor = Editor::new(graph);
    let mut dead = Vec::new();
    loop {
        let found: Vec<NodeId> = editor
            .list()
            .into_iter()
            .filter(|&id| graph.node(id).op != Op::Output && editor.users(id).is_empty())
            .collect();
        if found.is_empty() {
            break;
        }
        found.iter().for_each(|&id| editor.erase(id));
        dead.extend(found);
    }
    match n {
        0 if dead.len() > 1 => Some(Some(editor.finish())),
        _ => {
            let &id = dead.get(n)?;
            let mut editor = Editor::new(graph);
            if !editor.users(id).is_empty() {
                return Some(None);
            }
            editor.erase(id);
            Some(Some(editor.finish()))
        }
    }
}

/// Removes a stretch of the list with everything that uses it.
fn drop_chunks(graph: &Graph, n: usize) -> Option<Option<Graph>> {
    let len = graph.len();
    // Single nodes have a family of their own.
    let range = chunk(len, n)?;
    if range.len() < 2 {
        return None;
    }
    Some(without(graph, range.map(|i| NodeId(i as u32))))
}

/// Removes one node with everything that uses it.
fn drop_nodes(graph: &Graph, n: usize) -> Option<Option<Graph>> {
    let index = graph.len().checked_sub(n + 1)?;
    Some(without(graph, [NodeId(index as u32)]))
}

/// The graph without some nodes and what uses them. The output stays; its references go.
fn without(graph: &Graph, nodes: impl IntoIterator<Item = NodeId>) -> Option<Graph> {
    let mut editor = Editor::new(graph);
    let mut stack: Vec<NodeId> = nodes.into_iter().filter(|&id| graph.node(id).op != Op::Output).collect();
    let mut gone = vec![false; graph.len()];
    while let Some(id) = stack.pop() {
        if std::mem::replace(&mut gone[id.index()], true) {
            continue;
        }
        stack.extend(editor.users(id).iter().copied().filter(|&u| graph.node(u).op != Op::Output));
    }
    if let Some(output) = graph.output() {
        let kept = |values: &[Value]| -> Vec<Value> {
            values.iter().copied().filter(|v| !matches!(v, Value::Node(node) if gone[node.index()])).collect()
        };
        let args = match graph.args(output) {
            [Value::List(span)] => {
                let elements = kept(graph.values(*span));
                vec![editor.graph_mut().list(&elements)]
            }
            args => kept(args),
        };
        editor.set_args(output, &args);
    }
    for id in graph.ids().filter(|id| gone[id.index()]) {
        editor.erase(id);
    }
    Some(editor.finish())
}

/// Lets the users of a node use one of its operands instead, and removes it.
fn bypass(graph: &Graph, n: usize) -> Option<Option<Graph>> {
    // Edit n is node n / 2 counted from the end, and its first or second operand.
    let index = graph.len().checked_sub(n / 2 + 1)?;
    let id = NodeId(index as u32);
    if graph.node(id).op != Op::Call {
        return Some(None);
    }
    let operands = graph.inputs(id);
    let Some(&operand) = operands.get(n % 2) else { return Some(None) };
    if graph.tensor_of(id).is_none() || graph.tensor_of(operand).is_none() || operand == id {
        return Some(None);
    }
    let mut editor = Editor::new(graph);
    editor.replace_uses(id, operand);
    editor.erase(id);
    Some(propagated(editor.finish()))
}

/// Removes one element of a list argument.
fn drop_elements(graph: &Graph, n: usize) -> Option<Option<Graph>> {
    let mut left = n;
    for id in graph.ids().filter(|&id| graph.node(id).op == Op::Call) {
        let args = graph.args(id);
        for (place, arg) in args.iter().enumerate() {
            let Value::List(span) = arg else { continue };
            let elements = graph.values(*span);
            let nodes = elements.iter().filter(|v| matches!(v, Value::Node(_))).count();
            if nodes < 2 {
                continue;
            }
            if left >= elements.len() {
                left -= elements.len();
                continue;
            }
            let kept: Vec<Value> =
                elements.iter().enumerate().filter(|(i, _)| *i != left).map(|(_, &v)| v).collect();
            let mut editor = Editor::new(graph);
            let mut args = args.to_vec();
            args[place] = editor.graph_mut().list(&kept);
            editor.set_args(id, &args);
            return Some(propagated(editor.finish()));
        }
    }
    None
}

/// Replaces a call by `relu` of its first tensor operand, where the result stays as it is.
fn simplify(graph: &Graph, n: usize) -> Option<Option<Graph>> {
    if n >= graph.len() {
        return None;
    }
    let id = NodeId(n as u32);
    let is_call = graph.node(id).op == Op::Call;
    let is_simple = !is_call || graph.target(id) == SIMPLEST || graph.target(id).contains("c10d");
    let operand = graph.inputs(id).into_iter().find(|&input| graph.tensor_of(input).is_some());
    let (Some(operand), false) = (operand, is_simple) else { return Some(None) };
    let mut changed = graph.clone();
    let target = changed.intern_target(SIMPLEST);
    let args = changed.push_values(&[Value::Node(operand)]);
    let node = changed.node_mut(id);
    (node.target, node.args, node.kwargs) = (target, args, Span::EMPTY);
    Some(propagated(changed))
}

/// Makes one of the distinct sizes of the inputs 1, 2, or half, wherever it stands.
fn shrink_sizes(graph: &Graph, n: usize) -> Option<Option<Graph>> {
    let mut sizes: Vec<i64> = Vec::new();
    for (_, tensor) in inputs(graph) {
        sizes.extend(graph.sizes(tensor.shape).into_iter().flatten());
    }
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup();
    let &from = sizes.get(n / 3)?;
    let to = [1, 2, from / 2][n % 3];
    if to >= from || to < 1 {
        return Some(None);
    }
    Some(with_sizes(graph, from, to))
}

/// Makes one dimension of one input 1, 2, or half, or takes it away.
fn shrink_inputs(graph: &Graph, n: usize) -> Option<Option<Graph>> {
    let mut left = n / 4;
    for (id, tensor) in inputs(graph) {
        let Some(mut sizes) = graph.sizes(tensor.shape) else { continue };
        if left >= sizes.len() {
            left -= sizes.len();
            continue;
        }
        match [None, Some(1), Some(2), Some(sizes[left] / 2)][n % 4] {
            None => {
                sizes.remove(left);
            }
            Some(to) if to >= 1 && to < sizes[left] => sizes[left] = to,
            Some(_) => return Some(None),
        }
        return Some(propagated(with_shape(graph, id, &tensor, &sizes)));
    }
    None
}

/// The graph's inputs with tensors.
fn inputs(graph: &Graph) -> Vec<(NodeId, Tensor)> {
    let tensors = graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder);
    tensors.filter_map(|id| Some((id, *graph.tensor_of(id)?))).collect()
}

/// The graph with another, contiguous shape of an input.
fn with_shape(graph: &Graph, id: NodeId, old: &Tensor, sizes: &[i64]) -> Graph {
    let mut graph = graph.clone();
    let dims: Vec<Dim> = sizes.iter().map(|&n| Dim::Static(n)).collect();
    let (shape, stride) = (graph.intern_dims(&dims), graph.intern_sizes(&contiguous_strides(sizes)));
    let new = Tensor { shape, stride, offset: 0, storage: None, storage_bytes: None, ..*old };
    let new = graph.push_tensor(new);
    graph.node_mut(id).out = Out::Tensor(new);
    graph
}

/// Drops groups that nobody uses; then makes all groups smaller; then keeps only the first instances.
fn shrink_world(graph: &Graph, n: usize) -> Option<Option<Graph>> {
    let world = &graph.world;
    let count = world.groups.len();
    if let Some(group) = world.groups.get(n) {
        let used = graph.strings().find(&group.name).is_some_and(|text| mentions(graph, Value::Str(text)));
        if used {
            return Some(None);
        }
        let mut graph = graph.clone();
        graph.world.groups.remove(n);
        return Some(Some(graph));
    }
    let largest = world.groups.iter().map(|group| group.size).max()?;
    match n - count {
        0 => Some(first_instances(graph)),
        k if (k as u32) < largest => Some(with_groups(graph, k as u32)),
        _ => None,
    }
}

/// Whether some argument is this value.
fn mentions(graph: &Graph, value: Value) -> bool {
    graph.ids().any(|id| graph.args(id).contains(&value) || graph.kwargs(id).any(|(_, other)| other == value))
}

/// The ranks of the first instance of every group, renumbered.
fn first_instances(graph: &Graph) -> Option<Graph> {
    let mut graph = graph.clone();
    let groups = &mut graph.world.groups;
    let mut kept: Vec<u32> =
        groups.iter().filter_map(|group| group.instances.first()).flatten().copied().collect();
    kept.sort_unstable();
    kept.dedup();
    for group in groups {
        group.instances.retain(|ranks| ranks.iter().all(|rank| kept.contains(rank)));
        for rank in group.instances.iter_mut().flatten() {
            *rank = kept.binary_search(rank).ok()? as u32;
        }
        // Every rank is in some instance of every group.
        if group.instances.iter().map(Vec::len).sum::<usize>() != kept.len() {
            return None;
        }
    }
    graph.world.ranks = Some(kept.len() as u32);
    Some(graph)
}

/// Puts the bodies that are run once in the place of their calls; drops those that nobody runs; makes a body simpler that
/// takes and returns what it did.
fn simplify_bodies(graph: &Graph, n: usize) -> Option<Option<Graph>> {
    if graph.subgraphs.is_empty() {
        return None;
    }
    let used = |(attribute, _): &(String, Arc<Graph>)| {
        graph.ids().any(|id| graph.node(id).op == Op::GetAttr && graph.target(id) == attribute)
    };
    match n {
        0 => return Some(inlined(graph)),
        1 => {
            let mut graph = graph.clone();
            let all = graph.subgraphs.len();
            graph.subgraphs.retain(used);
            return Some((graph.subgraphs.len() < all).then_some(graph));
        }
        _ => {}
    }
    let bodies = graph.subgraphs.iter().enumerate().flat_map(|(at, (_, body))| {
        let edits = [bypass as Family, simplify].map(|family| (0..).map_while(move |n| family(body, n)));
        edits.into_iter().flatten().map(move |edited| (at, edited))
    });
    let (at, edited) = bodies.into_iter().nth(n - 2)?;
    Some(edited.map(|body| {
        let mut graph = graph.clone();
        if let Some(place) = graph.subgraphs.bodies_mut().nth(at) {
            *place = Arc::new(without_dead_calls(&body));
        }
        graph
    }))
}

fn without_dead_calls(graph: &Graph) -> Graph {
    let mut editor = Editor::new(graph);
    for id in graph.ids().rev() {
        if graph.node(id).op == Op::Call && editor.users(id).is_empty() {
            editor.erase(id);
        }
    }
    editor.finish()
}

/// Drops what only decorates: ordering edges, clusters, renames, tags, keyword arguments.
fn drop_features(graph: &Graph, n: usize) -> Option<Option<Graph>> {
    let mut graph = graph.clone();
    let edges = graph.ordering.len();
    if n < edges {
        graph.ordering.remove(n);
        return Some(Some(graph));
    }
    match n - edges {
        0 => graph.clusters.clear(),
        1 => graph.renames.clear(),
        2 => {
            for id in graph.ids() {
                let node = graph.node_mut(id);
                (node.tags, node.stack, node.module, node.desc, node.extra) = (None, None, None, None, None);
            }
        }
        k => {
            let id = NodeId((k - 3) as u32);
            if id.index() >= graph.len() {
                return None;
            }
            if graph.node(id).kwargs.is_empty() {
                return Some(None);
            }
            graph.node_mut(id).kwargs = Span::EMPTY;
            return Some(propagated(graph));
        }
    }
    Some(Some(graph))
}
