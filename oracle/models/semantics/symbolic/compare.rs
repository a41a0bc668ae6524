//! Comparing two evaluations: do two graphs compute the same values?
//!
//! Compared are the outputs, what the inputs' storages hold in the end, the effects, and what is sent to each partner.
//! Where a graph exchanges other messages than before, what they bring is known to the graphs of all ranks together: then
//! no difference is certain, and nothing is equal. Hazards of `after` that
//! `before` does not have are differences too: a race need not show in a value. Only a difference that is certain
//! convicts; see [`same`](super::same).

use super::algebra::Operator;
use super::arena::Arena;
use super::evaluation::{Effect, Evaluation, Output, OutputValue, TensorValue};
use super::hazard::{Hazard, HazardKind, new_hazards};
use super::place::GroupId;
use super::same::{Judge, Parting, Verdict};
use super::source::{Traits, ValueId};
use super::words::parting_words;
use crate::graph::{Dtype, Graph, NodeId, Op, Out};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::ops::Range;

/// How two evaluations compare.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// Proved equal.
    Equal(Counts),
    /// They differ, and at least one difference is certain.
    Different(Differences),
    /// Not known; the reason.
    Unknown(String),
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

/// The differences between two graphs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Differences {
    /// All that were found, in the order outputs, inputs, effects, hazards.
    pub all: Vec<Difference>,
    /// Where values first part, following the list order of `before`.
    pub first: Option<Divergence>,
    /// How many of the outputs are equal.
    pub outputs_equal: usize,
}

/// One difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// What differs.
    pub what: What,
    /// In words: what `after` has, and what was expected.
    pub text: String,
    /// Whether it is certain.
    pub certain: bool,
    /// Whether it only follows from another one: the same call as before, on other inputs.
    pub derived: bool,
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
    /// What the storage of an input holds in the end: the input in `after`.
    Mutation(NodeId),
    /// An effect.
    Effect,
    /// What a message carries: the node that sends it.
    Message(NodeId),
    /// A hazard of `after`.
    Hazard(Hazard),
}

/// A node that both graphs have, by name, and at which their values part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// The node in `before`.
    pub before: NodeId,
    /// The node in `after`.
    pub after: NodeId,
    /// The reference of the node, in argument order, that reads another value; `None` where all are read alike and
    /// the node's result differs.
    pub input: Option<usize>,
    /// The first elements that differ, in row-major order.
    pub elements: Range<i64>,
    /// What `after` has there.
    pub found: String,
    /// What `before` has there.
    pub expected: String,
    /// All of it in one sentence.
    pub text: String,
}

/// Compares two graphs evaluated in one arena.
pub fn compare(arena: &mut Arena, before: &Evaluation<'_>, after: &Evaluation<'_>) -> Comparison {
    let undefined = undefined(before, after);
    if !undefined.is_empty() {
        return Comparison::Different(Differences { all: undefined, first: None, outputs_equal: 0 });
    }
    for (side, evaluation) in [("before", before), ("after", after)] {
        if let Some((node, reason)) = &evaluation.broken {
            let name = evaluation.graph.name(*node);
            return Comparison::Unknown(format!("{side}: {name} is not followed: {reason}"));
        }
    }
    let mut comparer = Comparer { judge: Judge::new(arena), all: Vec::new() };
    comparer.interface(before, after);
    let outputs_equal = comparer.outputs(before, after);
    comparer.mutations(before, after);
    comparer.effects(before, after);
    comparer.messages(before, after);
    comparer.hazards(before, after, true);
    if comparer.all.is_empty() {
        return Comparison::Equal(Counts {
            outputs: after.outputs.len(),
            mutations: after.mutations.len(),
            effects: after.effects.len(),
            runs_before: before.runs,
            runs_after: after.runs,
        });
    }
    comparer.hazards(before, after, false);
    if comparer.all.iter().any(|d| d.certain) {
        let first = comparer.first_divergence(before, after);
        // The certain ones first, and causes before what follows from them; the order is kept otherwise.
        let mut all = comparer.all;
        all.sort_by_key(|d| (!d.certain, d.derived));
        return Comparison::Different(Differences { all, first, outputs_equal });
    }
    let first = comparer.first_unknown(before, after).map_or(String::new(), |what| what + "; so ");
    let count = comparer.all.len();
    Comparison::Unknown(match &comparer.all[..] {
        [one] => first + &one.text,
        all => format!("{first}{} (and {} more that are not certain)", all[0].text, count - 1),
    })
}

/// What is known of a reference of a node, and of that of its twin.
pub enum Read {
    /// What the node makes of what it reads is the same.
    SameResults,
    /// They certainly show different values.
    Differs(Divergence),
    /// They show the same, or it is not known, as behind a node that is not followed.
    NotKnownToDiffer,
}

/// The `index`-th reference (in argument order, repeated ones counted) of a node, against that of its twin in `after`.
pub fn compare_read(
    arena: &mut Arena,
    before: &Evaluation<'_>,
    after: &Evaluation<'_>,
    (node, twin): (NodeId, NodeId),
    index: usize,
) -> Read {
    let is_behind = |evaluation: &Evaluation<'_>, id: NodeId| {
        evaluation.broken.as_ref().is_some_and(|(broken, _)| id >= *broken)
    };
    if is_behind(before, node) || is_behind(after, twin) {
        return Read::NotKnownToDiffer;
    }
    let mut comparer = Comparer { judge: Judge::new(arena), all: Vec::new() };
    let old = before.value_read(comparer.judge.arena, node, index);
    let new = after.value_read(comparer.judge.arena, twin, index);
    let resized = old.as_ref().map(|old| &old.sizes) != new.as_ref().map(|new| &new.sizes);
    let differs = old.zip(new).is_some_and(|(old, new)| comparer.part(&old, &new));
    // What an operator makes of other values may be the same still: operands that may be exchanged.
    if comparer.results_equal(before, after, (node, twin), !differs) {
        return Read::SameResults;
    }
    // Several operands may change together, and make up for one another, and sizes with what is done to them; then the
    // results speak.
    let may_make_up = |comparer: &mut Comparer<'_>| {
        Operator::named(before.graph.target(node)).has_exchange
            || before.graph.node(node).op == Op::Call
                && before.results(node) > 0
                && (resized || comparer.changed(before, after, (node, twin)) > 1)
    };
    if differs && may_make_up(&mut comparer) {
        let old = before.value(comparer.judge.arena, node, 0).and_then(Result::ok);
        let new = after.value(comparer.judge.arena, twin, 0).and_then(Result::ok);
        if !old.zip(new).is_some_and(|(old, new)| comparer.part(&old, &new)) {
            return Read::NotKnownToDiffer;
        }
    }
    let found = if differs { comparer.read(before, after, node, twin, index) } else { None };
    found.map_or(Read::NotKnownToDiffer, Read::Differs)
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

/// A verdict with its words.
struct Judged {
    verdict: Verdict,
    text: String,
    derived: bool,
}

struct Comparer<'a> {
    judge: Judge<'a>,
    all: Vec<Difference>,
}

impl Comparer<'_> {
    fn note(&mut self, what: What, text: String, certain: bool) {
        self.all.push(Difference { what, text, certain, derived: false });
    }

    fn interface(&mut self, before: &Evaluation<'_>, after: &Evaluation<'_>) {
        let inputs = |e: &Evaluation<'_>| -> Vec<NodeId> {
            e.graph.ids().filter(|&id| e.graph.node(id).op == Op::Placeholder).collect()
        };
        let (old, new) = (inputs(before), inputs(after));
        if old.len() != new.len() {
            let text = format!("{} inputs, expected {}", new.len(), old.len());
            return self.note(What::Interface, text, true);
        }
        for (position, (&a, &b)) in old.iter().zip(&new).enumerate() {
            let meta = |e: &Evaluation<'_>, id| {
                let graph = e.graph;
                let tensor = graph.tensor_of(id)?;
                Some((graph.sizes(tensor.shape)?, tensor.dtype))
            };
            let (x, y) = (meta(before, a), meta(after, b));
            if x != y {
                let (a, b) = (before.graph.name(a), after.graph.name(b));
                let words = |m: &Option<(Vec<i64>, crate::graph::Dtype)>| match m {
                    Some((sizes, dtype)) => format!("{}{sizes:?}", dtype.name()),
                    None => String::from("of sizes that are not known"),
                };
                let text = format!("input {position} is {b} {}, expected {a} {}", words(&y), words(&x));
                self.note(What::Interface, text, x.is_some() && y.is_some());
            }
        }
    }

    fn outputs(&mut self, before: &Evaluation<'_>, after: &Evaluation<'_>) -> usize {
        if before.outputs.len() != after.outputs.len() {
            let text = format!("{} outputs, expected {}", after.outputs.len(), before.outputs.len());
            self.note(What::OutputCount, text, true);
        } else if before.graph.nesting() != after.graph.nesting() {
            self.note(What::OutputCount, String::from("outputs nested in another way"), true);
        }
        let mut equal = 0;
        for (i, (a, b)) in before.outputs.iter().zip(&after.outputs).enumerate() {
            if a.value == b.value && !matches!(a.value, OutputValue::Unknown(_)) {
                equal += 1;
                continue;
            }
            let Judged { verdict, text, derived } = self.output(a, b);
            match verdict {
                Verdict::Same => equal += 1,
                verdict => {
                    let name = |e: &Evaluation<'_>, o: &Output| {
                        o.node.map_or(String::new(), |n| format!(" ({})", e.graph.name(n)))
                    };
                    let text = format!("output {i}{}: {text}", name(after, b));
                    // What is not recorded may be anything.
                    let is_recorded = |e: &Evaluation<'_>, o: &Output| {
                        o.node.is_none_or(|node| match e.graph.node(node).out {
                            Out::Tuple(span) => !e.graph.outs(span).contains(&Out::Absent),
                            out => out != Out::Absent,
                        })
                    };
                    let certain =
                        verdict == Verdict::Different && is_recorded(before, a) && is_recorded(after, b);
                    self.all.push(Difference { what: What::Output(i), text, certain, derived });
                }
            }
        }
        equal
    }

    fn output(&mut self, a: &Output, b: &Output) -> Judged {
        let judged = |verdict, text: &str| Judged { verdict, text: text.to_string(), derived: false };
        match (&a.value, &b.value) {
            (OutputValue::Unknown(reason), _) => {
                judged(Verdict::Unknown, &format!("not known before: {reason}"))
            }
            (_, OutputValue::Unknown(reason)) => {
                judged(Verdict::Unknown, &format!("not known after: {reason}"))
            }
            (OutputValue::Tensor(a), OutputValue::Tensor(b)) => self.tensors(a, b),
            (OutputValue::Number(a), OutputValue::Number(b)) => {
                // The form of a sum knows few laws: numbers of other forms may be one.
                match self.judge.keys(a.0, b.0) {
                    Verdict::Different => judged(Verdict::Unknown, "a number of another form"),
                    verdict => judged(verdict, "another number"),
                }
            }
            (OutputValue::Constant(a), OutputValue::Constant(b)) => {
                judged(Verdict::Different, &format!("{b}, expected {a}"))
            }
            (OutputValue::Number(_), OutputValue::Constant(_))
            | (OutputValue::Constant(_), OutputValue::Number(_)) => {
                judged(Verdict::Unknown, "a number on one side that the other computes")
            }
            (a, b) => {
                let kind = |v: &OutputValue| match v {
                    OutputValue::Tensor(_) => "a tensor",
                    OutputValue::Nothing => "None",
                    _ => "a number",
                };
                judged(Verdict::Different, &format!("{}, expected {}", kind(b), kind(a)))
            }
        }
    }

    fn tensors(&mut self, a: &TensorValue, b: &TensorValue) -> Judged {
        let judged = |verdict, text| Judged { verdict, text, derived: false };
        let mut derived = false;
        if a.dtype != b.dtype {
            let text = format!("dtype {}, expected {}", b.dtype.name(), a.dtype.name());
            return judged(Verdict::Different, text);
        }
        match (&a.sizes, &b.sizes) {
            (Some(x), Some(y)) if x != y => {
                return judged(Verdict::Different, format!("sizes {y:?}, expected {x:?}"));
            }
            (Some(_), None) | (None, Some(_)) => {
                return judged(Verdict::Unknown, String::from("symbolic sizes on one side only"));
            }
            _ => {}
        }
        let verdict = self.judge.values(a.value, b.value);
        let text = match self.judge.parting(a.value, b.value) {
            Some(parting) if verdict != Verdict::Same => {
                derived = parting.derived;
                parting_words(&parting.elements, "", &parting.found, &parting.expected)
            }
            _ => String::new(),
        };
        Judged { verdict, text, derived }
    }

    fn mutations(&mut self, before: &Evaluation<'_>, after: &Evaluation<'_>) {
        // A constant that one graph alone takes has no twin here.
        let place = |name| after.constants.binary_search_by_key(&name, |(other, _)| *other).ok();
        let constants =
            before.constants.iter().filter_map(|&(name, ref a)| Some((a, &after.constants[place(name)?].1)));
        for (a, b) in before.mutations.iter().zip(&after.mutations).chain(constants) {
            // What nobody writes stays, wherever its elements lie.
            if a.content == b.content || a.unchanged && b.unchanged {
                continue;
            }
            let verdict = self.judge.values(a.content, b.content);
            if verdict == Verdict::Same {
                continue;
            }
            let name = after.graph.name(b.holder);
            let mut derived = false;
            // Where a side does not record how large the storage is, it is taken for as large as what is shown.
            let is_sized =
                |e: &Evaluation<'_>, id| e.graph.tensor_of(id).is_some_and(|t| t.storage_bytes.is_some());
            let mut sizes_known = is_sized(before, a.holder) && is_sized(after, b.holder);
            let text = match self.judge.parting(a.content, b.content) {
                Some(parting) => {
                    (derived, sizes_known) = (parting.derived, true);
                    let words = parting_words(&parting.elements, "", &parting.found, &parting.expected);
                    format!("the storage of {name} in the end: {words}")
                }
                None => format!("the storage of {name} has another size"),
            };
            let certain = verdict == Verdict::Different && sizes_known;
            self.all.push(Difference { what: What::Mutation(b.holder), text, certain, derived });
        }
    }

    fn effects(&mut self, before: &Evaluation<'_>, after: &Evaluation<'_>) {
        let ordered = |e: &Evaluation<'_>| -> Vec<Effect> {
            e.effects.iter().copied().filter(|effect| effect.ordered).collect()
        };
        let (old, new) = (ordered(before), ordered(after));
        let certain =
            |all: &[Effect]| all.iter().copied().filter(|effect| effect.certain).collect::<Vec<_>>();
        let (sure_old, sure_new) = (certain(&old), certain(&new));
        // A call more or less of an operator of which nothing is known may be no effect at all.
        let is_sure = old.len() - sure_old.len() == new.len() - sure_new.len();
        let told = self.all.len();
        if !is_sure {
            self.ordered_effects((before, after), &sure_old, &sure_new, true);
        }
        if self.all.len() == told {
            self.ordered_effects((before, after), &old, &new, is_sure);
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
            let (verdict, text) = match same_name.map(|i| extra.remove(i)) {
                Some(other) => {
                    (self.judge.keys(effect.key, other.key), format!("{name} asserts something else"))
                }
                None => (Verdict::Different, format!("the assertion {name} is gone")),
            };
            if verdict != Verdict::Same {
                self.note(What::Effect, text, verdict == Verdict::Different);
            }
        }
        // What has been asserted may be asserted again.
        let known: FxHashSet<super::source::KeyId> = loose(before).iter().map(|effect| effect.key).collect();
        for effect in extra.into_iter().filter(|effect| !known.contains(&effect.key)) {
            let text = format!("the assertion {} is new", after.graph.name(effect.node));
            self.note(What::Effect, text, true);
        }
    }

    /// Effects that must follow each other as before: how many there are, and the first that is not the same.
    fn ordered_effects(
        &mut self,
        (before, after): (&Evaluation<'_>, &Evaluation<'_>),
        old: &[Effect],
        new: &[Effect],
        certain: bool,
    ) {
        if old.len() != new.len() {
            let kind = if certain {
                "ordered effects"
            } else {
                "effects, some of operators of which nothing is known"
            };
            let text = format!("{} {kind}, expected {}", new.len(), old.len());
            self.note(What::Effect, text, certain);
        }
        for (a, b) in old.iter().zip(new) {
            let verdict = self.judge.keys(a.key, b.key);
            if verdict != Verdict::Same {
                let (found, expected) = (after.graph.name(b.node), before.graph.name(a.node));
                let text = if found == expected {
                    format!("the effect {found} acts on other values")
                } else {
                    format!("the effect {found} takes place where {expected} was expected")
                };
                // Of two operators of which nothing is known, one may do what the other does.
                let is_same_operator = before.graph.target(a.node) == after.graph.target(b.node);
                let certain = certain && (a.certain && b.certain || is_same_operator);
                self.note(What::Effect, text, certain && verdict == Verdict::Different);
                break;
            }
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
            let values = |what: &What| matches!(what, What::Output(_) | What::Mutation(_) | What::Effect);
            self.all.iter_mut().filter(|d| values(&d.what)).for_each(|d| d.certain = false);
            let node = new.values().chain(old.values()).flatten().next().map(|sent| sent.node);
            let text = String::from("other messages than before, which one rank's graph does not tell of");
            return self.note(What::Message(node.unwrap_or(NodeId(0))), text, false);
        }
        for ((channel, old), new) in old.iter().zip(new.values()).filter(|((channel, _), _)| channel.2) {
            for (a, b) in old.iter().zip(new) {
                let verdict = self.judge.values(a.value, b.value);
                if verdict != Verdict::Same {
                    let name = after.graph.name(b.node);
                    let text =
                        format!("{name} sends other values than before to rank {} of its group", channel.1);
                    self.note(What::Message(b.node), text, verdict == Verdict::Different);
                    break;
                }
            }
        }
    }

    /// The hazards that `after` has and `before` has not: those that do not show in a value, or the others.
    fn hazards(&mut self, before: &Evaluation<'_>, after: &Evaluation<'_>, races: bool) {
        for hazard in new_hazards((before.graph, &before.hazards), (after.graph, &after.hazards)) {
            // Reading what nobody has written shows in the values where it matters; a race does not.
            let (is_race, certain) = match hazard.kind {
                HazardKind::ReadsInFlight { .. }
                | HazardKind::WritesInFlight { .. }
                | HazardKind::NeverAwaited
                | HazardKind::SlotMisplaced { .. } => (true, true),
                HazardKind::InputChanged { values: Some((now, sent)), .. } => {
                    let verdict = self.judge.values(now, sent);
                    (verdict != Verdict::Same, verdict == Verdict::Different)
                }
                HazardKind::InputChanged { values: None, .. } => (true, false),
                _ => (false, false),
            };
            if is_race == races {
                let text = hazard.tell(after.graph);
                self.note(What::Hazard(hazard.clone()), text, certain);
            }
        }
    }

    /// The first node of `before`, in list order, that `after` has too and whose value there is certainly another.
    fn first_divergence(&mut self, before: &Evaluation<'_>, after: &Evaluation<'_>) -> Option<Divergence> {
        for node in before.graph.ids() {
            let old = before.graph.node(node);
            if !matches!(old.op, Op::Call | Op::Output) {
                continue;
            }
            let twin = match old.op {
                Op::Output => after.graph.output(),
                _ => namesake(before.graph, node, after.graph),
            };
            let Some(twin) = twin else { continue };
            if let Some(found) = self.divergence(before, after, node, twin) {
                return Some(found);
            }
        }
        None
    }

    /// The first node of `before`, in list order, that `after` has too and of whose value it is not known whether it is
    /// the same, with its operator, and why where that is known.
    fn first_unknown(&mut self, before: &Evaluation<'_>, after: &Evaluation<'_>) -> Option<String> {
        for node in before.graph.ids().filter(|&node| before.graph.node(node).op == Op::Call) {
            let Some(twin) = namesake(before.graph, node, after.graph) else { continue };
            for index in 0..before.results(node).min(after.results(twin)) {
                let old = before.value(self.judge.arena, node, index);
                let new = after.value(self.judge.arena, twin, index);
                let why = match (old, new) {
                    (Some(Ok(old)), Some(Ok(new))) if old.value == new.value => continue,
                    (Some(Ok(old)), Some(Ok(new))) => match self.judge.values(old.value, new.value) {
                        Verdict::Unknown => String::new(),
                        _ => continue,
                    },
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

    fn divergence(
        &mut self,
        before: &Evaluation<'_>,
        after: &Evaluation<'_>,
        node: NodeId,
        twin: NodeId,
    ) -> Option<Divergence> {
        let mut differs = before.graph.node(node).op == Op::Output;
        for index in 0..before.results(node).min(after.results(twin)) {
            let old = before.value(self.judge.arena, node, index).and_then(Result::ok);
            let new = after.value(self.judge.arena, twin, index).and_then(Result::ok);
            if let (Some(old), Some(new)) = (old, new)
                && self.part(&old, &new)
            {
                differs = true;
                break;
            }
        }
        if !differs {
            return None;
        }
        let name = after.graph.name(twin);
        let mut references = 0;
        before.graph.for_each_input(node, &mut |_| references += 1);
        let read = (0..references).find_map(|index| self.read(before, after, node, twin, index));
        if read.is_some() {
            return read;
        }
        let index = 0;
        let old = before.value(self.judge.arena, node, index).and_then(Result::ok)?;
        let new = after.value(self.judge.arena, twin, index).and_then(Result::ok)?;
        let Parting { elements, found, expected, .. } = self.judge.parting(old.value, new.value)?;
        let text = parting_words(&elements, &format!(" of {name}"), &found, &expected);
        Some(Divergence { before: node, after: twin, input: None, elements, found, expected, text })
    }

    /// Whether a node and its twin are proved to have the same results; with `at_sight`, without looking into them.
    fn results_equal(
        &mut self,
        before: &Evaluation<'_>,
        after: &Evaluation<'_>,
        (node, twin): (NodeId, NodeId),
        at_sight: bool,
    ) -> bool {
        let count = before.results(node);
        count > 0
            && count == after.results(twin)
            && (0..count).all(|index| {
                let old = before.value(self.judge.arena, node, index).and_then(Result::ok);
                let new = after.value(self.judge.arena, twin, index).and_then(Result::ok);
                match (old, new) {
                    (Some(old), Some(new)) => {
                        (old.dtype, &old.sizes) == (new.dtype, &new.sizes)
                            && (old.value == new.value
                                || !at_sight && self.judge.values(old.value, new.value) == Verdict::Same)
                    }
                    _ => false,
                }
            })
    }

    /// How many references of a node do not show at sight what those of its twin show.
    fn changed(
        &mut self,
        before: &Evaluation<'_>,
        after: &Evaluation<'_>,
        (node, twin): (NodeId, NodeId),
    ) -> usize {
        let mut references = 0;
        before.graph.for_each_input(node, &mut |_| references += 1);
        let differs = |&index: &usize| {
            let old = before.value_read(self.judge.arena, node, index);
            let new = after.value_read(self.judge.arena, twin, index);
            old.map(|old| old.value) != new.map(|new| new.value)
        };
        (0..references).filter(differs).count()
    }

    /// Where the `index`-th reference of a node and of its twin certainly show different values.
    fn read(
        &mut self,
        before: &Evaluation<'_>,
        after: &Evaluation<'_>,
        node: NodeId,
        twin: NodeId,
        index: usize,
    ) -> Option<Divergence> {
        let old = before.value_read(self.judge.arena, node, index)?;
        let new = after.value_read(self.judge.arena, twin, index)?;
        if !self.part(&old, &new) {
            return None;
        }
        let Parting { elements, found, expected, .. } = self.judge.parting(old.value, new.value)?;
        let name = after.graph.name(twin);
        let of = format!(" of {}, which {name} reads,", reference_name(after, twin, index));
        let text = parting_words(&elements, &of, &found, &expected);
        Some(Divergence { before: node, after: twin, input: Some(index), elements, found, expected, text })
    }

    /// Whether two tensors certainly differ. What is in flight on either side is not compared.
    fn part(&mut self, a: &TensorValue, b: &TensorValue) -> bool {
        let in_flight = |value| self.judge.arena.traits(value).has(Traits::IN_FLIGHT);
        if a == b || in_flight(a.value) || in_flight(b.value) {
            return false;
        }
        a.dtype != b.dtype || self.judge.values(a.value, b.value) == Verdict::Different
    }
}

/// The nodes of `after` that take a value before it exists, where `before` has none: it cannot be executed at all.
fn undefined(before: &Evaluation<'_>, after: &Evaluation<'_>) -> Vec<Difference> {
    let is_undefined = |hazard: &&Hazard| matches!(hazard.kind, HazardKind::Undefined { .. });
    if before.hazards.iter().any(|hazard| is_undefined(&hazard)) {
        return Vec::new();
    }
    let tell = |hazard: &Hazard| Difference {
        what: What::Hazard(hazard.clone()),
        text: hazard.tell(after.graph),
        certain: true,
        derived: false,
    };
    after.hazards.iter().filter(is_undefined).map(tell).collect()
}

/// The name of what a node refers to, by number of the reference.
fn reference_name(evaluation: &Evaluation<'_>, node: NodeId, index: usize) -> String {
    let mut seen = 0;
    let mut name = String::new();
    evaluation.graph.for_each_input(node, &mut |input| {
        if seen == index {
            name = evaluation.graph.name(input).to_string();
        }
        seen += 1;
    });
    name
}

/// The call after of the same name that may be what a call became: it is the same operator, or gives the same kind of result.
fn namesake(before: &Graph, node: NodeId, after: &Graph) -> Option<NodeId> {
    let is_other =
        |twin: NodeId| after.target(twin) != before.target(node) && !after.same_result(twin, before, node);
    after.find(before.name(node)).filter(|&twin| after.node(twin).op == Op::Call && !is_other(twin))
}
