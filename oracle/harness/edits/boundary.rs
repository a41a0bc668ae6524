//! Wrong edits of what goes in and comes out: both are bound by position.

use super::Places;
use super::reading::{Part, Reading};
use crate::graph::{Editor, NodeId, Op, Value};
use crate::ops::{Kind, Move};
use std::ops::Range;

/// Two outputs of the program trade places. Of a forward graph only those that are the program's.
pub(super) fn outputs(reading: &Reading) -> Places {
    let count = reading.outputs().len();
    match reading.part {
        Part::Forward { outputs } => trade(reading, 0..outputs.min(count)),
        _ => trade(reading, 0..count),
    }
}

/// Two saved values trade places, while backward takes them in their old order.
pub(super) fn saved(reading: &Reading) -> Places {
    let count = reading.outputs().len();
    match reading.part {
        Part::Forward { outputs } => trade(reading, outputs.min(count)..count),
        _ => Places::default(),
    }
}

fn trade(reading: &Reading, range: Range<usize>) -> Places {
    let graph = reading.graph;
    let (mut places, outputs) = (Places::default(), reading.outputs());
    let Some(output) = graph.output() else { return places };
    let tensor = |index: usize| match outputs[index] {
        Value::Node(node) => Some((node, reading.record(node)?)),
        _ => None,
    };
    for first in range.clone() {
        let Some((a, record)) = tensor(first) else { continue };
        let mut same = (first + 1..range.end).filter_map(|second| {
            tensor(second).filter(|(b, other)| *b != a && *other == record).map(|(b, _)| (second, b))
        });
        let Some((second, b)) = same.next() else { continue };
        if !reading.sources.differ(a, b) {
            places.left_out += 1;
            continue;
        }
        let what =
            format!("outputs {first} and {second}, {} and {}, trade places", graph.name(a), graph.name(b));
        places.add(output, what, move |editor| exchange_outputs(editor, output, first, second));
    }
    places
}

fn exchange_outputs(editor: &mut Editor, output: NodeId, first: usize, second: usize) {
    let mut args = editor.graph().args(output).to_vec();
    if let [Value::List(span)] = args[..] {
        let mut values = editor.graph().values(span).to_vec();
        if first < values.len() && second < values.len() {
            values.swap(first, second);
        }
        args = vec![editor.graph_mut().list(&values)];
    } else if first < args.len() && second < args.len() {
        args.swap(first, second);
    }
    editor.set_args(output, &args);
}

/// Two inputs trade places in the list: certain where some output depends on one of them and not on the other.
pub(super) fn inputs(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    let inputs: Vec<NodeId> = graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder).collect();
    let returned: Vec<NodeId> = reading
        .outputs()
        .into_iter()
        .filter_map(|value| match value {
            Value::Node(node) => Some(node),
            _ => None,
        })
        .collect();
    // Inputs that some output certainly depends on while it cannot depend on the other.
    let told_apart = |a: NodeId, b: NodeId| {
        let (Some(of_a), Some(of_b)) =
            (reading.own.certain(a).ones().next(), reading.own.certain(b).ones().next())
        else {
            return false;
        };
        of_a != of_b
            && returned.iter().any(|&output| {
                let (certain, possible) = reading.own.of(output);
                certain.contains(of_a) && !possible.contains(of_b)
                    || certain.contains(of_b) && !possible.contains(of_a)
            })
    };
    for (index, &a) in inputs.iter().enumerate() {
        let Some(record) = reading.record(a) else { continue };
        let rest = inputs[index + 1..].iter().copied();
        let mut same_record = rest.filter(|&b| reading.record(b) == Some(record)).peekable();
        if same_record.peek().is_none() {
            continue;
        }
        // A bucket hides which of its members an output depends on; then the graph before the pass says it.
        let Some(b) =
            same_record.take(8).find(|&b| told_apart(a, b) || before_distinguishes(reading, &returned, a, b))
        else {
            places.left_out += 1;
            continue;
        };
        let what = format!("inputs {} and {} trade places", graph.name(a), graph.name(b));
        places.add(a, what, move |editor| {
            let (after_a, after_b) = (editor.next(a), editor.next(b));
            match after_a == Some(b) {
                true => editor.move_before(Some(a), b),
                false => {
                    editor.move_before(after_a, b);
                    editor.move_before(after_b, a);
                }
            }
        });
    }
    places
}

fn before_distinguishes(reading: &Reading, outputs: &[NodeId], a: NodeId, b: NodeId) -> bool {
    let single = |id: NodeId| reading.sources.certain(id).ones().next();
    // Saved values depend on several inputs of the program: those are told apart by backward's own inputs only.
    let is_input = |id: NodeId| reading.sources.certain(id).count_ones(..) == 1;
    let (Some(of_a), Some(of_b)) = (single(a), single(b)) else { return false };
    is_input(a)
        && is_input(b)
        && reading.part != Part::Backward
        && outputs.iter().any(|&output| {
            let (certain, possible) = reading.sources.of(output);
            certain.contains(of_a) && !possible.contains(of_b)
                || certain.contains(of_b) && !possible.contains(of_a)
        })
}

/// An output that was a copy of an input is the input: a write of the caller to one is seen in the other.
pub(super) fn aliased(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    let Some(output) = graph.output() else { return places };
    for value in reading.outputs() {
        let Value::Node(copy) = value else { continue };
        let is_copy = reading.call(copy).is_some_and(|info| info.kind == Kind::Move(Move::Clone));
        let [of] = graph.inputs(copy)[..] else { continue };
        let base = reading.storages.storage_of(of).map(|storage| reading.storages.storage(storage));
        if !is_copy || reading.record(of).is_none() || reading.record(of) != reading.record(copy) {
            continue;
        }
        if !base.is_some_and(|base| base.external) {
            places.left_out += 1;
            continue;
        }
        let what = format!("output {} is {} itself", graph.name(copy), graph.name(of));
        places.add(output, what, move |editor| editor.replace_input(output, copy, of));
    }
    places
}
