//! Whether a proof over symbolic sizes is believed.
//!
//! # The idea
//!
//! A proof takes it that what is recorded of symbolic sizes is true, that both graphs take inputs of the same sizes, and
//! that results of equal content are equally large. Each of these is looked at here, at [sizes](super::sizes) that are
//! numbers where that is needed; where it cannot be, or is not so, the proof proves nothing. That convicts nobody:
//! symbols that stand for data may be bound by what is asserted elsewhere.

use super::sizes::{Sized, Sizes, misfits};
use crate::analysis::shows_state;
use crate::expression::{evaluate, spelled};
use crate::graph::{Graph, NodeId, Op, Out, Symbol, Value};
use crate::ops::{Kind, Ops};
use std::collections::BTreeSet;

/// Sizes and strides, or a number, each in normal form.
type Record = [Vec<String>; 2];

/// Why a proof that both graphs are equal is not believed; `None` where it is, as it is without symbolic sizes.
pub(super) fn doubt((before, ops): (&Graph, &Ops), (after, ops_after): (&Graph, &Ops)) -> Option<String> {
    if !before.has_expressions() && !after.has_expressions() {
        return None;
    }
    let values = Sizes::candidates([before, after].into_iter(), true);
    let tried: Vec<Sized> = Sizes::tried((before, ops), std::iter::once(after), true).collect();
    other_input(before, after, &values)
        .or_else(|| other_output(before, after, &values))
        .or_else(|| not_computed(before, (after, ops_after)))
        .or_else(|| nothing_tried(before, after, &tried))
        .or_else(|| untrue(after, ops_after, &tried))
}

/// What is recorded of a node's one result. The size of a generator's state is no promise.
fn record(graph: &Graph, id: NodeId) -> Option<Record> {
    match graph.node(id).out {
        Out::Tensor(tensor) if !shows_state(graph, id) => {
            let tensor = graph.tensor(tensor);
            Some([graph.spelled(tensor.shape), graph.spelled(tensor.stride)])
        }
        Out::SymInt(number) => Some([vec![spelled(graph.text(graph.expr(number).text))], Vec::new()]),
        Out::Int(number) => Some([vec![number.to_string()], Vec::new()]),
        _ => None,
    }
}

/// Whether numbers are the same: in form, or, by a guard, whatever values the symbols have.
fn same(was: &[String], is: &[String], values: &[Sizes]) -> bool {
    let same = |(was, is): (&String, &String)| {
        let at = |sizes: &Sizes| sizes.value(was).is_some() && sizes.value(was) == sizes.value(is);
        was == is || values.len() > 1 && values.iter().all(at)
    };
    was.len() == is.len() && was.iter().zip(is).all(same)
}

/// An input that the graph after takes with other sizes. Graphs are called by position.
fn other_input(before: &Graph, after: &Graph, values: &[Sizes]) -> Option<String> {
    let inputs = |graph: &Graph| -> Vec<NodeId> {
        graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder).collect()
    };
    let (old, new) = (inputs(before), inputs(after));
    let is_other = |(place, &id): (usize, &NodeId)| {
        let twin = match old.len() == new.len() {
            true => old.get(place).copied(),
            // Parts of a partition take some of the inputs.
            false => before.find(after.name(id)),
        };
        let pair = twin.and_then(|twin| record(before, twin)).zip(record(after, id));
        pair.is_some_and(|(was, is)| was.iter().zip(&is).any(|(was, is)| !same(was, is, values)))
    };
    let (_, &id) = new.iter().enumerate().find(|&input| is_other(input))?;
    Some(format!("the graph after takes {} with other sizes than the graph before", after.name(id)))
}

/// A result that is recorded with other sizes. Its strides are no promise.
fn other_output(before: &Graph, after: &Graph, values: &[Sizes]) -> Option<String> {
    let sizes = |graph: &Graph| -> Vec<Option<Vec<String>>> {
        let of = |value: Value| match value {
            Value::Node(id) if id.index() < graph.len() => record(graph, id).map(|[sizes, _]| sizes),
            _ => None,
        };
        super::partition::returned(graph).into_iter().map(of).collect()
    };
    let is_other = |(was, is): (Option<Vec<String>>, Option<Vec<String>>)| {
        was.zip(is).is_some_and(|(was, is)| !same(&was, &is, values))
    };
    let place = sizes(before).into_iter().zip(sizes(after)).position(is_other)?;
    Some(format!("output {place} is recorded with other sizes than before"))
}

/// A size that nobody can look at. Where a node is what it was, so is its size; and what arithmetic gives is taken from its
/// arguments, whatever is recorded.
fn not_computed(before: &Graph, (after, ops): (&Graph, &Ops)) -> Option<String> {
    let computes = |text: &String| evaluate(text, &|_| Some(7)).is_some();
    let is_arithmetic =
        |id: NodeId| ops.call(after, id).is_some_and(|info| matches!(info.kind, Kind::Number(_)));
    let is_odd = |id: &NodeId| {
        !is_arithmetic(*id) && record(after, *id).is_some_and(|of| !of.iter().flatten().all(computes))
    };
    let names = |graph: &Graph, id: NodeId| -> Vec<String> {
        graph.inputs(id).into_iter().map(|input| graph.name(input).to_string()).collect()
    };
    let is_kept = |id: NodeId| {
        before.find(after.name(id)).is_some_and(|twin| {
            before.target(twin) == after.target(id)
                && record(before, twin) == record(after, id)
                && names(before, twin) == names(after, id)
        })
    };
    let id = after.ids().filter(is_odd).find(|&id| !is_kept(id))?;
    Some(format!("the size that is recorded of {} cannot be computed", after.name(id)))
}

/// Whether no other sizes than the hints were looked at, though there are others.
fn nothing_tried(before: &Graph, after: &Graph, tried: &[Sized]) -> Option<String> {
    let symbols = || before.symbols.iter().chain(&after.symbols);
    let is_hint = |sizes: &Sizes| {
        symbols().all(|symbol| sizes.of(&symbol.name).is_none_or(|value| Some(value) == symbol.hint))
    };
    let given: BTreeSet<&str> = before.given_symbols().chain(after.given_symbols()).collect();
    let is_free = |of: &Symbol| of.unbacked || given.contains(of.name.as_str());
    let is_fixed = |symbol: &Symbol| symbol.range.0 == symbol.range.1 || !is_free(symbol);
    let has_one_value = symbols().next().is_some() && symbols().all(is_fixed);
    let is_looked_at = has_one_value || tried.iter().any(|sized| !is_hint(&sized.sizes));
    (!is_looked_at).then(|| "no sizes but the hints were found at which both graphs run".to_string())
}

/// A record of the graph after that is not true.
fn untrue(after: &Graph, ops: &Ops, tried: &[Sized]) -> Option<String> {
    tried.iter().find_map(|sized| {
        let (id, why) = misfits(sized.after.first()?, ops).next()?;
        Some(format!("{why}, which is recorded of {} where {}", after.name(id), sized.sizes.words()))
    })
}
