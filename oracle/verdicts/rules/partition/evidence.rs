//! What the rules of a partition see: the joint graph, its two parts, and what follows from them, computed once.

use super::super::{AnalyzedGraph, Finding, NodeMention, Stage};
use super::compose::{Composition, Draw, is_generator_input, item_of_added, returned};
use super::config::PartitionConfig;
use super::saved::BudgetUse;
use super::tags::{NodeTags, Region};
use super::terms::{Term, Terms, TermsOf};
use super::values::PartitionValues;
use crate::analysis::storages::Touch;
use crate::graph::{Graph, NodeId, Op, Out, Value};
use crate::ops::{Kind, spelled};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::sync::Arc;

/// What kind of value something saved is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ValueClass {
    /// A tensor.
    Tensor,
    /// An object that is no tensor.
    Opaque,
    /// The state of a random generator that the partition keeps.
    Generator,
    /// A symbolic number.
    Symbol,
    /// Several values.
    Tuple,
    /// `None`, or nothing recorded.
    Nothing,
}

/// A value that the forward graph hands to the backward graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Saved {
    /// Its name.
    pub name: String,
    /// The node of the forward graph.
    pub forward: NodeId,
    /// The node of the joint graph with that name.
    pub joint: Option<NodeId>,
    /// The input of the backward graph with that name.
    pub backward: Option<NodeId>,
    /// What it is.
    pub class: ValueClass,
}

/// What an input of the backward graph is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum BackwardInput {
    /// A saved value.
    Saved,
    /// A gradient of an output.
    Tangent,
    /// A seed or offset of a generator, given by the runtime.
    Seed,
    /// The state of a random generator.
    Generator,
    /// State of compiled autograd.
    State,
}

/// An earlier partition that this one is to repeat.
#[derive(Clone)]
pub struct Earlier<'a> {
    /// Its joint graph.
    pub joint: &'a Graph,
    /// Its forward graph.
    pub forward: &'a Graph,
    /// Leading outputs of that forward graph that are the user's.
    pub forward_outputs: usize,
    /// Names of its values with the names that they have in the joint graph judged, where the retrace tells.
    pub provenance: Vec<(String, String)>,
}

/// A minimum-cut problem that the saved set is said to solve.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CutNetwork {
    /// Number of vertices.
    pub vertices: usize,
    /// Where flow comes from.
    pub source: usize,
    /// Where it goes.
    pub sink: usize,
    /// Its edges.
    pub edges: Vec<CutEdge>,
}

/// An edge of a [`CutNetwork`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CutEdge {
    /// From.
    pub from: usize,
    /// To.
    pub to: usize,
    /// What cutting it costs; `None` where it cannot be cut.
    pub capacity: Option<u64>,
    /// The value that is saved by cutting it.
    pub saves: Option<String>,
}

/// What is known beyond one triple. Rules that need what is missing say so.
#[derive(Clone, Default)]
pub struct Further<'a> {
    /// The two parts on other ranks of one SPMD program: (rank, forward, backward).
    pub ranks: Vec<(u32, &'a Graph, &'a Graph)>,
    /// The partition that a replay is to repeat.
    pub earlier: Option<Earlier<'a>>,
    /// The network that a min-cut partition has cut.
    pub network: Option<CutNetwork>,
    /// Saved sets for variants that should not matter: what was changed, and the names that were saved.
    pub variants: Vec<(String, Vec<String>)>,
    /// The saved set after tagging, retracing and partitioning once more.
    pub again: Option<Vec<String>>,
    /// Joint and backward graph after the forward graph was tagged.
    pub after_tagging: Option<(&'a Graph, &'a Graph)>,
    /// What other budgets save.
    pub budgets: BudgetUse,
    /// Why the implementation refused, if it did.
    pub refused: Option<String>,
}

/// Everything that rules see.
pub struct PartitionEvidence<'a> {
    /// The joint graph.
    pub joint: Arc<AnalyzedGraph<'a>>,
    /// The forward graph.
    pub forward: AnalyzedGraph<'a>,
    /// The backward graph.
    pub backward: AnalyzedGraph<'a>,
    /// Both parts put together again; why not, otherwise.
    pub composition: Result<&'a Composition, String>,
    /// The graph of the composition.
    pub composed: Option<Arc<AnalyzedGraph<'a>>>,
    /// How the partition was asked for.
    pub config: PartitionConfig,
    /// Leading outputs of the joint graph that belong to the forward part.
    pub forward_outputs: usize,
    /// What the joint graph returns.
    pub joint_returns: Vec<Value>,
    /// What the forward graph returns.
    pub forward_returns: Vec<Value>,
    /// What the backward graph returns.
    pub backward_returns: Vec<Value>,
    /// What is saved, in the order of the forward graph's outputs.
    pub saved: Vec<Saved>,
    /// The inputs of the backward graph, in order.
    pub backward_inputs: Vec<(NodeId, BackwardInput)>,
    /// The tags of the joint graph's nodes.
    pub tags: Vec<NodeTags>,
    /// Which nodes of the joint graph depend on a tangent.
    pub needs_tangent: Vec<bool>,
    /// By node of the joint graph: the node of the forward graph with its name and target.
    pub in_forward: Vec<Option<NodeId>>,
    /// By node of the joint graph: the call or attribute of the backward graph with its name and target.
    pub in_backward: Vec<Option<NodeId>>,
    /// By node of the forward graph: the node of the joint graph.
    pub of_forward: Vec<Option<NodeId>>,
    /// By node of the backward graph: the node of the joint graph, saved values included.
    pub of_backward: Vec<Option<NodeId>>,
    /// Which nodes of the joint graph its results or effects need.
    pub live_joint: Vec<bool>,
    /// Which nodes of the backward graph its results or effects need.
    pub live_backward: Vec<bool>,
    /// The global ranks whose parts these are; none where they are for all.
    pub own_ranks: Vec<u32>,
    /// What is known beyond one triple.
    pub further: Further<'a>,
    /// What joint and composed graph compute.
    pub values: PartitionValues,
    terms: OnceCell<Option<(TermsOf, TermsOf)>>,
    alone: OnceCell<TermsOf>,
    equals: OnceCell<FxHashMap<Term, Vec<NodeId>>>,
    parameters: OnceCell<Vec<bool>>,
    /// Whether the default partition leaves the graph to the minimum cut, once that is asked.
    pub(super) default_cuts: OnceCell<bool>,
}

/// Whether an input of the backward graph is given to it alone: tangents, seeds and the like.
pub(super) fn is_backward_only(graph: &Graph, id: NodeId) -> bool {
    backward_input(graph, id) != BackwardInput::Saved
}

fn backward_input(graph: &Graph, id: NodeId) -> BackwardInput {
    let target = graph.target(id);
    let is_state =
        matches!(graph.node(id).out, Out::Other(text) if graph.text(text).contains("BackwardState"));
    match target {
        _ if is_generator_input(target) => BackwardInput::Generator,
        _ if is_tangent(target) => BackwardInput::Tangent,
        _ if target.contains("bwd_seed") || target.contains("bwd_base_offset") => BackwardInput::Seed,
        _ if is_state => BackwardInput::State,
        _ => BackwardInput::Saved,
    }
}

/// Whether a placeholder with this target is a tangent. Source: `torch._functorch.partitioners._is_tangent`.
pub(super) fn is_tangent(target: &str) -> bool {
    target.contains("tangents")
}

fn is_backward_seed(target: &str) -> bool {
    target.contains("bwd_seed") || target.contains("bwd_base_offset")
}

impl<'a> PartitionEvidence<'a> {
    /// Evidence from a triple and its composition; further evidence may be filled in.
    pub fn new(
        joint: &'a Graph,
        forward: &'a Graph,
        backward: &'a Graph,
        composition: &'a Result<Composition, String>,
        config: PartitionConfig,
    ) -> PartitionEvidence<'a> {
        PartitionEvidence::of_joint(AnalyzedGraph::new(joint), forward, backward, composition, config)
    }

    /// The same from what is known of the joint graph.
    pub fn of_joint(
        joint: AnalyzedGraph<'a>,
        forward: &'a Graph,
        backward: &'a Graph,
        composition: &'a Result<Composition, String>,
        config: PartitionConfig,
    ) -> PartitionEvidence<'a> {
        let config = config.or_from_file(joint.graph);
        let (forward, backward) = (AnalyzedGraph::new(forward), AnalyzedGraph::new(backward));
        let joint_returns = returned(joint.graph);
        let forward_returns = returned(forward.graph);
        let forward_outputs = config.forward_outputs.unwrap_or(1).min(joint_returns.len());
        let (of_forward, in_forward) = twins(joint.graph, forward.graph, |_| true);
        let (of_backward, in_backward) =
            twins(joint.graph, backward.graph, |id| backward.graph.node(id).op != Op::Placeholder);
        let saved_values = forward_returns.get(forward_outputs..).unwrap_or_default();
        let saved = saved_values
            .iter()
            .filter_map(|&value| {
                let Value::Node(node) = value else { return None };
                if node.index() >= forward.graph.len() {
                    return None;
                }
                let name = forward.graph.name(node);
                let is_input = |id: &NodeId| backward.graph.node(*id).op == Op::Placeholder;
                let class = match item_of_added(joint.graph, forward.graph, node) {
                    Some((_, 0)) => ValueClass::Generator,
                    _ => class_of(forward.graph, node),
                };
                // What a part does not record is what the joint graph does.
                let recorded = || joint.graph.find(name).map(|twin| class_of(joint.graph, twin));
                let class = match class {
                    ValueClass::Nothing => recorded().unwrap_or(class),
                    class => class,
                };
                let is_named = class != ValueClass::Generator;
                Some(Saved {
                    name: name.to_string(),
                    forward: node,
                    joint: joint.graph.find(name).filter(|_| is_named),
                    backward: backward.graph.find(name).filter(is_input).filter(|_| is_named),
                    class,
                })
            })
            .collect();
        let inputs = backward.graph.ids().filter(|&id| backward.graph.node(id).op == Op::Placeholder);
        let composition = composition.as_ref().map_err(Clone::clone);
        PartitionEvidence {
            tags: joint.graph.ids().map(|id| NodeTags::of(joint.graph, id)).collect(),
            needs_tangent: tangent_dependent(&joint),
            backward_inputs: inputs.map(|id| (id, backward_input(backward.graph, id))).collect(),
            live_joint: live(&joint),
            live_backward: live(&backward),
            backward_returns: returned(backward.graph),
            composed: composition
                .as_ref()
                .ok()
                .map(|composition| Arc::new(AnalyzedGraph::new(&composition.graph))),
            composition,
            config,
            forward_outputs,
            joint_returns,
            forward_returns,
            saved,
            in_forward,
            in_backward,
            of_forward,
            of_backward,
            own_ranks: Vec::new(),
            further: Further::default(),
            values: PartitionValues::default(),
            terms: OnceCell::new(),
            alone: OnceCell::new(),
            equals: OnceCell::new(),
            parameters: OnceCell::new(),
            default_cuts: OnceCell::new(),
            joint: Arc::new(joint),
            forward,
            backward,
        }
    }

    /// The terms of the joint graph and of the composed one; `None` where there is no composed graph, or where
    /// the joint graph's list is not in order.
    pub(super) fn terms(&self) -> Option<&(TermsOf, TermsOf)> {
        let compute = || {
            let (composition, composed) = (self.composition.as_ref().ok()?, self.composed.as_ref()?);
            let mut terms = Terms::default();
            let joint = terms.number(&self.joint, &|id| self.own_draw(id));
            let keys: FxHashMap<NodeId, &Draw> =
                composition.draws.iter().map(|draw| (draw.node, draw)).collect();
            let composed = terms.number(composed, &|id| keys.get(&id).map(|draw| draw.key.clone()));
            Some((joint, composed))
        };
        self.terms.get_or_init(compute).as_ref()
    }

    /// The terms of the joint graph, whether or not the parts fit together.
    fn joint_terms(&self) -> &TermsOf {
        match self.terms() {
            Some((joint, _)) => joint,
            None => self.alone.get_or_init(|| Terms::default().number(&self.joint, &|id| self.own_draw(id))),
        }
    }

    /// The draw of a random node of the joint graph.
    fn own_draw(&self, id: NodeId) -> Option<String> {
        let graph = self.joint.graph;
        self.joint.ops.draws(graph, id).then(|| graph.name(id).to_string())
    }

    /// The nodes of the joint graph that are equal to `id` by structure, itself included, in list order.
    pub(super) fn equal_nodes(&self, id: NodeId) -> &[NodeId] {
        let equals = self.equals.get_or_init(|| {
            let mut equals: FxHashMap<Term, Vec<NodeId>> = FxHashMap::default();
            let terms = self.joint_terms();
            self.joint.graph.ids().for_each(|id| equals.entry(terms.of[id.index()]).or_default().push(id));
            equals
        });
        equals.get(&self.joint_terms().of[id.index()]).map_or(&[], Vec::as_slice)
    }

    /// For each node of the joint graph whether it is a parameter, or made of one.
    pub(super) fn parameters(&self) -> &[bool] {
        self.parameters.get_or_init(|| super::gathers::parameters(self))
    }

    /// Both parts, with what they are called.
    pub(super) fn parts(&self) -> [(&AnalyzedGraph<'a>, &'static str); 2] {
        [(&self.forward, "forward"), (&self.backward, "backward")]
    }

    /// The node of the joint graph whose bytes a saved value holds, whole or in part: its own, or, where forward adds
    /// views, casts, copies or pieces, the one that they are made of. And whether nothing but its shape is another.
    pub(super) fn shown(&self, saved: &Saved) -> Option<(NodeId, bool)> {
        let side = &self.forward;
        let (mut at, mut is_whole) = (saved.forward, true);
        if saved.class == ValueClass::Generator {
            return None;
        }
        loop {
            if let Some(twin) = self.of_forward[at.index()].or_else(|| self.computed_twice(at)) {
                return Some((twin, is_whole));
            }
            let info = side.ops.call(side.graph, at)?;
            let passes_on = info.is_view()
                || matches!(info.kind, Kind::GetItem | Kind::Cast | Kind::Move(_) | Kind::Wait);
            let (Value::Node(input), true) = (side.graph.arg(at, 0)?, passes_on) else { return None };
            let same = |id| side.graph.tensor_of(id).map(|tensor| (tensor.dtype, side.graph.numel(tensor)));
            is_whole &= same(at) == same(input);
            at = input;
        }
    }

    /// The node of the joint graph that forward computes once more in a call that it adds.
    fn computed_twice(&self, added: NodeId) -> Option<NodeId> {
        let side = &self.forward;
        if !side.only_computes(added) {
            return None;
        }
        let words = |id| spelled(side.graph, &side.ops, id);
        let same = |&&other: &&NodeId| {
            side.graph.target(other) == side.graph.target(added) && words(other) == words(added)
        };
        let others = side.edges.users(*side.edges.inputs(added).first()?).iter();
        others.filter(same).find_map(|other| self.of_forward[other.index()])
    }

    /// The calls that both graphs have: the recomputed nodes, in joint order.
    pub fn recomputed(&self) -> impl Iterator<Item = (NodeId, NodeId, NodeId)> {
        let calls = self.joint.graph.ids().filter(|&id| self.joint.graph.node(id).op == Op::Call);
        calls.filter_map(|id| Some((id, self.in_forward[id.index()]?, self.in_backward[id.index()]?)))
    }

    /// Whether a node of the joint graph has to run in the forward graph, whatever needs it.
    pub(super) fn belongs_to_forward(&self, id: NodeId) -> bool {
        match self.tags[id.index()].region {
            Some(Region::MustForward) => true,
            Some(Region::MustBackward | Region::Backward) => false,
            _ => !self.needs_tangent[id.index()],
        }
    }

    /// A finding about this triple.
    pub(super) fn finding(&self, rule: &'static str, title: impl Into<String>) -> Draft {
        let severity = super::severity_in(super::CATALOGUE, rule);
        let finding = Finding::new(rule, severity, Stage::After, title);
        Draft(Finding { ranks: self.own_ranks.clone(), ..finding })
    }

    /// Whether backward runs a node of the joint graph, for something that it returns.
    pub(super) fn runs_in_backward(&self, id: NodeId) -> bool {
        self.in_backward[id.index()].is_some_and(|twin| self.live_backward[twin.index()])
    }

    /// A node by name, with its place in the joint graph.
    pub(in crate::rules) fn mention(&self, name: &str) -> NodeMention {
        let before = self.joint.graph.find(name).map(|id| id.0);
        NodeMention { name: name.to_string(), before, after: None }
    }
}

/// A finding being told.
pub(super) struct Draft(Finding);

impl Draft {
    pub(super) fn nodes<'n>(
        mut self,
        evidence: &PartitionEvidence,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Draft {
        for name in names {
            let mention = evidence.mention(name);
            if !self.0.nodes.contains(&mention) {
                self.0.nodes.push(mention);
            }
        }
        self
    }

    pub(super) fn fact(mut self, fact: impl Into<String>) -> Draft {
        self.0.facts.push(fact.into());
        self
    }

    /// What a right result has, and what this one has.
    pub(super) fn contrast(mut self, expected: impl Into<String>, observed: impl Into<String>) -> Finding {
        (self.0.expected, self.0.observed) = (Some(expected.into()), Some(observed.into()));
        self.0
    }
}

/// What a node's value is. A generator's state is a tensor here: only who knows the joint graph can tell it from
/// others.
pub(super) fn class_of(graph: &Graph, node: NodeId) -> ValueClass {
    match graph.node(node).out {
        Out::Tensor(_) => ValueClass::Tensor,
        Out::Int(_) | Out::SymInt(_) | Out::SymBool(_) => ValueClass::Symbol,
        Out::Other(text) if graph.text(text).contains("SymFloat") => ValueClass::Symbol,
        Out::Other(_) => ValueClass::Opaque,
        Out::Tuple(_) | Out::Dict(_) => ValueClass::Tuple,
        Out::Absent | Out::None | Out::Key(_) => ValueClass::Nothing,
    }
}

/// Nodes with one name and target: by node of `part` that of `joint`, and by node of `joint` that of `part` among
/// those that `counts` names.
fn twins(
    joint: &Graph,
    part: &Graph,
    counts: impl Fn(NodeId) -> bool,
) -> (Vec<Option<NodeId>>, Vec<Option<NodeId>>) {
    let mut inverse = vec![None; joint.len()];
    let mut twin = Vec::with_capacity(part.len());
    for id in part.ids() {
        // The items of a wrapper have names of their own, which may be those of other nodes of the joint graph.
        let of_wrapper = item_of_added(joint, part, id).is_some();
        let found = joint.find(part.name(id)).filter(|&other| {
            part.node(id).op != Op::Output
                && !of_wrapper
                && (part.node(id).op == Op::Placeholder || joint.target(other) == part.target(id))
        });
        if let Some(other) = found.filter(|_| counts(id)) {
            inverse[other.index()] = Some(id);
        }
        twin.push(found);
    }
    (twin, inverse)
}

/// What depends on a tangent or a backward seed, by values and by memory: a node that reads what such a node wrote
/// depends on it too.
pub(super) fn tangent_dependent(joint: &AnalyzedGraph) -> Vec<bool> {
    let graph = joint.graph;
    let mut depends = vec![false; graph.len()];
    let versions = super::terms::Versions::new(joint);
    // Storages that such a node wrote.
    let mut tainted = vec![false; if versions.any() { joint.storages().len() } else { 0 }];
    for id in graph.ids() {
        let target = graph.target(id);
        let is_input = graph.node(id).op == Op::Placeholder;
        // Seeds are given to the backward graph alone, as tangents are.
        let mut is = is_input && (is_tangent(target) || is_backward_seed(target));
        is |= joint.edges.inputs(id).iter().any(|input| depends[input.index()]);
        if versions.any() {
            let accesses = joint.storages().accesses_by(id);
            is |= accesses.iter().any(|access| tainted[access.part.storage.index()]);
            if is {
                let writes = accesses.iter().filter(|access| access.touch == Touch::Write);
                writes.for_each(|access| tainted[access.part.storage.index()] = true);
            }
        }
        depends[id.index()] = is;
    }
    depends
}

/// The nodes that the results of a graph, its writes to inputs and its other effects need. Communication whose
/// result nobody reads is not needed.
pub(in crate::rules) fn live(side: &AnalyzedGraph) -> Vec<bool> {
    let graph = side.graph;
    let mut live = vec![false; graph.len()];
    for id in graph.ids().rev() {
        let has_effect = side.ops.call(graph, id).is_some_and(|info| {
            let communicates = info.collective().is_some() || info.kind == Kind::Wait;
            (info.effect && !communicates) || info.writes()
        });
        if live[id.index()] || has_effect || graph.node(id).op == Op::Output {
            live[id.index()] = true;
            graph.for_each_input(id, &mut |input| {
                if let Some(slot) = live.get_mut(input.index()) {
                    *slot = true;
                }
            });
        }
    }
    live
}
