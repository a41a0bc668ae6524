//! Wrong edits of communication: waits, groups, reductions, launches.

use super::Places;
use super::reading::Reading;
use crate::graph::{Graph, NodeId, Op, Value};
use crate::ops::{Collective, Kind};

/// Waits with the value that they wait for, and the live readers.
fn waits<'r>(reading: &'r Reading) -> impl Iterator<Item = (NodeId, NodeId, Vec<NodeId>)> + 'r {
    reading.calls().filter(|(_, info)| info.kind == Kind::Wait).filter_map(|(wait, _)| {
        let [value] = reading.graph.inputs(wait)[..] else { return None };
        let launch = reading.collectives.launch_of_value(value)?;
        // Where another wait of the same launch is left, nothing is lost.
        let of_value = |&&other: &&NodeId| reading.graph.inputs(other).contains(&value);
        if reading.collectives.waits[launch].iter().filter(of_value).count() > 1 {
            return None;
        }
        let readers = reading.edges.users(wait).iter().copied();
        let live = |&reader: &NodeId| reading.graph.node(reader).op == Op::Output || reading.is_live(reader);
        let readers: Vec<NodeId> = readers.filter(live).collect();
        // A second wait, of what is there already, would be the only one.
        let is_wait = |&reader: &NodeId| reading.call(reader).is_some_and(|info| info.kind == Kind::Wait);
        (!readers.is_empty() && !readers.iter().any(is_wait)).then_some((wait, value, readers))
    })
}

/// A wait is gone; its readers take the value that is still under way.
pub(super) fn wait_dropped(reading: &Reading) -> Places {
    let mut places = Places::default();
    for (wait, value, _) in waits(reading) {
        let what =
            format!("{} is gone: its readers take {}", reading.graph.name(wait), reading.graph.name(value));
        places.add(wait, what, move |editor| {
            editor.replace_uses(wait, value);
            editor.erase(wait);
        });
    }
    places
}

/// One reader takes the value before it has been waited for.
pub(super) fn wait_bypassed(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (wait, value, readers) in waits(reading) {
        for reader in readers {
            let what = format!("{} takes {} for {}", graph.name(reader), graph.name(value), graph.name(wait));
            places.add(reader, what, move |editor| editor.replace_input(reader, wait, value));
        }
    }
    places
}

/// The positional argument of a launch that a parameter names.
fn parameter(reading: &Reading, launch: NodeId, name: &str) -> Option<usize> {
    let index = reading.call(launch)?.schema.as_ref()?.param(name)?;
    (index < reading.graph.args(launch).len()).then_some(index)
}

/// A launch names another group, of other ranks.
pub(super) fn group(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for call in &reading.collectives.calls {
        let launch = call.node;
        let Some(index) = parameter(reading, launch, "group_name").filter(|_| is_seen(reading, launch))
        else {
            continue;
        };
        let Some(Value::Str(name)) = graph.arg(launch, index) else { continue };
        let Some(own) = graph.world.groups.iter().find(|group| group.name == graph.text(name)) else {
            continue;
        };
        let Some(other) = graph.world.groups.iter().find(|group| is_other(group, own)) else {
            places.left_out += usize::from(graph.world.groups.len() > 1);
            continue;
        };
        if may_be_equal(reading, launch) {
            places.left_out += 1;
            continue;
        }
        let name = other.name.clone();
        let what = format!("{} runs on group {name} for {}", graph.name(launch), own.name);
        places.add(launch, what, move |editor| {
            let value = Value::Str(editor.graph_mut().intern(&name));
            super::operands::set_argument(editor, launch, index, value);
        });
    }
    places
}

/// Whether what a launch brings is seen from outside: what it writes in place nobody writes over.
fn is_seen(reading: &Reading, launch: NodeId) -> bool {
    let storages = &reading.storages;
    let mut written = storages.accesses_by(launch).iter().filter(|access| access.touch.writes());
    reading.is_live(launch) && written.all(|access| storages.storage(access.part.storage).versions < 2)
}

/// Whether the ranks may all send the same: nothing that is an input of its own on each of them.
pub(super) fn may_be_equal(reading: &Reading, launch: NodeId) -> bool {
    let kind = reading.call(launch).and_then(|info| info.collective());
    let Some(index) = reading.collectives.launch_at(launch) else { return true };
    let inputs = &reading.collectives.calls[index].inputs;
    kind == Some(Collective::Broadcast) || inputs.iter().all(|&sent| reading.is_alike(sent))
}

/// Whether two groups certainly have other ranks: other sizes, or lists of ranks that differ as sets.
fn is_other(a: &crate::graph::Group, b: &crate::graph::Group) -> bool {
    let sets = |group: &crate::graph::Group| {
        let mut sets = group.instances.clone();
        sets.iter_mut().for_each(|ranks| ranks.sort_unstable());
        sets.sort_unstable();
        sets
    };
    a.size != b.size || (!a.instances.is_empty() && !b.instances.is_empty() && sets(a) != sets(b))
}

/// A launch reduces by another operation.
pub(super) fn reduction(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for call in &reading.collectives.calls {
        let (launch, Some(old)) = (call.node, call.reduce_op) else { continue };
        let Some(index) = parameter(reading, launch, "reduce_op").filter(|_| is_seen(reading, launch)) else {
            continue;
        };
        let alone = group_size(graph, call.group_size, launch).is_none_or(|size| size < 2);
        let floats = graph
            .tensor_at(launch, 0)
            .is_some_and(|tensor| tensor.dtype.class() == crate::graph::DtypeClass::Float);
        // Of a constant, and of zeros above all, another reduction may be the same.
        let varies = call.inputs.iter().any(|&input| reading.sources.may_vary(input));
        if alone || !floats || !varies {
            places.left_out += 1;
            continue;
        }
        let new = if old == "sum" { "avg" } else { "sum" };
        places.add(launch, format!("{} reduces by {new} for {old}", graph.name(launch)), move |editor| {
            let value = Value::Str(editor.graph_mut().intern(new));
            super::operands::set_argument(editor, launch, index, value);
        });
    }
    places
}

/// The ranks that take part, where known.
fn group_size(graph: &Graph, stated: Option<i64>, launch: NodeId) -> Option<i64> {
    let named = graph.args(launch).iter().find_map(|value| match value {
        Value::Str(text) => graph.world.groups.iter().find(|group| group.name == graph.text(*text)),
        _ => None,
    });
    stated.or(named.map(|group| i64::from(group.size)))
}

/// On one rank only, two launches on one group, one right after the other, are made in the other order. On all ranks
/// that would be as good.
pub(super) fn out_of_step(reading: &Reading) -> Places {
    let (graph, mut places) = (reading.graph, Places::default());
    let calls = &reading.collectives.calls;
    for (at, first) in calls.iter().enumerate().filter(|_| reading.alone) {
        let Some(second) = calls[at + 1..].iter().find(|call| call.group == first.group) else { continue };
        let (a, b) = (first.node, second.node);
        let alone = group_size(graph, first.group_size, a).is_none_or(|size| size < 2);
        // The same operation on the same record with equal values cannot be told apart.
        let differ = first.kind != second.kind
            || first.inputs.iter().zip(&second.inputs).any(|(&x, &y)| reading.sources.differ(x, y));
        let can_move = graph.inputs(b).iter().all(|&input| input < a)
            && !reading.edges.ordered_before(b).iter().any(|&before| before >= a);
        if alone || !differ || !can_move {
            places.left_out += 1;
            continue;
        }
        let what = format!("{} is launched before {}", graph.name(b), graph.name(a));
        places.add(b, what, move |editor| editor.move_before(Some(a), b));
    }
    places
}

/// A launch is made twice.
pub(super) fn twice(reading: &Reading) -> Places {
    let mut places = Places::default();
    for call in &reading.collectives.calls {
        let launch = call.node;
        let what = format!("{} is launched a second time", reading.graph.name(launch));
        places.add(launch, what, move |editor| {
            let anchor = editor.next(launch);
            super::insert::insert_copy_at(editor, launch, anchor);
        });
    }
    places
}
