//! Wrong edits of order and of writes.

use super::Places;
use super::reading::Reading;
use super::sources::{Made, made};
use crate::analysis::conflicts::conflicts;
use crate::analysis::origin::Hazard;
use crate::analysis::storages::Access;
use crate::graph::{NodeId, Op};
use crate::ops::{Kind, Move};

/// Of two accesses of the same bytes, one of them a write, the later one runs first. Values still pass in order.
pub(super) fn exchanged(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for conflict in conflicts(&reading.storages) {
        let (first, second) = (conflict.before, conflict.after);
        let calls = [first, second].iter().all(|&id| graph.node(id).op == Op::Call);
        let can_move = graph.inputs(second).iter().all(|&input| input < first)
            && !reading.edges.ordered_before(second).iter().any(|&before| before >= first);
        if !calls || !conflict.certain || first >= second || !can_move {
            continue;
        }
        let external = reading.storages.storage(conflict.storage).external;
        let seen = match conflict.hazard {
            Hazard::ReadAfterWrite => reading.is_live(second) && says_something(reading, first),
            // A write into memory that is still being sent, or that somebody still reads.
            Hazard::WriteAfterRead => {
                let in_turn = conflict.landed && is_on_its_group(reading, first, second);
                (conflict.landed || is_seen(reading, first)) && !in_turn && says_something(reading, second)
            }
            Hazard::WriteAfterWrite => {
                external && says_something(reading, first) && says_something(reading, second)
            }
        };
        // Where they share some bytes only, what is seen may be among the others.
        let part = |id: NodeId| {
            let mut accesses = reading.storages.accesses_by(id).iter();
            accesses.find(|access| access.part.storage == conflict.storage).map(|access| access.part.bytes)
        };
        if !seen || part(first).is_none() || part(first) != part(second) {
            places.left_out += 1;
            continue;
        }
        let what = format!("{} runs before {}", graph.name(second), graph.name(first));
        places.add(second, what, move |editor| editor.move_before(Some(first), second));
    }
    places
}

/// Whether a launch is on the group that a wait waits for: a group does one thing after the other.
fn is_on_its_group(reading: &Reading, wait: NodeId, launch: NodeId) -> bool {
    let calls = &reading.collectives.calls;
    let waited =
        reading.graph.inputs(wait).into_iter().find_map(|value| reading.collectives.launch_of_value(value));
    let own = reading.collectives.launch_at(launch);
    waited.zip(own).is_some_and(|(waited, own)| calls[waited].group == calls[own].group)
}

/// Whether what a call reads is seen: it does more than wait for somebody's reading, and if it joins tensors, all of
/// them are.
fn is_seen(reading: &Reading, id: NodeId) -> bool {
    let joins = matches!(made(reading.graph, &reading.ops, id), Made::Joined(_));
    let waits = reading.call(id).is_some_and(|info| info.kind == Kind::Wait);
    let members_are = || reading.graph.inputs(id).iter().all(|&member| reading.is_live(member));
    reading.is_live(id) && !waits && (!joins || members_are())
}

/// A collective is launched before its input is written: it takes the memory, not what the write hands on.
pub(super) fn early(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for call in &reading.collectives.calls {
        let launch = call.node;
        for &write in &call.inputs {
            let writes = reading.call(write).is_some_and(|info| info.mutated().eq([0]));
            let Some(crate::graph::Value::Node(memory)) = graph.arg(write, 0).filter(|_| writes) else {
                continue;
            };
            let others = graph.inputs(launch).into_iter().filter(|&input| input != write);
            let can_move = others.into_iter().all(|input| input < write)
                && !reading.edges.ordered_before(launch).iter().any(|&before| before >= write);
            if !can_move || !reading.is_live(launch) || !says_something(reading, write) {
                places.left_out += 1;
                continue;
            }
            let what =
                format!("{} sends {} before {}", graph.name(launch), graph.name(memory), graph.name(write));
            places.add(launch, what, move |editor| {
                editor.replace_input(launch, write, memory);
                editor.move_before(Some(write), launch);
            });
        }
    }
    places
}

/// Whether a node that writes, writes what depends on inputs; a wait hands over what a collective brings.
fn says_something(reading: &Reading, id: NodeId) -> bool {
    match super::sources::made(reading.graph, &reading.ops, id) {
        Made::Unknown => false,
        of => of.operands().iter().any(|&operand| match reading.is_settled(operand) {
            true => !reading.sources.certain(operand).is_clear(),
            // What is in memory that others write too is known where the pass made it.
            false => reading.twins[id.index()].is_none(),
        }),
    }
}

/// Writes to memory of the caller after which nobody writes the same storage, with the argument that they write to.
fn last_writes<'r>(reading: &'r Reading) -> impl Iterator<Item = (NodeId, NodeId)> + 'r {
    reading.calls().filter_map(|(id, info)| {
        let index = info.mutated().next().filter(|_| info.mutated().count() == 1)?;
        let Some(crate::graph::Value::Node(target)) = reading.graph.arg(id, index) else { return None };
        let writes = |access: &&Access| access.touch.writes() && access.part.certain;
        let access = reading.storages.accesses_by(id).iter().find(writes)?;
        let storage = access.part.storage;
        let last = reading.storages.accesses_of(storage).filter(writes).all(|other| other.node <= id);
        // Nothing is written to an empty tensor.
        let is_empty = reading.record(target).is_none();
        (reading.storages.storage(storage).external && last && index == 0 && !is_empty)
            .then_some((id, target))
    })
}

/// A write to an input is gone.
pub(super) fn dropped(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, target) in last_writes(reading) {
        // What is written is not what was there.
        let other = super::sources::made(graph, &reading.ops, id).operands().iter().any(|&operand| {
            operand != target && reading.is_settled(operand) && reading.sources.differ(operand, target)
        });
        let adds = reading.call(id).is_some_and(|info| matches!(info.kind, Kind::Binary(_)));
        if !other && !adds {
            places.left_out += 1;
            continue;
        }
        places.add(id, format!("{} is gone", graph.name(id)), move |editor| {
            editor.replace_uses(id, target);
            editor.erase(id);
        });
    }
    places
}

/// A write to an input is made twice: an effect happens once. Copies are made twice too, although the second changes
/// nothing: whoever counts writes (autograd's versions, a hook) sees it.
pub(super) fn doubled(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, _) in last_writes(reading) {
        let known = reading
            .call(id)
            .is_some_and(|info| matches!(info.kind, Kind::Binary(_) | Kind::Move(Move::Copy)));
        if !known {
            places.left_out += 1;
            continue;
        }
        places.add(id, format!("{} is made twice", graph.name(id)), move |editor| {
            let anchor = editor.next(id);
            super::insert::insert_copy_at(editor, id, anchor);
        });
    }
    places
}

/// An ordering edge is gone that neither values nor other ordering edges imply.
pub(super) fn ordering(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (index, edge) in graph.ordering.iter().enumerate() {
        let (before, after) = (edge.before, edge.after);
        let twice = graph.ordering.iter().filter(|other| *other == edge).count() > 1;
        if twice || is_implied(reading, before, after) {
            places.left_out += 1;
            continue;
        }
        let what = format!("{} need not follow {}", graph.name(after), graph.name(before));
        let change = move |graph: &crate::graph::Graph| {
            let mut graph = graph.clone();
            if index < graph.ordering.len() {
                graph.ordering.remove(index);
            }
            graph
        };
        places.found.push(super::Place { node: after, what, change: Box::new(change) });
    }
    places
}

/// Whether one node comes before another through anything but the ordering edge between them.
fn is_implied(reading: &Reading, before: NodeId, after: NodeId) -> bool {
    let mut seen = vec![false; reading.graph.len()];
    let mut stack = vec![before];
    while let Some(id) = stack.pop() {
        for next in reading.edges.successors(id) {
            let is_edge = id == before && next == after && !reading.edges.users(id).contains(&next);
            if is_edge || next > after || std::mem::replace(&mut seen[next.index()], true) {
                continue;
            }
            if next == after {
                return true;
            }
            stack.push(next);
        }
    }
    false
}
