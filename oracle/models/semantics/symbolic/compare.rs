//! Comparing two evaluations: do two graphs compute the same values?
//!
//! Compared are the outputs, what the inputs' storages hold in the end, the effects, and what is sent to each partner.
//! Where a graph exchanges other messages than before, what they bring is known to the graphs of all ranks together: then
//! nothing is equal. Hazards of `after` that `before` does not have are differences too: a race need not show in a value.
//!
//! Values that are not proved to be equal are open. What differs whatever values are is a fact: the number of outputs, a
//! dtype, a race.

use super::arena::Arena;
use super::evaluation::{Effect, Evaluation, Output, OutputValue, TensorValue};
use super::hazard::{Hazard, HazardKind, new_hazards};
use super::place::GroupId;
use super::same::{Judge, Parting};
use super::source::ValueId;
use super::words::parting_words;
use crate::graph::{Dtype, Graph, NodeId, Op, Out};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// How two evaluations compare.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// Proved equal.
    Equal(Counts),
    /// Facts in which they differ, whatever values are.
    Different(Vec<Difference>),
    /// Not known; the reason.
    Open(String),
}

/// What was proved equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Outputs.
    pub outputs: usize,
    /// Storages of inputs.
    pub mutations: usize,
    /// Effects.
    pub effects: usize,
    /// Runs written by `before`.
    pub runs_before: usize,
    /// Runs written by `after`.
    pub runs_after: usize,
}

/// One difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// What differs.
    pub what: What,
    /// In words: what `after` has, and what was expected.
    pub text: String,
}

/// What differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// The inputs of the two graphs.
    Interface,
    /// The number of outputs.
    OutputCount,
    /// An output, by position.
    Output(usize),
    /// An effect.
    Effect,
    /// A hazard of `after`.
    Hazard(Hazard),
}

/// What a node of `after` gives or reads, against what its twin in `before` does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// What `before` has there.
    pub expected: String,
    /// All of it in one sentence.
    pub text: String,
}

/// Compares two graphs evaluated in one arena.
pub fn compare(arena: &mut Arena, before: &Evaluation<'_>, after: &Evaluation<'_>) -> Comparison {
    let undefined = undefined(before, after);
    if !undefined.is_empty() {
        return Comparison::Different(undefined);
    }
    for (side, evaluation) in [("before", before), ("after", after)] {
        if let Some((node, reason)) = &evaluation.broken {
            let name = evaluation.graph.name(*node);
            return Comparison::Open(format!("{side}: {name} is not followed: {reason}"));
        }
    }
    let mut comparer = Comparer { judge: Judge::new(arena), facts: Vec::new(), open: Vec::new() };
    comparer.interface(before, after);
    comparer.outputs(before, after);
    comparer.mutations(before, after);
    comparer.effects(before, after);
    comparer.messages(before, after);
    comparer.races(before, after);
    if !comparer.facts.is_empty() {
        return Comparison::Different(comparer.facts);
    }
    if comparer.open.is_empty() {
        return Comparison::Equal(Counts {
            outputs: after.outputs.len(),
            mutations: after.mutations.len(),
            effects: after.effects.len(),
            runs_before: before.runs,
            runs_after: after.runs,
        });
    }
    let first = comparer.first_open(before, after).map_or(String::new(), |what| what + "; so ");
    Comparison::Open(match &comparer.open[..] {
        [one] => first + one,
        all => format!("{first}{} (and {} more)", all[0], all.len() - 1),
    })
}

/// Whether a node and its twin in `after` are proved to have the same results.
pub fn are_results_equal(
    arena: &mut Arena,
    before: &Evaluation<'_>,
    after: &Evaluation<'_>,
    (node, twin): (NodeId, NodeId),
) -> bool {
    let count = before.results(node);
    let mut are_equal = |index| {
        let old = before.value(arena, node, index)?.ok()?;
        let new = after.value(arena, twin, index)?.ok()?;
        Some(
            (old.dtype, &old.sizes) == (new.dtype, &new.sizes)
                && Judge::new(arena).values(old.value, new.value),
        )
    };
    count > 0 && count == after.results(twin) && (0..count).all(|index| are_equal(index) == Some(true))
}

/// How what a node gives differs from what its twin in `after` does, or what both read as their `read`-th reference (in
/// argument order, repeated ones counted). `None` where nothing is known of it, or both are proved to be the same.
pub fn divergence(
    arena: &mut Arena,
    before: &Evaluation<'_>,
    after: &Evaluation<'_>,
    (node, twin): (NodeId, NodeId),
    read: Option<usize>,
) -> Option<Divergence> {
    let is_behind = |evaluation: &Evaluation<'_>, id: NodeId| {
        evaluation.broken.as_ref().is_some_and(|(broken, _)| id >= *broken)
    };
    if is_behind(before, node) || is_behind(after, twin) {
        return None;
    }
    let name = after.graph.name(twin);
    let (old, new, of) = match read {
        Some(index) => {
            let of = format!(" of {}, which {name} reads,", reference_name(after, twin, index));
            (before.value_read(arena, node, index)?, after.value_read(arena, twin, index)?, of)
        }
        None => {
            let old = before.value(arena, node, 0)?.ok()?;
            (old, after.value(arena, twin, 0)?.ok()?, format!(" of {name}"))
        }
    };
    let mut judge = Judge::new(arena);
    if judge.values(old.value, new.value) {
        return None;
    }
    let Parting { elements, found, expected } = judge.parting(old.value, new.value)?;
    let text = parting_words(&elements, &of, &found, &expected);
    Some(Divergence { expected, text })
}

/// One end of a message: who starts it, its terms, and what it carries where it is sent.
struct Sent {
    node: NodeId,
    tag: i64,
    dtype: Dtype,
    len: i64,
    value: ValueId,
}

/// The messages of a graph in order, by group, peer, and whether they are sent.
fn channels(arena: &Arena, evaluation: &Evaluation<'_>) -> BTreeMap<(GroupId, i64, bool), Vec<Sent>> {
    let mut channels: BTreeMap<_, Vec<Sent>> = BTreeMap::new();
    for launch in &evaluation.launches {
        for (message, payload) in launch.messages.iter().zip(&launch.payloads) {
            let (value, dtype) = (payload.value, payload.dtype);
            let sent = Sent { node: launch.node, tag: message.tag, dtype, len: arena.len(value), value };
            channels.entry((launch.group, message.peer, message.sends)).or_default().push(sent);
        }
    }
    channels
}

/// How two things that are not proved to be the same differ, in words.
enum Differs {
    /// Whatever values are.
    Fact(String),
    /// Their values, which are open.
    Open(String),
}

struct Comparer<'a> {
    judge: Judge<'a>,
    facts: Vec<Difference>,
    /// Of what it is not known whether it is equal, in words.
    open: Vec<String>,
}

impl Comparer<'_> {
    fn fact(&mut self, what: What, text: impl Into<String>) {
        self.facts.push(Difference { what, text: text.into() });
    }

    fn interface(&mut self, before: &Evaluation<'_>, after: &Evaluation<'_>) {
        let inputs = |e: &Evaluation<'_>| -> Vec<NodeId> {
            e.graph.ids().filter(|&id| e.graph.node(id).op == Op::Placeholder).collect()
        };
        let (old, new) = (inputs(before), inputs(after));
        if old.len() != new.len() {
            return self.fact(What::Interface, format!("{} inputs, expected {}", new.len(), old.len()));
        }
        for (position, (&a, &b)) in old.iter().zip(&new).enumerate() {
            let meta = |e: &Evaluation<'_>, id| {
                let tensor = e.graph.tensor_of(id)?;
                Some((e.graph.sizes(tensor.shape)?, tensor.dtype))
            };
            let (x, y) = (meta(before, a), meta(after, b));
            if x != y {
                let (a, b) = (before.graph.name(a), after.graph.name(b));
                let words = |m: &Option<(Vec<i64>, Dtype)>| match m {
                    Some((sizes, dtype)) => format!("{}{sizes:?}", dtype.name()),
                    None => String::from("of sizes that are not known"),
                };
                let text = format!("input {position} is {b} {}, expected {a} {}", words(&y), words(&x));
                match x.is_some() && y.is_some() {
                    true => self.fact(What::Interface, text),
                    false => self.open.push(text),
                }
            }
        }
    }

    fn outputs(&mut self, before: &Evaluation<'_>, after: &Evaluation<'_>) {
        if before.outputs.len() != after.outputs.len() {
            let text = format!("{} outputs, expected {}", after.outputs.len(), before.outputs.len());
            self.fact(What::OutputCount, text);
        } else if before.graph.nesting() != after.graph.nesting() {
            self.fact(What::OutputCount, "outputs nested in another way");
        }
        for (i, (a, b)) in before.outputs.iter().zip(&after.outputs).enumerate() {
            if a.value == b.value && !matches!(a.value, OutputValue::Unknown(_)) {
                continue;
            }
            let name = b.node.map_or(String::new(), |node| format!(" ({})", after.graph.name(node)));
            let words = |text: String| format!("output {i}{name}: {text}");
            // What is not recorded may be anything.
            let is_recorded = |e: &Evaluation<'_>, o: &Output| {
                o.node.is_none_or(|node| match e.graph.node(node).out {
                    Out::Tuple(span) => !e.graph.outs(span).contains(&Out::Absent),
                    out => out != Out::Absent,
                })
            };
            match self.output(a, b) {
                None => {}
                Some(Differs::Fact(text)) if is_recorded(before, a) && is_recorded(after, b) => {
                    self.fact(What::Output(i), words(text));
                }
                Some(Differs::Fact(text) | Differs::Open(text)) => self.open.push(words(text)),
            }
        }
    }

    fn output(&mut self, a: &Output, b: &Output) -> Option<Differs> {
        let open = |text: &str| Some(Differs::Open(text.to_string()));
        match (&a.value, &b.value) {
            (OutputValue::Unknown(reason), _) => open(&format!("not known before: {reason}")),
            (_, OutputValue::Unknown(reason)) => open(&format!("not known after: {reason}")),
            (OutputValue::Tensor(a), OutputValue::Tensor(b)) => self.tensors(a, b),
            (OutputValue::Number(a), OutputValue::Number(b)) => match self.judge.keys(a.0, b.0) {
                true => None,
                false => open("a number of another form"),
            },
            (OutputValue::Constant(a), OutputValue::Constant(b)) => {
                Some(Differs::Fact(format!("{b}, expected {a}")))
            }
            (OutputValue::Number(_), OutputValue::Constant(_))
            | (OutputValue::Constant(_), OutputValue::Number(_)) => {
                open("a number on one side that the other computes")
            }
            (a, b) => {
                let kind = |v: &OutputValue| match v {
                    OutputValue::Tensor(_) => "a tensor",
                    OutputValue::Nothing => "None",
                    _ => "a number",
                };
                Some(Differs::Fact(format!("{}, expected {}", kind(b), kind(a))))
            }
        }
    }

    fn tensors(&mut self, a: &TensorValue, b: &TensorValue) -> Option<Differs> {
        if a.dtype != b.dtype {
            let text = format!("dtype {}, expected {}", b.dtype.name(), a.dtype.name());
            return Some(Differs::Open(text));
        }
        match (&a.sizes, &b.sizes) {
            (Some(x), Some(y)) if x != y => {
                return Some(Differs::Open(format!("sizes {y:?}, expected {x:?}")));
            }
            (Some(_), None) | (None, Some(_)) => {
                return Some(Differs::Open(String::from("symbolic sizes on one side only")));
            }
            _ => {}
        }
        if self.judge.values(a.value, b.value) {
            return None;
        }
        let parting = self.judge.parting(a.value, b.value);
        Some(Differs::Open(parting.map_or(String::new(), |parting| {
            parting_words(&parting.elements, "", &parting.found, &parting.expected)
        })))
    }

    fn mutations(&mut self, before: &Evaluation<'_>, after: &Evaluation<'_>) {
        // A constant that one graph alone takes has no twin here.
        let place = |name| after.constants.binary_search_by_key(&name, |(other, _)| *other).ok();
        let constants =
            before.constants.iter().filter_map(|&(name, ref a)| Some((a, &after.constants[place(name)?].1)));
        for (a, b) in before.mutations.iter().zip(&after.mutations).chain(constants) {
            // What nobody writes stays, wherever its elements lie.
            if a.unchanged && b.unchanged || self.judge.values(a.content, b.content) {
                continue;
            }
            let name = after.graph.name(b.holder);
            self.open.push(match self.judge.parting(a.content, b.content) {
                Some(parting) => {
                    let words = parting_words(&parting.elements, "", &parting.found, &parting.expected);
                    format!("the storage of {name} in the end: {words}")
                }
                None => format!("the storage of {name} has another size"),
            });
        }
    }

    fn effects(&mut self, before: &Evaluation<'_>, after: &Evaluation<'_>) {
        let ordered = |e: &Evaluation<'_>| -> Vec<Effect> {
            e.effects.iter().copied().filter(|effect| effect.ordered).collect()
        };
        let (old, new) = (ordered(before), ordered(after));
        // A call more or less of an operator of which nothing is known may be no effect at all.
        let known = |all: &[Effect]| all.iter().filter(|effect| effect.certain).count();
        if known(&old) != known(&new) {
            let text = format!("{} ordered effects, expected {}", known(&new), known(&old));
            self.fact(What::Effect, text);
        } else if old.len() != new.len() {
            let kind = "effects, some of operators of which nothing is known";
            self.open.push(format!("{} {kind}, expected {}", new.len(), old.len()));
        }
        let differ = old.iter().zip(&new).find(|(a, b)| !self.judge.keys(a.key, b.key));
        if let Some((a, b)) = differ {
            let (found, expected) = (after.graph.name(b.node), before.graph.name(a.node));
            self.open.push(match found == expected {
                true => format!("the effect {found} acts on other values"),
                false => format!("the effect {found} takes place where {expected} was expected"),
            });
        }
        // Assertions may trade places: first those that are the same call, then those of one name.
        let mut left: FxHashMap<super::source::KeyId, Vec<Effect>> = FxHashMap::default();
        let loose = |e: &Evaluation<'_>| -> Vec<Effect> {
            e.effects.iter().copied().filter(|effect| !effect.ordered).collect()
        };
        for effect in loose(after) {
            left.entry(effect.key).or_default().push(effect);
        }
        let mut missing = Vec::new();
        for effect in loose(before) {
            if left.get_mut(&effect.key).and_then(Vec::pop).is_none() {
                missing.push(effect);
            }
        }
        let remaining: FxHashSet<NodeId> = left.values().flatten().map(|effect| effect.node).collect();
        let mut extra: Vec<Effect> =
            loose(after).into_iter().filter(|e| remaining.contains(&e.node)).collect();
        for effect in missing {
            let name = before.graph.name(effect.node);
            let same_name = extra.iter().position(|e| after.graph.name(e.node) == name);
            match same_name.map(|i| extra.remove(i)) {
                Some(other) if self.judge.keys(effect.key, other.key) => {}
                Some(_) => self.open.push(format!("{name} asserts something else")),
                None => self.open.push(format!("the assertion {name} is gone")),
            }
        }
        // What has been asserted may be asserted again.
        let known: FxHashSet<super::source::KeyId> = loose(before).iter().map(|effect| effect.key).collect();
        for effect in extra.into_iter().filter(|effect| !known.contains(&effect.key)) {
            self.open.push(format!("the assertion {} is new", after.graph.name(effect.node)));
        }
    }

    /// What is sent to each partner, message by message.
    fn messages(&mut self, before: &Evaluation<'_>, after: &Evaluation<'_>) {
        let (old, new) = (channels(self.judge.arena, before), channels(self.judge.arena, after));
        let terms =
            |all: &[Sent]| all.iter().map(|sent| (sent.tag, sent.dtype, sent.len)).collect::<Vec<_>>();
        let is_alike = old.len() == new.len()
            && old.iter().zip(&new).all(|((a, x), (b, y))| a == b && terms(x) == terms(y));
        if !is_alike {
            let text = "other messages than before, which one rank's graph does not tell of";
            return self.open.push(text.to_string());
        }
        for ((channel, old), new) in old.iter().zip(new.values()).filter(|((channel, _), _)| channel.2) {
            if let Some((_, b)) = old.iter().zip(new).find(|(a, b)| !self.judge.values(a.value, b.value)) {
                let (name, peer) = (after.graph.name(b.node), channel.1);
                self.open.push(format!("{name} sends other values than before to rank {peer} of its group"));
            }
        }
    }

    /// The races that `after` has and `before` has not. Reading what nobody has written shows in the values where it
    /// matters; a race does not.
    fn races(&mut self, before: &Evaluation<'_>, after: &Evaluation<'_>) {
        for hazard in new_hazards((before.graph, &before.hazards), (after.graph, &after.hazards)) {
            let text = hazard.tell(after.graph);
            match hazard.kind {
                HazardKind::InputChanged { values: Some((now, sent)), .. }
                    if self.judge.values(now, sent) => {}
                HazardKind::InputChanged { values: None, .. } => self.open.push(text),
                HazardKind::ReadsInFlight { .. }
                | HazardKind::WritesInFlight { .. }
                | HazardKind::InputChanged { .. }
                | HazardKind::NeverAwaited
                | HazardKind::SlotMisplaced { .. } => self.fact(What::Hazard(hazard.clone()), text),
                _ => {}
            }
        }
    }

    /// The first node of `before`, in list order, that `after` has too and of whose value it is not known whether it is
    /// the same, with its operator, and how it differs or why it is not known.
    fn first_open(&mut self, before: &Evaluation<'_>, after: &Evaluation<'_>) -> Option<String> {
        for node in before.graph.ids().filter(|&node| before.graph.node(node).op == Op::Call) {
            let Some(twin) = namesake(before.graph, node, after.graph) else { continue };
            for index in 0..before.results(node).min(after.results(twin)) {
                let old = before.value(self.judge.arena, node, index);
                let new = after.value(self.judge.arena, twin, index);
                let why = match (old, new) {
                    (Some(Ok(old)), Some(Ok(new))) if self.judge.values(old.value, new.value) => continue,
                    (Some(Ok(_)), Some(Ok(_))) => self.words(before, after, (node, twin)),
                    (Some(Err(why)), _) | (_, Some(Err(why))) => format!(": {why}"),
                    _ => continue,
                };
                let (name, target) = (after.graph.name(twin), after.graph.target(twin));
                return Some(format!(
                    "{name} ({target}) is the first node whose value is not known to be the same{why}"
                ));
            }
        }
        None
    }

    /// How the first thing that a node reads otherwise than its twin differs, else what it gives.
    fn words(&mut self, before: &Evaluation<'_>, after: &Evaluation<'_>, nodes: (NodeId, NodeId)) -> String {
        let mut references = 0;
        before.graph.for_each_input(nodes.0, &mut |_| references += 1);
        let mut places = (0..references).map(Some).chain([None]);
        let found = places.find_map(|read| divergence(self.judge.arena, before, after, nodes, read));
        found.map_or(String::new(), |found| format!(": {}", found.text))
    }
}

/// The nodes of `after` that take a value before it exists, where `before` has none: it cannot be executed at all.
fn undefined(before: &Evaluation<'_>, after: &Evaluation<'_>) -> Vec<Difference> {
    let is_undefined = |hazard: &&Hazard| matches!(hazard.kind, HazardKind::Undefined { .. });
    if before.hazards.iter().any(|hazard| is_undefined(&hazard)) {
        return Vec::new();
    }
    let tell =
        |hazard: &Hazard| Difference { what: What::Hazard(hazard.clone()), text: hazard.tell(after.graph) };
    after.hazards.iter().filter(is_undefined).map(tell).collect()
}

/// The name of what a node refers to, by number of the reference.
fn reference_name<'g>(evaluation: &Evaluation<'g>, node: NodeId, index: usize) -> &'g str {
    let mut references = Vec::new();
    evaluation.graph.for_each_input(node, &mut |input| references.push(input));
    references.get(index).map_or("", |&input| evaluation.graph.name(input))
}

/// The call after of the same name that may be what a call became: it is the same operator, or gives the same kind of result.
fn namesake(before: &Graph, node: NodeId, after: &Graph) -> Option<NodeId> {
    let is_other =
        |twin: NodeId| after.target(twin) != before.target(node) && !after.same_result(twin, before, node);
    after.find(before.name(node)).filter(|&twin| after.node(twin).op == Op::Call && !is_other(twin))
}
