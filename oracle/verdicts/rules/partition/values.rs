//! What the joint graph and the composed graph compute, by each evaluator that applies.
//!
//! Structure first (see [`terms`](super::terms)): where every output has equal terms and every written input equal
//! writers, the two are equal. The symbolic evaluator proves at full size; concrete values and provenance are executed
//! where the case is small enough.
//!
//! # Random draws
//!
//! Interpreters tell draws apart by their order, and a partition may change the order of independent draws. Where the
//! orders differ, or a draw is replayed, random operators are first replaced, on both sides, by functions of their
//! arguments and of one more input for each draw. A second draw that is not a replay gets an input of its own.

use super::super::recorded;
use super::super::sizes::{Sized, Sizes};
use super::compose::{Composition, Draw};
use super::evidence::PartitionEvidence;
use crate::graph::Transcriber;
use crate::graph::{Dim, Dtype, Graph, Node, NodeId, Op, Out, Tensor, Value};
use crate::limits::Limit;
use crate::ops::Ops;
use crate::rules::{Code, Evaluators, Reason, ValueMethod};
use crate::semantics::symbolic::{self, Arena, Comparison, Limits, What};
use crate::semantics::{self, Answers, Failure, Options, Pair, Place, Program, Question, Run, Stopped};
use crate::words;

/// Ranks that are executed at most.
const MOST_RANKS: u32 = Limit::Executed.standard() as u32;

/// Differences told at most.
const SHOWN: usize = 8;

/// What one evaluator says.
#[derive(Clone, PartialEq, Debug)]
pub enum Compared {
    /// Everything is equal; what was compared, in words.
    Equal(String),
    /// What differs: a line for each, with the nodes concerned.
    Different(Vec<(String, Vec<String>)>),
    /// It cannot tell, and why.
    Unknown(Reason),
}

/// What both graphs compute.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PartitionValues {
    /// What structure says.
    pub structure: Option<Compared>,
    /// The answer of each further way that was asked.
    pub results: Vec<(ValueMethod, Compared)>,
    /// Whether numbers were equal in all trials, or but for roundings, and could have differed: what another way takes
    /// for another value is then the same one come about in another way.
    pub clear: bool,
    /// Whether such a difference was left out, so that the question is open whatever the others say.
    pub excused: bool,
}

impl PartitionValues {
    /// Compares by structure, and by these evaluators.
    pub fn gather(evidence: &PartitionEvidence, evaluators: Evaluators) -> PartitionValues {
        let mut this = PartitionValues { structure: structure(evidence), ..PartitionValues::default() };
        let Ok(composition) = evidence.composition.as_ref() else { return this };
        if !evaluators.prove && !evaluators.execute {
            return this;
        }
        let (joint, composed);
        let pair = match same_draws(evidence, composition) {
            true => (evidence.joint.graph, &composition.graph),
            false => match with_draws_as_inputs(evidence, composition) {
                Ok(graphs) => {
                    (joint, composed) = graphs;
                    (&joint, &composed)
                }
                Err(why) => {
                    let why = Code::DrawInPlace.because(why);
                    this.results.push((ValueMethod::Symbolic, Compared::Unknown(why)));
                    return this;
                }
            },
        };
        let ops = (Ops::of(pair.0), Ops::of(pair.1));
        let mut hazards = Vec::new();
        if evaluators.prove {
            let proof;
            (proof, hazards) = prove(pair, (&ops.0, &ops.1));
            let doubt = || recorded::doubt((pair.0, &ops.0), (pair.1, &ops.1)).filter(|_| !evaluators.agree);
            let proof = match proof {
                Compared::Equal(_) if let Some(why) = doubt() => {
                    Compared::Unknown(Code::DynamicSizes.because(why))
                }
                proof => proof,
            };
            this.results.push((ValueMethod::Symbolic, proof));
        }
        let is_known = this.results.iter().any(|(_, result)| !matches!(result, Compared::Unknown(_)));
        if evaluators.execute && !(evaluators.only_in_doubt && is_known) {
            let open = !matches!(this.proof(), Some(Compared::Equal(_)));
            let question =
                Question { open, both: evaluators.both, agree: evaluators.agree, ..Question::default() };
            let (results, clear) = execute(pair, (&ops.0, &ops.1), evaluators.element_limit, question);
            this.clear = clear && !evaluators.agree;
            if this.clear {
                this.excuse_proof(hazards);
            }
            this.results.extend(results);
            let is_different = |(_, result): &(_, Compared)| matches!(result, Compared::Different(_));
            if !evaluators.agree && !this.results.iter().any(is_different) {
                let after = std::iter::once(pair.1);
                let at_sizes = |Sized { sizes, before, after }: Sized| {
                    let sized = (&before, after.first()?);
                    let (results, _) = execute(sized, (&ops.0, &ops.1), evaluators.element_limit, question);
                    let (method, mut result) = results.into_iter().find(is_different)?;
                    if let Compared::Different(all) = &mut result {
                        all.iter_mut().for_each(|(text, _)| *text += &format!(", where {}", sizes.words()));
                    }
                    Some((method, result))
                };
                let found = Sizes::tried((pair.0, &ops.0), after, false).find_map(at_sizes);
                this.results.extend(found);
            }
        }
        this
    }

    /// Differences of values that the symbolic evaluator finds do not count; the `hazards` among them do.
    fn excuse_proof(&mut self, hazards: Vec<(String, Vec<String>)>) {
        for (method, result) in &mut self.results {
            if let (ValueMethod::Symbolic, Compared::Different(all)) = (*method, &*result) {
                let what = all.first().map_or("values differ", |(text, _)| text);
                let why = format!("{what}, but the concrete values are equal in all trials");
                self.excused = true;
                *result = match hazards.is_empty() {
                    true => Compared::Unknown(Code::ProofAgainstTrials.because(why)),
                    false => Compared::Different(hazards.clone()),
                };
            }
        }
    }

    /// What structure or the symbolic evaluator prove: that all is equal, or what the latter proves to differ, or
    /// nothing.
    pub(super) fn proof(&self) -> Option<&Compared> {
        let proofs = self.results.iter().filter(|(method, _)| *method == ValueMethod::Symbolic);
        let proofs: Vec<&Compared> = self.structure.iter().chain(proofs.map(|(_, result)| result)).collect();
        let is = |wanted: fn(&Compared) -> bool| proofs.iter().copied().find(|&proof| wanted(proof));
        is(|proof| matches!(proof, Compared::Equal(_)))
            .or(is(|proof| matches!(proof, Compared::Different(_))))
    }

    /// Whether all is equal, as any way knows it and none contradicts; `None` where no way could tell.
    pub(super) fn known(&self) -> Option<bool> {
        let mut equal = None;
        for result in self.structure.iter().chain(self.results.iter().map(|(_, result)| result)) {
            match result {
                Compared::Different(_) => return Some(false),
                Compared::Equal(_) => equal = Some(true),
                Compared::Unknown(_) => {}
            }
        }
        equal.filter(|_| !self.excused)
    }

    /// A line for each evaluator: what it compared, or why it did not.
    pub fn notes(&self) -> Vec<String> {
        let words = |result: &Compared| match result {
            Compared::Equal(what) => what.clone(),
            Compared::Different(all) => words::count(all.len(), "difference"),
            Compared::Unknown(why) => format!("not known: {why}"),
        };
        let structure = self.structure.iter().map(|result| format!("values by structure: {}", words(result)));
        let others = self.results.iter().map(|(method, result)| format!("{method}: {}", words(result)));
        structure.chain(others).collect()
    }
}

/// Whether every output, and everything written, has equal terms.
fn structure(evidence: &PartitionEvidence) -> Option<Compared> {
    let computed_otherwise = |why: String| Some(Compared::Unknown(Code::ComputedOtherwise.because(why)));
    let (joint, composed) = evidence.terms()?;
    if joint.returned.len() != composed.returned.len() {
        return computed_otherwise("the numbers of outputs differ".into());
    }
    for (index, (a, b)) in joint.returned.iter().zip(&composed.returned).enumerate() {
        let constants = |v: Value, w: Value| match (v, w) {
            (Value::Node(_), _) | (_, Value::Node(_)) => true,
            _ => v == w,
        };
        if a.1 != b.1 || a.2 != b.2 || !constants(a.0, b.0) {
            return computed_otherwise(format!("output {index} comes about in another way"));
        }
    }
    if joint.written != composed.written {
        return computed_otherwise("what is written to inputs comes about in another way".into());
    }
    Some(Compared::Equal(format!(
        "equal by structure: {}, {}",
        words::count(joint.returned.len(), "output"),
        words::count(joint.written.len(), "written input")
    )))
}

/// Whether both graphs draw the same random numbers in one order.
fn same_draws(evidence: &PartitionEvidence, composition: &Composition) -> bool {
    let (graph, ops) = (evidence.joint.graph, &evidence.joint.ops);
    let own = graph.ids().filter(|&id| ops.draws(graph, id)).map(|id| graph.name(id));
    own.eq(composition.draws.iter().map(|draw| draw.key.as_str()))
}

/// Both graphs with random operators as functions of inputs.
fn with_draws_as_inputs(
    evidence: &PartitionEvidence,
    composition: &Composition,
) -> Result<(Graph, Graph), String> {
    let joint = evidence.joint.graph;
    let draws: Vec<Draw> = joint
        .ids()
        .filter(|&id| evidence.joint.ops.draws(joint, id))
        .map(|node| Draw { node, key: joint.name(node).to_string() })
        .collect();
    let mut keys: Vec<&str> = draws.iter().chain(&composition.draws).map(|draw| draw.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    let composed_ops = Ops::of(&composition.graph);
    Ok((
        draws_as_inputs(joint, &evidence.joint.ops, &draws, &keys)?,
        draws_as_inputs(&composition.graph, &composed_ops, &composition.draws, &keys)?,
    ))
}

fn draws_as_inputs(graph: &Graph, ops: &Ops, draws: &[Draw], keys: &[&str]) -> Result<Graph, String> {
    let mut new = Graph::with_capacity(graph.len() + keys.len());
    new.name = graph.name.clone();
    new.world = graph.world.clone();
    new.symbols = graph.symbols.clone();
    new.facts = graph.facts.clone();
    let mut map: Vec<Option<NodeId>> = vec![None; graph.len()];
    let copy = |new: &mut Graph, map: &mut Vec<Option<NodeId>>, id: NodeId| {
        let copied = Transcriber { from: graph, to: new, map }.node(id, graph.name(id));
        map[id.index()] = Some(copied);
        copied
    };
    let is_input = |id: &NodeId| graph.node(*id).op == Op::Placeholder;
    graph.ids().filter(is_input).for_each(|id| {
        copy(&mut new, &mut map, id);
    });
    let device = new.intern("cpu");
    let mut inputs = Vec::with_capacity(keys.len());
    for key in keys {
        let name = format!("the draw of {key}");
        let input = new.push(&name, Op::Placeholder, &name);
        let shape = new.intern_dims(&[Dim::Static(1)]);
        let tensor = Tensor {
            shape,
            stride: shape,
            dtype: Dtype::I64,
            requires_grad: None,
            device,
            storage: None,
            offset: 0,
            storage_bytes: None,
        };
        new.node_mut(input).out = Out::Tensor(new.push_tensor(tensor));
        inputs.push(input);
    }
    let mut draws = draws.iter().peekable();
    for id in graph.ids().filter(|id| !is_input(id)) {
        let Some(draw) = draws.next_if(|draw| draw.node == id) else {
            copy(&mut new, &mut map, id);
            continue;
        };
        let info = ops.get(graph, id);
        if info.writes() || info.is_view() {
            return Err(format!("{} draws in place", graph.name(id)));
        }
        let input = keys.binary_search(&draw.key.as_str()).ok().and_then(|index| inputs.get(index));
        let input = *input.ok_or("a draw has no input")?;
        let old = graph.node(id);
        let mut copier = Transcriber { from: graph, to: &mut new, map: &mut map };
        let out = copier.out(old.out, false);
        let args = copier.values(old.args);
        let kwargs = copier.values(old.kwargs);
        let returns = match out {
            Out::Tuple(span) => vec!["Tensor"; span.len()].join(", "),
            _ => "Tensor".to_string(),
        };
        let returns = if matches!(out, Out::Tuple(_)) { format!("({returns})") } else { returns };
        let target = format!("draw.{}", graph.target(id).replace("::", "."));
        let words = target.replace('.', "_");
        let schema = format!("oracle::{words}(Tensor draw, Any inputs) -> {returns}");
        let called = format!("oracle.{words}.default");
        if !new.facts.iter().any(|(known, _)| *known == called) {
            new.facts.push((called.clone(), serde_json::json!({ "schema": schema }).to_string()));
        }
        let list = new.push_values(&[Value::List(args), Value::List(kwargs)]);
        let args = new.push_values(&[Value::Node(input), Value::List(list)]);
        let name = new.intern(graph.name(id));
        let target = new.intern_target(&called);
        let node = Node { args, out, ..Node::new(name, Op::Call, target) };
        map[id.index()] = Some(new.push_node(node));
    }
    Ok(new)
}

/// Evaluates both symbolically, at full size, for one generic rank. Of what differs, the hazards once more by
/// themselves.
fn prove(pair: (&Graph, &Graph), ops: (&Ops, &Ops)) -> (Compared, Vec<(String, Vec<String>)>) {
    let mut arena = Arena::new(&pair.0.world, Limits::DEFAULT);
    let old = symbolic::evaluate(&mut arena, pair.0, ops.0);
    let new = symbolic::evaluate(&mut arena, pair.1, ops.1);
    let mut hazards = Vec::new();
    let compared = match symbolic::compare(&mut arena, &old, &new) {
        Comparison::Equal(counts) => Compared::Equal(format!(
            "proved at full size for every rank that runs these parts: {} are equal",
            words::counts(&[
                (counts.outputs, "output"),
                (counts.mutations, "input"),
                (counts.effects, "effect")
            ])
        )),
        Comparison::Unknown(why) => Compared::Unknown(Code::NotFollowed.because(why)),
        Comparison::Different(differences) => {
            let name = |id: NodeId| pair.1.name(id).to_string();
            let first = differences.first.iter().map(|d| (d.text.clone(), vec![name(d.after)]));
            let certain = differences.all.iter().filter(|difference| difference.certain);
            let tell = |difference: &symbolic::Difference| (difference.text.clone(), Vec::new());
            let is_hazard = |difference: &&symbolic::Difference| matches!(difference.what, What::Hazard(_));
            hazards = certain.clone().filter(is_hazard).map(tell).take(SHOWN).collect();
            Compared::Different(first.chain(certain.map(tell)).take(SHOWN).collect())
        }
    };
    (compared, hazards)
}

/// Executes both on every rank: what each domain says, and whether [numbers are clear](Answers::are_clear).
fn execute(
    pair: (&Graph, &Graph),
    ops: (&Ops, &Ops),
    limit: u64,
    question: Question,
) -> (Vec<(ValueMethod, Compared)>, bool) {
    let unknown = |why: Reason| (vec![(ValueMethod::Concrete, Compared::Unknown(why))], false);
    let Some(world) = pair.0.world.assume_mesh() else {
        return unknown(Code::TooManyRanks.because("the world has too many ranks"));
    };
    let ranks = world.ranks.unwrap_or(1);
    if ranks > MOST_RANKS {
        let why = format!("{ranks} ranks; at most {MOST_RANKS} are executed");
        return unknown(Code::TooManyRanks.because(why));
    }
    let program = |graph, ops| Program::new(graph, ops, &world);
    let (joint, composed) = match (program(pair.0, ops.0), program(pair.1, ops.1)) {
        (Ok(joint), Ok(composed)) => (joint, composed),
        (Err(failure), _) | (_, Err(failure)) => {
            return unknown(Code::from(&failure).because(failure.to_string()));
        }
    };
    let options = Options { max_elements: limit, ..Options::default() };
    let (before, after) = (std::slice::from_ref(&joint), std::slice::from_ref(&composed));
    let answers = Pair { before, after, world: &world, options: &options }.ask(question);
    let numbers = answer(pair.1, &answers, &answers.numbers);
    let doubt = answers.doubt(place_words).filter(|_| matches!(numbers, Compared::Equal(_)));
    let mut results =
        vec![(ValueMethod::Concrete, doubt.map_or(numbers, |open| Compared::Unknown(open.into())))];
    if let Some(runs) = &answers.terms {
        let terms = match answer(pair.1, &answers, runs) {
            Compared::Different(_) if !question.agree && runs.is_ok() => {
                let why = "provenance differs, as it may for equal values";
                Compared::Unknown(Code::ProvenanceDiffers.because(why))
            }
            Compared::Equal(what) => match answers.reserved.clone() {
                Some(open) => Compared::Unknown(open.into()),
                None => Compared::Equal(what),
            },
            terms => terms,
        };
        results.push((ValueMethod::Provenance, terms));
    }
    (results, answers.are_clear())
}

/// What lies at a place.
fn place_words(place: &Place) -> String {
    match place {
        Place::Output(path) => format!("output {}", path.last().copied().unwrap_or(0)),
        Place::Input(name) => format!("input {name}"),
        Place::Effect(n) => format!("effect {n}"),
        Place::World => "the world".to_string(),
    }
}

fn answer(composed: &Graph, answers: &Answers, runs: &Result<(Run, Run), Stopped>) -> Compared {
    let (before, after) = match runs {
        Ok(runs) => runs,
        Err(Stopped::Before(failure)) => {
            return Compared::Unknown(Code::from(failure).because(format!("joint: {failure}")));
        }
        Err(Stopped::After(failure)) => return failed(composed, failure),
    };
    let mut told: Vec<(Place, String, Vec<String>)> = Vec::new();
    let (all, excused) = answers.counted(before.domain, semantics::compare(before, after));
    if let (Some(why), true) = (excused, all.is_empty()) {
        return Compared::Unknown(why.into());
    }
    if semantics::differ_in_unknown_effects(before, after, &all) {
        return Compared::Unknown(Code::UnknownEffects.because(semantics::UNKNOWN_EFFECTS));
    }
    for difference in all {
        if told.len() < SHOWN && !told.iter().any(|(place, ..)| *place == difference.place) {
            let nodes = match &difference.place {
                Place::Output(path) => {
                    let index = path.last().copied().unwrap_or(0) as usize;
                    let value = super::compose::returned(composed).get(index).copied();
                    let name =
                        |v| if let Value::Node(n) = v { Some(composed.name(n).to_string()) } else { None };
                    value.and_then(name).into_iter().collect()
                }
                Place::Input(name) => vec![name.clone()],
                Place::Effect(_) | Place::World => Vec::new(),
            };
            told.push((difference.place.clone(), difference.to_string(), nodes));
        }
    }
    if !told.is_empty() {
        return Compared::Different(told.into_iter().map(|(_, text, nodes)| (text, nodes)).collect());
    }
    Compared::Equal(answers.words(after))
}

/// A composed graph that cannot be executed: our limits are no fault of it, everything else is.
fn failed(graph: &Graph, failure: &Failure) -> Compared {
    let node = match failure {
        Failure::Refused { .. } | Failure::TooLarge { .. } | Failure::World { .. } => {
            return Compared::Unknown(
                Code::from(failure).because(format!("forward then backward: {failure}")),
            );
        }
        Failure::Raises { node, .. } | Failure::Undefined { node, .. } => Some(*node),
        Failure::Stuck(waiting) => waiting.first().map(|waiting| waiting.node),
        Failure::Mismatch(mismatch) => Some(mismatch.left.1),
    };
    let node = node.filter(|node| node.index() < graph.len());
    let names = node.map(|node| graph.name(node).to_string()).into_iter().collect();
    Compared::Different(vec![(format!("forward then backward cannot be executed: {failure}"), names)])
}
