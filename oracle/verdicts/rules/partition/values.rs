//! What the joint graph and the composed graph compute: a rewrite of one graph by another.
//!
//! Structure first (see [`terms`](super::terms)): where every output has equal terms and every written input equal
//! writers, the two are equal. Then the evaluators of [rewrites](super::super::values).
//!
//! # Random draws
//!
//! Interpreters tell draws apart by their order, and a partition may change the order of independent draws. Where the
//! orders differ, or a draw is replayed, random operators are first replaced, on both sides, by functions of their
//! arguments, of the order in which they fill memory, and of one more input for each draw. A second draw that is not a
//! replay gets an input of its own.

use super::super::{AnalyzedGraph, Evidence, Policies, RankGraph, proved, values};
use super::compose::{Composition, Draw};
use super::evidence::PartitionEvidence;
use super::terms::TermsOf;
use crate::analysis::draws::order_of_filling;
use crate::graph::Transcriber;
use crate::graph::{Dim, Dtype, Graph, Node, NodeId, Op, Out, Tensor, Value};
use crate::ops::{DRAWN_FROM_AN_INPUT, Ops};
use crate::rules::values::{CANNOT_BE_EXECUTED, ValueEvidence, ValueResult};
use crate::rules::{Checked, Code, Evaluators, Finding, Reason};
use crate::words;
use std::collections::BTreeSet;
use std::sync::Arc;

const RULE: &str = "partition/semantics-equal";

/// What both graphs compute.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PartitionValues {
    /// That structure says that all is equal, in words, or why it does not.
    pub structure: Option<Result<String, Reason>>,
    /// What the evaluators say that were asked.
    pub compared: ValueEvidence,
    /// What follows from that, with nodes of both graphs; `None` where none was asked.
    pub(super) checked: Option<Checked>,
    /// A line for each evaluator.
    notes: Vec<String>,
}

impl PartitionValues {
    /// Compares by structure, and by these evaluators.
    pub fn gather(evidence: &PartitionEvidence, evaluators: Evaluators) -> PartitionValues {
        let mut this = PartitionValues { structure: structure(evidence), ..PartitionValues::default() };
        let (Ok(composition), Some(composed)) = (evidence.composition.as_ref(), &evidence.composed) else {
            return this;
        };
        if !evaluators.prove && !evaluators.execute {
            return this;
        }
        if same_draws(evidence, composition) {
            this.compare(evidence.joint.clone(), composed.clone(), evaluators);
            return this;
        }
        match with_draws_as_inputs(evidence, composition) {
            Ok([joint, composed]) => {
                let analyzed = |graph| Arc::new(AnalyzedGraph::new(graph));
                this.compare(analyzed(&joint), analyzed(&composed), evaluators);
            }
            Err(why) => this.checked = Some(Checked::undecided(Code::DrawInPlace, why)),
        }
        this
    }

    /// Compares two graphs by these evaluators.
    fn compare<'g>(
        &mut self,
        joint: Arc<AnalyzedGraph<'g>>,
        composed: Arc<AnalyzedGraph<'g>>,
        evaluators: Evaluators,
    ) {
        let composed = RankGraph { ranks: Vec::new(), own: Vec::new(), unrepaired: None, after: composed };
        let mut pair = [Evidence::of_ranks(joint, composed, Policies::default())];
        pair[0].values = ValueEvidence::prove(&pair[0], evaluators, None);
        ValueEvidence::execute(&mut pair, evaluators);
        self.notes = proved::note(&pair).into_iter().chain(pair[0].values.notes_of_execution()).collect();
        let words = ["the joint graph", "forward then backward"];
        self.checked = Some(values::equal(&pair[0], RULE, None, words));
        let [pair] = pair;
        self.compared = pair.values;
    }

    /// What is found of values, in the words of partitions.
    pub(super) fn findings(&self, evidence: &PartitionEvidence) -> Vec<Finding> {
        let Some(Checked::Findings(found)) = &self.checked else { return Vec::new() };
        let told = found.iter().map(|finding| {
            let title = match finding.title == CANNOT_BE_EXECUTED {
                true => "forward then backward cannot be executed",
                false => &finding.title,
            };
            let names = finding.nodes.iter().map(|node| node.name.as_str());
            let draft = evidence.finding(RULE, title).nodes(evidence, names);
            let side = |side: &Option<String>| side.clone().unwrap_or_default();
            let told = draft.contrast(side(&finding.expected), side(&finding.observed));
            Finding { is_cause: finding.is_cause, facts: finding.facts.clone(), ..told }
        });
        told.collect()
    }

    fn is_equal_by_structure(&self) -> bool {
        matches!(self.structure, Some(Ok(_)))
    }

    /// Whether structure or the symbolic evaluator prove that all is equal.
    pub(super) fn is_proved_equal(&self) -> bool {
        self.is_equal_by_structure() || matches!(self.compared.proof(), Some(ValueResult::Equal(_)))
    }

    /// Whether all is equal, as any way knows it and none contradicts; `None` where no way could tell.
    pub(super) fn known(&self) -> Option<bool> {
        let is_different = |result: &ValueResult| matches!(result, ValueResult::Different(_));
        let differs = || self.compared.results.iter().any(|(_, result)| is_different(result));
        match &self.checked {
            Some(Checked::Findings(found)) => Some(found.is_empty()),
            _ => (self.is_equal_by_structure() && !differs()).then_some(true),
        }
    }

    /// A line for each evaluator: what it compared, or why it did not.
    pub fn notes(&self) -> Vec<String> {
        let words = |result: &Result<String, Reason>| match result {
            Ok(what) => what.clone(),
            Err(why) => format!("not known: {why}"),
        };
        let structure = self.structure.iter().map(|result| format!("values by structure: {}", words(result)));
        structure.chain(self.notes.iter().cloned()).collect()
    }
}

/// Whether every output, and everything written, has equal terms.
fn structure(evidence: &PartitionEvidence) -> Option<Result<String, Reason>> {
    let computed_otherwise = |why: String| Some(Err(Code::ComputedOtherwise.because(why)));
    let sends = |side: &AnalyzedGraph| side.collectives.calls.iter().any(|call| call.kind.is_message());
    if sends(&evidence.joint) || evidence.parts().into_iter().any(|(side, _)| sends(side)) {
        return computed_otherwise("messages are no outputs, and structure does not compare them".into());
    }
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
    let acts = |side: &AnalyzedGraph, terms: &TermsOf| -> BTreeSet<_> {
        let acts = |id: &NodeId| side.ops.call(side.graph, *id).is_some_and(|info| info.acts());
        side.graph.ids().filter(acts).map(|id| terms.of[id.index()]).collect()
    };
    let side = evidence.composed.as_deref()?;
    if acts(&evidence.joint, joint) != acts(side, composed) {
        return computed_otherwise("an effect takes other values".into());
    }
    Some(Ok(format!(
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
) -> Result<[Graph; 2], String> {
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
    Ok([
        draws_as_inputs(joint, &evidence.joint.ops, &draws, &keys)?,
        draws_as_inputs(&composition.graph, &composed_ops, &composition.draws, &keys)?,
    ])
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
            is_guessed: false,
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
        let words = graph.target(id).replace("::", ".").replace('.', "_");
        let called = format!("{DRAWN_FROM_AN_INPUT}{words}.default");
        let schema = format!("oracle::draw_{words}(Tensor draw, Any inputs) -> {returns}");
        if !new.facts.iter().any(|(known, _)| *known == called) {
            new.facts.push((called.clone(), serde_json::json!({ "schema": schema }).to_string()));
        }
        let order = order_of_filling(graph, id).unwrap_or_default();
        let order: Vec<Value> = order.into_iter().map(|dim| Value::Int(dim as i64)).collect();
        let order = new.push_values(&order);
        let list = new.push_values(&[Value::List(args), Value::List(kwargs), Value::List(order)]);
        let args = new.push_values(&[Value::Node(input), Value::List(list)]);
        let name = new.intern(graph.name(id));
        let target = new.intern_target(&called);
        let node = Node { args, out, ..Node::new(name, Op::Call, target) };
        map[id.index()] = Some(new.push_node(node));
    }
    Ok(new)
}
