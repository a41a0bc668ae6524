//! Mutants that spoil a graph that was right.

use crate::analysis::{Collectives, GroupName};
use crate::graph::{Editor, Graph, NodeId, Op, Value};
use crate::ops::{Kind, Ops};

/// Collectives and waits that nobody uses go, and what only they used.
pub(super) fn without_dead_collectives(graph: &Graph) -> Graph {
    let ops = Ops::of(graph);
    let mut editor = Editor::new(graph);
    for id in graph.ids().rev() {
        let communicates =
            ops.call(graph, id).is_some_and(|info| matches!(info.kind, Kind::Collective(_) | Kind::Wait));
        if communicates && editor.users(id).is_empty() {
            editor.erase(id);
        }
    }
    editor.finish()
}

/// Users of waits on every group but the first one take the collective itself.
pub(super) fn without_waits_of_other_groups(graph: &Graph) -> Graph {
    let ops = Ops::of(graph);
    let collectives = Collectives::new(graph, &ops);
    let Some(first) = collectives.calls.first().map(|call| call.group) else { return graph.clone() };
    let mut editor = Editor::new(graph);
    for call in collectives.calls.iter().filter(|call| call.group != first) {
        let waits: Vec<NodeId> = editor
            .users(call.node)
            .iter()
            .copied()
            .filter(|&user| ops.call(graph, user).is_some_and(|info| info.kind == Kind::Wait))
            .collect();
        for wait in waits {
            editor.replace_uses(wait, call.node);
            editor.erase(wait);
        }
    }
    editor.finish()
}

/// Group arguments name the first group in use that has as many ranks.
pub(super) fn on_the_first_group(graph: &Graph) -> Graph {
    let ops = Ops::of(graph);
    let collectives = Collectives::new(graph, &ops);
    let mut names: Vec<&str> = Vec::new();
    for call in &collectives.calls {
        if let GroupName::Text(name) = call.group
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    let size = |name: &str| graph.world.group(name).map(|group| group.size);
    let first = |name: &str| names.iter().copied().find(|other| size(other) == size(name));
    let mut editor = Editor::new(graph);
    for id in graph.ids().filter(|&id| graph.node(id).op == Op::Call) {
        let named = |value: &Value| match *value {
            Value::Str(text) if names.contains(&graph.text(text)) => first(graph.text(text)),
            _ => None,
        };
        let mut args = graph.args(id).to_vec();
        let mut changed = false;
        for arg in &mut args {
            if let Some(name) = named(arg) {
                let name = Value::Str(editor.graph_mut().intern(name));
                changed |= *arg != name;
                *arg = name;
            }
        }
        if changed {
            editor.set_args(id, &args);
        }
    }
    editor.finish()
}
