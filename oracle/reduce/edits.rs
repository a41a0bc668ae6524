//! The edits: each makes a case smaller or simpler, if it gives a graph at all.
//!
//! A family numbers its edits for a given case. Asked for edit `n` it answers with the edited case, with
//! `Some(None)` where that edit does not apply, and with `None` behind its last one.

use super::propagate::{propagate, resize};
use crate::case::Case;
use crate::graph::{Editor, Graph, NodeId, Op, Out, Value};

/// A family of edits.
pub(super) type Family = fn(&Case, usize) -> Option<Option<Case>>;

/// All families, those that remove most first.
pub(super) const FAMILIES: &[Family] =
    &[drop_outputs, drop_dead, drop_chunks, bypass, drop_nodes, drop_elements, simplify, shrink_sizes, shrink_world, drop_features];

fn with(case: &Case, graph: Option<Graph>) -> Option<Option<Case>> {
    Some(graph.map(|graph| Case { graph, ..case.clone() }))
}

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
fn drop_outputs(case: &Case, n: usize) -> Option<Option<Case>> {
    let graph = &case.graph;
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
    with(case, Some(editor.finish()))
}

/// Removes, all at once, the calls and inputs that nobody uses; then each of them alone.
fn drop_dead(case: &Case, n: usize) -> Option<Option<Case>> {
    let graph = &case.graph;
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
        0 if dead.len() > 1 => with(case, Some(editor.finish())),
        _ => {
            let &id = dead.get(n)?;
            let mut editor = Editor::new(graph);
            if !editor.users(id).is_empty() {
                return Some(None);
            }
            editor.erase(id);
            with(case, Some(editor.finish()))
        }
    }
}

/// Removes a stretch of the list with everything that uses it.
fn drop_chunks(case: &Case, n: usize) -> Option<Option<Case>> {
    let len = case.graph.len();
    // Single nodes have a family of their own.
    let range = chunk(len, n)?;
    if range.len() < 2 {
        return None;
    }
    with(case, without(&case.graph, range.map(|i| NodeId(i as u32))))
}

/// Removes one node with everything that uses it.
fn drop_nodes(case: &Case, n: usize) -> Option<Option<Case>> {
    let index = case.graph.len().checked_sub(n + 1)?;
    with(case, without(&case.graph, [NodeId(index as u32)]))
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
        let mut kept = |values: &[Value]| -> Vec<Value> {
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
fn bypass(case: &Case, n: usize) -> Option<Option<Case>> {
    let graph = &case.graph;
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
    with(case, propagate(editor.finish()))
}

/// Removes one element of a list argument.
fn drop_elements(case: &Case, n: usize) -> Option<Option<Case>> {
    let graph = &case.graph;
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
            return with(case, propagate(editor.finish()));
        }
    }
    None
}

/// Replaces a call by `relu` of its first tensor operand, where the result stays as it is.
fn simplify(case: &Case, n: usize) -> Option<Option<Case>> {
    let graph = &case.graph;
    if n >= graph.len() {
        return None;
    }
    let id = NodeId(n as u32);
    const SIMPLEST: &str = "aten.relu.default";
    let is_call = graph.node(id).op == Op::Call;
    let is_simple = !is_call || graph.target(id) == SIMPLEST || graph.target(id).contains("c10d");
    let operand = graph.inputs(id).into_iter().find(|&input| graph.tensor_of(input).is_some());
    let (Some(operand), false) = (operand, is_simple) else { return Some(None) };
    let mut changed = graph.clone();
    let target = changed.intern_target(SIMPLEST);
    let args = changed.push_values(&[Value::Node(operand)]);
    let node = changed.node_mut(id);
    (node.target, node.args, node.kwargs) = (target, args, crate::graph::Span::EMPTY);
    with(case, propagate(changed))
}

/// Makes one of the distinct sizes of the inputs 1, 2, or half.
fn shrink_sizes(case: &Case, n: usize) -> Option<Option<Case>> {
    let graph = &case.graph;
    let mut sizes: Vec<i64> = Vec::new();
    for id in graph.ids().filter(|&id| graph.node(id).op != Op::Call) {
        let Out::Tensor(tensor) = graph.node(id).out else { continue };
        sizes.extend(graph.sizes(graph.tensor(tensor).shape).into_iter().flatten());
    }
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup();
    let &from = sizes.get(n / 3)?;
    let to = [1, 2, from / 2][n % 3];
    if to >= from || to < 1 {
        return Some(None);
    }
    with(case, resize(graph, from, to))
}

/// Drops groups that nobody uses, and ranks outside the first instance of every group.
fn shrink_world(case: &Case, n: usize) -> Option<Option<Case>> {
    let world = &case.graph.world;
    let mut graph = case.graph.clone();
    if n < world.groups.len() {
        let name = world.groups[n].name.clone();
        let text = graph.strings().find(&name);
        let used = text.is_some_and(|text| {
            graph.ids().any(|id| {
                let kwargs: Vec<Value> = graph.kwargs(id).map(|(_, v)| v).collect();
                graph.args(id).iter().chain(&kwargs).any(|v| *v == Value::Str(text))
            })
        });
        if used {
            return Some(None);
        }
        graph.world.groups.remove(n);
        return with(case, Some(graph));
    }
    if n > world.groups.len() || world.groups.is_empty() {
        return None;
    }
    // The ranks of the first instances, renumbered.
    let mut kept: Vec<u32> = world.groups.iter().filter_map(|g| g.instances.first()).flatten().copied().collect();
    kept.sort_unstable();
    kept.dedup();
    let fits = |ranks: &Vec<u32>| ranks.iter().all(|rank| kept.contains(rank));
    for group in &mut graph.world.groups {
        group.instances.retain(fits);
        for rank in group.instances.iter_mut().flatten() {
            *rank = kept.iter().position(|k| k == rank).unwrap_or(0) as u32;
        }
    }
    graph.world.ranks = Some(kept.len() as u32);
    with(case, Some(graph))
}

/// Drops what only decorates: ordering edges, clusters, renames, tags, keyword arguments.
fn drop_features(case: &Case, n: usize) -> Option<Option<Case>> {
    let mut graph = case.graph.clone();
    let edges = graph.ordering.len();
    if n < edges {
        graph.ordering.remove(n);
        return with(case, Some(graph));
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
            graph.node_mut(id).kwargs = crate::graph::Span::EMPTY;
            return with(case, propagate(graph));
        }
    }
    with(case, Some(graph))
}
