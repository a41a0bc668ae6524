//! Arithmetic on integers that are positions of a dimension.
//!
//! # The idea
//!
//! A number that is compared with positions, or added to them, is itself a position: it is a boundary of the dimension, and moves
//! with it. Differences of positions of one dimension are positions in it (a window). Quotient and remainder by a divisor
//! of the size are its digits. Whatever else meets positions keeps their dimension as it is.
//!
//! What integers count is often known only by the call that uses them as an index, which may be the last one of the last
//! graph. So arithmetic is noted while graphs are read, and judged here.

use super::call::{Edit, New, State};
use super::structure::{Fit, Leaf};
use super::values::Count;
use crate::graph::{Graph, NodeId, Value};

/// What a call does to integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Law {
    /// Compares them.
    Compare,
    /// Adds or subtracts.
    Shift,
    /// Passes one of them on.
    Choose,
    /// Divides and rounds down.
    Quotient,
    /// What division leaves.
    Remainder,
    /// Anything else.
    Other,
}

/// Arithmetic on what may be positions.
#[derive(Clone, Debug)]
pub struct Arithmetic {
    /// The call.
    pub node: NodeId,
    /// What it does.
    pub law: Law,
    /// What each tensor that it takes counts; `None` for numbers that count nothing.
    pub sources: Vec<Option<Count>>,
    /// The parameters that hold numbers other than -1, 0 and 1.
    pub constants: Vec<usize>,
    /// What it gives.
    pub result: Count,
    /// Whether it gives integers.
    pub is_integer: bool,
    /// Whether it has been judged.
    pub is_done: bool,
}

impl Arithmetic {
    /// The dimensions of whose positions it is, and of those that its numbers were computed from.
    pub fn leaves(&self, state: &State) -> (Vec<Leaf>, Vec<Leaf>) {
        let (mut leaves, mut from) = (Vec::new(), Vec::new());
        for &count in self.sources.iter().flatten() {
            let leaf = state.counts.leaf(count).map(|leaf| state.structure.root(leaf));
            leaves.extend(leaf.filter(|leaf| !leaves.contains(leaf)));
            from.extend(state.counts.from(count));
        }
        (leaves, from)
    }
}

/// The integer that parameter `param` of a call is, if it is one.
fn constant(graph: &Graph, node: NodeId, param: usize, name: &str) -> Option<i64> {
    match graph.argument(node, param, name)? {
        Value::Int(n) => Some(n),
        Value::Float(x) if x.fract() == 0.0 && x.abs() < 1e15 => Some(x as i64),
        _ => None,
    }
}

/// Judges arithmetic of one graph; twice, as the second time more may be known. `name` gives a parameter's name.
pub fn settle(
    state: &mut State,
    graph: &Graph,
    arithmetic: &mut [Arithmetic],
    name: &dyn Fn(NodeId, usize) -> String,
) -> Vec<Edit> {
    let mut edits = Vec::new();
    for one in arithmetic.iter_mut().filter(|one| !one.is_done) {
        let (leaves, from) = one.leaves(state);
        for &leaf in &from {
            state.counts.add_from(one.result, leaf);
        }
        if leaves.is_empty() {
            if one.law != Law::Other && one.law != Law::Shift && !one.constants.is_empty() {
                from.iter().for_each(|&leaf| state.structure.keep(leaf));
            }
        } else {
            one.is_done = true;
            match judge(state, graph, one, &leaves, name) {
                Ok(more) => edits.extend(more),
                Err(_) => give_up(state, one, &leaves),
            }
        }
        // Numbers that no rule gives as positions of the dimension that they are used for.
        if let Some(leaf) = state.counts.leaf(one.result)
            && !(one.is_done && leaves.len() == 1 && is_positions(one.law))
        {
            state.structure.keep(leaf);
        }
    }
    edits
}

/// Whether what comes of positions by such a law may be positions again.
fn is_positions(law: Law) -> bool {
    matches!(law, Law::Shift | Law::Choose | Law::Quotient | Law::Remainder)
}

/// No rule: integers keep their dimensions, others remember them.
fn give_up(state: &mut State, one: &Arithmetic, leaves: &[Leaf]) {
    for &leaf in leaves {
        if one.is_integer || !one.constants.is_empty() && one.law != Law::Other {
            state.structure.keep(leaf);
        }
        state.counts.add_from(one.result, leaf);
    }
    if let Some(leaf) = state.counts.leaf(one.result) {
        state.structure.keep(leaf);
    }
}

fn judge(
    state: &mut State,
    graph: &Graph,
    one: &Arithmetic,
    leaves: &[Leaf],
    name: &dyn Fn(NodeId, usize) -> String,
) -> Fit<Vec<Edit>> {
    const NO_RULE: super::structure::Misfit = super::structure::Misfit("arithmetic on positions");
    let longest = leaves.iter().copied().max_by_key(|&leaf| state.structure.size(leaf));
    let leaf = longest.filter(|_| leaves.len() == 1 || one.law == Law::Compare).ok_or(NO_RULE)?;
    // Places that are compared are those of one dimension, or of its begin.
    for &other in leaves.iter().filter(|&&other| other != leaf) {
        let size = state.structure.size(other);
        state.structure.cut(leaf, size)?;
        let begin = state.structure.between(leaf, 0, size)?;
        state.structure.unify(other, begin)?;
    }
    if one.law == Law::Other {
        return Err(NO_RULE);
    }
    let mut edits = Vec::new();
    for &param in &one.constants {
        let n = constant(graph, one.node, param, &name(one.node, param)).ok_or(NO_RULE)?;
        let size = state.structure.size(leaf);
        // A mark such as -100 is no position at any size.
        let is_signed = one.sources.iter().flatten().any(|&source| state.counts.is_signed(source));
        if n < 0 && one.law == Law::Compare && !is_signed {
            continue;
        }
        if n < 0 || n > size {
            return Err(NO_RULE);
        }
        let new = if matches!(one.law, Law::Quotient | Law::Remainder) {
            if size % n != 0 || n == size {
                return Err(NO_RULE);
            }
            let (outer, inner) = (state.structure.leaf(size / n), state.structure.leaf(n));
            state.structure.unify_products(&[leaf], &[outer, inner])?;
            let digit = if one.law == Law::Quotient { outer } else { inner };
            state.counts.set(&mut state.structure, one.result, digit)?;
            New::Size(inner)
        } else {
            state.structure.cut(leaf, n)?;
            state.structure.cut(leaf, n + 1)?;
            New::Position(leaf, n)
        };
        edits.push(Edit { node: one.node, param, new });
    }
    let is_digit = matches!(one.law, Law::Quotient | Law::Remainder);
    if is_digit && one.constants.len() != 1 {
        return Err(NO_RULE);
    }
    // The others are positions of the same dimension, or nobody knows what they are.
    for &source in &one.sources {
        let Some(source) = source else { return Err(NO_RULE) };
        if state.counts.leaf(source).is_none() {
            if one.law != Law::Compare {
                return Err(NO_RULE);
            }
            state.counts.set(&mut state.structure, source, leaf)?;
        }
    }
    let is_signed = one.sources.iter().flatten().any(|&source| state.counts.is_signed(source));
    if one.law == Law::Shift || is_signed {
        state.counts.set_signed(one.result);
    }
    if matches!(one.law, Law::Shift | Law::Choose) {
        state.counts.set(&mut state.structure, one.result, leaf)?;
    }
    Ok(edits)
}
