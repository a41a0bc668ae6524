//! What the users of removed waits read instead.

use super::arena::Arena;
use super::evaluation::{Evaluation, TensorValue};
use super::same::{Judge, Verdict};
use super::words::parting_words;
use crate::graph::{NodeId, Op, Value};
use crate::ops::{Kind, Ops};
use rustc_hash::FxHashMap;

/// A wait of `before` that `after` does not have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemovedWait {
    /// The wait, in `before`.
    pub wait: NodeId,
    /// The references to it by nodes that both graphs have, in list order of `before`.
    pub readers: Vec<Reader>,
}

/// A reference to a removed wait, and what stands there in `after`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reader {
    /// The user in `before`.
    pub before: NodeId,
    /// The same user in `after`.
    pub after: NodeId,
    /// Which of its references, in argument order.
    pub reference: usize,
    /// What it read in `before`.
    pub expected: Option<TensorValue>,
    /// What it reads in `after`: `None` if the reference is gone, or is no tensor that is known.
    pub found: Option<TensorValue>,
    /// Whether the two are the same values.
    pub verdict: Verdict,
    /// How they differ, in words; empty if they do not.
    pub text: String,
}

/// For every wait of `before` that `after` does not have: what its users read now.
pub fn rewired(
    arena: &mut Arena,
    before: &Evaluation<'_>,
    after: &Evaluation<'_>,
    ops: &Ops,
) -> Vec<RemovedWait> {
    let graph = before.graph;
    let mut removed: Vec<RemovedWait> = Vec::new();
    let mut number: FxHashMap<NodeId, usize> = FxHashMap::default();
    for node in graph.ids() {
        let is_wait = ops.call(graph, node).is_some_and(|info| info.kind == Kind::Wait);
        if is_wait && after.graph.find(graph.name(node)).is_none() {
            number.insert(node, removed.len());
            removed.push(RemovedWait { wait: node, readers: Vec::new() });
        }
    }
    let mut judge = Judge::new(arena);
    for node in graph.ids() {
        let mut references = Vec::new();
        graph.for_each_input(node, &mut |input| references.push(input));
        if references.iter().all(|input| !number.contains_key(input)) {
            continue;
        }
        let twin = match graph.node(node).op {
            Op::Output => after.graph.output(),
            _ => after.graph.find(graph.name(node)),
        };
        let Some(twin) = twin else { continue };
        // References are counted alike only where the arguments have the same form.
        let alike = same_form(before, node, after, twin);
        for (index, input) in references.into_iter().enumerate() {
            let Some(&wait) = number.get(&input) else { continue };
            let expected = before.value_read(judge.arena, node, index);
            let found = if alike { after.value_read(judge.arena, twin, index) } else { None };
            let (verdict, text) = judge_read(&mut judge, expected.as_ref(), found.as_ref());
            removed[wait].readers.push(Reader {
                before: node,
                after: twin,
                reference: index,
                expected,
                found,
                verdict,
                text,
            });
        }
    }
    removed
}

fn judge_read(
    judge: &mut Judge<'_>,
    expected: Option<&TensorValue>,
    found: Option<&TensorValue>,
) -> (Verdict, String) {
    let (Some(expected), Some(found)) = (expected, found) else {
        return (Verdict::Unknown, String::from("not known"));
    };
    if expected == found {
        return (Verdict::Same, String::new());
    }
    if expected.dtype != found.dtype || (expected.sizes != found.sizes) {
        let words = |t: &TensorValue| match &t.sizes {
            Some(sizes) => format!("{}{sizes:?}", t.dtype.name()),
            None => format!("{} of symbolic sizes", t.dtype.name()),
        };
        return (Verdict::Different, format!("{}, expected {}", words(found), words(expected)));
    }
    let verdict = judge.values(expected.value, found.value);
    if verdict == Verdict::Same {
        return (verdict, String::new());
    }
    let text = match judge.parting(expected.value, found.value) {
        Some(parting) => parting_words(&parting.elements, "", &parting.found, &parting.expected),
        None => String::from("another number of elements"),
    };
    (verdict, text)
}

/// Whether two nodes have the same arguments but for the nodes that they refer to.
fn same_form(before: &Evaluation<'_>, node: NodeId, after: &Evaluation<'_>, twin: NodeId) -> bool {
    fn shape(graph: &crate::graph::Graph, values: &[Value], into: &mut Vec<Option<usize>>) {
        for &value in values {
            match value {
                Value::Node(_) => into.push(None),
                Value::List(span) | Value::Slice(span) | Value::Dict(span) => {
                    into.push(Some(span.len()));
                    shape(graph, graph.values(span), into);
                }
                _ => into.push(Some(usize::MAX)),
            }
        }
    }
    let of = |e: &Evaluation<'_>, id| {
        let mut form = Vec::new();
        shape(e.graph, e.graph.args(id), &mut form);
        form.push(Some(e.graph.args(id).len()));
        let kwargs: Vec<Value> = e.graph.kwargs(id).map(|(_, value)| value).collect();
        shape(e.graph, &kwargs, &mut form);
        form
    };
    of(before, node) == of(after, twin)
}
