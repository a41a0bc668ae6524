//! Where two runs differ: outputs, mutated inputs, effects.
//!
//! Strides, aliasing and the sequence of collectives are not compared: a pass may change them. Two poison elements
//! are equal, a poison one and a known one are not. All NaN are one.

use super::concrete::{is_same, show};
use super::run::{Effect, FinalInput, Leaf, RankRun, Run, TensorValue};
use crate::graph::{Dtype, Graph, NodeId, Value};
use rustc_hash::FxHashMap;
use std::fmt;

/// What differs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// A value that the graph returns, by its path in the nested lists.
    Output(Vec<u32>),
    /// The final contents of an input.
    Input(String),
    /// An effect, by its position among the rank's effects.
    Effect(usize),
    /// The number of ranks.
    World,
}

/// How it differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Aspect {
    /// One side has it, the other does not. What each side has.
    Existence {
        /// What the first run has.
        before: Option<String>,
        /// What the second run has.
        after: Option<String>,
    },
    /// The dtypes differ.
    Dtype {
        /// That of the first run.
        before: Dtype,
        /// That of the second run.
        after: Dtype,
    },
    /// The shapes differ.
    Shape {
        /// That of the first run.
        before: Vec<i64>,
        /// That of the second run.
        after: Vec<i64>,
    },
    /// Values differ: the first one, and how many in all.
    Value {
        /// Index of the first element that differs; empty for a number or effect.
        index: Vec<i64>,
        /// It in the first run.
        before: String,
        /// It in the second run.
        after: String,
        /// How many elements differ.
        count: usize,
    },
}

/// One difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The rank.
    pub rank: u32,
    /// Where.
    pub place: Place,
    /// How.
    pub aspect: Aspect,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}: ", self.rank)?;
        match &self.place {
            Place::Output(path) if path.is_empty() => write!(f, "the output")?,
            Place::Output(path) => {
                write!(f, "output {}", path.iter().map(u32::to_string).collect::<Vec<_>>().join("."))?
            }
            Place::Input(name) => write!(f, "the final contents of input {name}")?,
            Place::Effect(n) => write!(f, "effect {n}")?,
            Place::World => write!(f, "the world")?,
        }
        let or_nothing = |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing".to_string());
        match &self.aspect {
            Aspect::Existence { before, after } => {
                write!(f, ": {} before, {} after", or_nothing(before), or_nothing(after))
            }
            Aspect::Dtype { before, after } => {
                write!(f, ": {} before, {} after", before.name(), after.name())
            }
            Aspect::Shape { before, after } => write!(f, ": shape {before:?} before, {after:?} after"),
            Aspect::Value { index, before, after, count } => {
                if !index.is_empty() {
                    write!(f, ", element {index:?}")?;
                }
                write!(f, ": {before} before, {after} after")?;
                if *count > 1 { write!(f, " ({count} elements differ)") } else { Ok(()) }
            }
        }
    }
}

/// Effects in an order that tells them apart: assertions among themselves may change places, since they only stop the
/// program.
fn settled(effects: &[Effect]) -> Vec<&Effect> {
    let mut settled: Vec<&Effect> = effects.iter().collect();
    let both_assert = |a: &&Effect, b: &&Effect| a.asserted.is_some() && b.asserted.is_some();
    let key = |effect: &&Effect| (effect.target.clone(), effect.arguments);
    settled.chunk_by_mut(both_assert).for_each(|stretch| stretch.sort_by_key(key));
    settled
}

/// Effects of the graph after without assertions that the graph before has made as often: what has been asserted may be
/// asserted again.
fn less_repeated(before: &[Effect], after: &[Effect]) -> Vec<Effect> {
    let mut left: FxHashMap<(&str, u64), (usize, usize)> = FxHashMap::default();
    for effect in before.iter().filter(|effect| effect.asserted.is_some()) {
        left.entry((effect.target.as_str(), effect.arguments)).or_default().0 += 1;
    }
    let mut others = Vec::with_capacity(after.len());
    for effect in after {
        if effect.asserted.is_some()
            && let Some((made, seen)) = left.get_mut(&(effect.target.as_str(), effect.arguments))
        {
            *seen += 1;
            if *seen > *made {
                continue;
            }
        }
        others.push(effect.clone());
    }
    others
}

/// Why values are not known where only [unknown effects](differ_in_unknown_effects) differ.
pub const UNKNOWN_EFFECTS: &str =
    "nothing is known of an operator that one side calls more often, or otherwise";

/// Whether all that differs is that operators of which nothing is known are called more or less often, or others of
/// them, or with the same operands in another order: they may have no effect at all, or commute.
pub fn differ_in_unknown_effects(before: &Run, after: &Run, found: &[Difference]) -> bool {
    let is_effect = |difference: &Difference| matches!(difference.place, Place::Effect(_));
    let certain = |effects: &[Effect]| -> Vec<(String, u64)> {
        let certain = settled(effects).into_iter().filter(|effect| effect.unknown.is_none());
        certain.map(|effect| (effect.target.clone(), effect.arguments)).collect()
    };
    let all = |effects: &[Effect]| -> Vec<(String, u64)> {
        settled(effects).into_iter().map(|effect| (effect.target.clone(), effect.arguments)).collect()
    };
    let mut ranks = before.ranks.iter().zip(&after.ranks).filter(|(a, b)| all(&a.effects) != all(&b.effects));
    let targets = |effects: &[Effect]| -> Vec<String> {
        settled(effects).into_iter().map(|effect| effect.target.clone()).collect()
    };
    let in_any_order = |effects: &[Effect]| -> Vec<Option<u64>> {
        settled(effects).into_iter().map(|effect| effect.unknown).collect()
    };
    let is_unknown = |(a, b): (&RankRun, &RankRun)| {
        let commutes = in_any_order(&a.effects) == in_any_order(&b.effects);
        (commutes || targets(&a.effects) != targets(&b.effects)) && certain(&a.effects) == certain(&b.effects)
    };
    !found.is_empty() && found.iter().all(is_effect) && ranks.all(is_unknown)
}

/// All differences between the runs of two graphs, by rank: outputs, inputs, effects. At most one is reported for
/// each output, input and effect. An attribute of the module that only one graph uses counts only if it is written.
pub fn compare(before: &Run, after: &Run) -> Vec<Difference> {
    let mut found = Vec::new();
    if before.ranks.len() != after.ranks.len() {
        let side = |run: &Run| Some(format!("{} ranks", run.ranks.len()));
        let aspect = Aspect::Existence { before: side(before), after: side(after) };
        found.push(Difference { rank: 0, place: Place::World, aspect });
    }
    for (rank, (left, right)) in before.ranks.iter().zip(&after.ranks).enumerate() {
        let rank = rank as u32;
        let mut report = |place: Place, aspect: Option<Aspect>| {
            if let Some(aspect) = aspect {
                found.push(Difference { rank, place, aspect });
            }
        };
        let mut places: Vec<&Vec<u32>> = left.outputs.iter().map(|(path, _)| path).collect();
        for (i, (path, _)) in right.outputs.iter().enumerate() {
            if output(&left.outputs, i, path).is_none() {
                places.push(path);
            }
        }
        // Paths are sorted on both sides as the outputs are nested, so the usual case is position by position.
        for (i, path) in places.into_iter().enumerate() {
            let (a, b) = (output(&left.outputs, i, path), output(&right.outputs, i, path));
            report(Place::Output(path.clone()), sides(before, a, b));
        }
        for (i, input) in left.inputs.iter().enumerate() {
            let other = same(&right.inputs, i, input);
            if other.is_none() && input.attribute && !input.written {
                continue;
            }
            report(
                Place::Input(input.name.clone()),
                sides(before, Some(&input.value), other.map(|o| &o.value)),
            );
        }
        for (i, input) in right.inputs.iter().enumerate() {
            if same(&left.inputs, i, input).is_none() && (!input.attribute || input.written) {
                report(Place::Input(input.name.clone()), sides(before, None, Some(&input.value)));
            }
        }
        let others = less_repeated(&left.effects, &right.effects);
        let (effects, others) = (settled(&left.effects), settled(&others));
        for i in 0..effects.len().max(others.len()) {
            let (a, b) = (effects.get(i).copied(), others.get(i).copied());
            let same = match (a, b) {
                (Some(a), Some(b)) => a.target == b.target && a.arguments == b.arguments,
                _ => false,
            };
            if !same {
                let text = |effect: Option<&Effect>| {
                    effect.map(|e| match e.asserted {
                        Some(number) => format!("{} of {number}", e.target),
                        None => format!("{} (arguments {:016x})", e.target, e.arguments),
                    })
                };
                report(Place::Effect(i), Some(Aspect::Existence { before: text(a), after: text(b) }));
            }
        }
    }
    found
}

/// The leaf with this path, most likely at position `i`.
pub(super) fn output<'a>(outputs: &'a [(Vec<u32>, Leaf)], i: usize, path: &[u32]) -> Option<&'a Leaf> {
    let here = outputs.get(i).filter(|(p, _)| p == path);
    here.or_else(|| outputs.iter().find(|(p, _)| p == path)).map(|(_, leaf)| leaf)
}

/// The input of this name, most likely at position `i`.
fn same<'a>(inputs: &'a [FinalInput], i: usize, like: &FinalInput) -> Option<&'a FinalInput> {
    let is_same = |input: &&FinalInput| input.name == like.name && input.attribute == like.attribute;
    inputs.get(i).filter(is_same).or_else(|| inputs.iter().find(is_same))
}

fn sides(run: &Run, before: Option<&Leaf>, after: Option<&Leaf>) -> Option<Aspect> {
    match (before, after) {
        (Some(Leaf::Tensor(a)), Some(Leaf::Tensor(b))) => tensors(run, a, b),
        // What Python takes for equal, `2` and `2.0`, is another number for who takes it.
        (Some(Leaf::Number(a)), Some(Leaf::Number(b))) => {
            let differs = a.key() != b.key() || std::mem::discriminant(a) != std::mem::discriminant(b);
            let (before, after) = (a.to_string(), b.to_string());
            differs.then_some(Aspect::Value { index: Vec::new(), before, after, count: 1 })
        }
        _ if before == after => None,
        _ => Some(Aspect::Existence { before: before.map(word), after: after.map(word) }),
    }
}

fn word(leaf: &Leaf) -> String {
    match leaf {
        Leaf::None => "None".to_string(),
        Leaf::Number(number) => number.to_string(),
        Leaf::Object(key) => format!("object {key:016x}"),
        Leaf::Tensor(tensor) => format!("{}{:?}", tensor.dtype.short(), tensor.shape),
    }
}

fn tensors(run: &Run, a: &TensorValue, b: &TensorValue) -> Option<Aspect> {
    if a.dtype != b.dtype {
        return Some(Aspect::Dtype { before: a.dtype, after: b.dtype });
    }
    if a.shape != b.shape {
        return Some(Aspect::Shape { before: a.shape.to_vec(), after: b.shape.to_vec() });
    }
    if a.cells == b.cells && a.poison == b.poison {
        return None;
    }
    let poison = |tensor: &TensorValue, i: usize| tensor.poison.get(i).copied().unwrap_or(false);
    let differs = |i: &usize| match (poison(a, *i), poison(b, *i)) {
        (true, true) => false,
        (false, false) if run.domain == "concrete values" => !is_same(a.cells[*i], b.cells[*i], a.dtype),
        (false, false) => a.cells[*i] != b.cells[*i],
        _ => true,
    };
    let all: Vec<usize> = (0..a.cells.len()).filter(differs).collect();
    let first = *all.first()?;
    let text = |tensor: &TensorValue| match poison(tensor, first) {
        true => "an uninitialised value".to_string(),
        false if run.domain == "concrete values" => show(tensor.cells[first], tensor.dtype),
        false => format!("term {:016x}", tensor.cells[first]),
    };
    let per = if a.dtype == Dtype::C128 { 2 } else { 1 };
    let mut left = (first / per) as i64;
    let mut index: Vec<i64> = Vec::with_capacity(a.shape.len());
    for &size in a.shape.iter().rev() {
        index.push(left % size.max(1));
        left /= size.max(1);
    }
    index.reverse();
    Some(Aspect::Value { index, before: text(a), after: text(b), count: all.len() })
}

/// Where two traced runs part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// The node of the graph before.
    pub before: NodeId,
    /// The node of the same name and target in the graph after.
    pub after: NodeId,
    /// The first of its references, in argument order, that reads another value; `None` where it reads the same.
    pub read: Option<usize>,
}

/// The first node of `after`, in list order, that gives another value than the node of the same name and target in `before`
/// does, on one rank, or `hands` another one to whoever is not in the list: other ranks, or the caller. Both runs must have
/// been traced.
pub fn first_divergence(
    (before_graph, before): (&Graph, &RankRun),
    (after_graph, after): (&Graph, &RankRun),
    hands: &dyn Fn(NodeId) -> bool,
) -> Option<Divergence> {
    after_graph.ids().find_map(|new| {
        let old = before_graph.find(after_graph.name(new))?;
        let is_same_call = before_graph.target(old) == after_graph.target(new);
        let (was, is) = (before.reads.get(old.index())?, after.reads.get(new.index())?);
        // References of other numbers do not correspond by place.
        let pairs = was.iter().zip(is).filter(|_| was.len() == is.len());
        let read = pairs.enumerate().find_map(|(place, (was, is))| (was != is).then_some(place));
        let parts =
            before.trace.get(old.index()) != after.trace.get(new.index()) || read.is_some() && hands(new);
        (is_same_call && parts).then_some(Divergence { before: old, after: new, read })
    })
}

/// The node at a path of the output's nested lists. That of a single returned value begins inside it.
pub fn output_node(graph: &Graph, path: &[u32]) -> Option<NodeId> {
    let (mut value, mut path) = match graph.args(graph.output()?) {
        [only] => (*only, path),
        several => {
            let (&first, rest) = path.split_first()?;
            (*several.get(first as usize)?, rest)
        }
    };
    while let Value::List(span) = value {
        let (&at, rest) = path.split_first()?;
        (value, path) = (*graph.values(span).get(at as usize)?, rest);
    }
    if let Value::Node(node) = value { Some(node) } else { None }
}
