//! Bodies of higher-order operators, seen through before graphs are compared.
//!
//! # The idea
//!
//! `invoke_subgraph` and calls of activation checkpointing run their bodies once and `control_deps` only orders, so these
//! are replaced by what their bodies do ([`inlined`]). Of the others (`cond`, `while_loop`, ...) a body is an argument: two
//! calls are the same if their bodies are. So bodies that are the same get one name in all graphs, and bodies that are not get different ones
//! ([`named`]), whatever they were called. Two bodies are the same if they have the same nodes, names aside, or if one
//! is judged a sound rewrite of the other. Where that is not known, they are taken to be the same, and the verdict says
//! that it rests on that: it is undecided, or a violation if nothing else differs and one body is convicted beside the
//! other.
//!
//! A call whose bodies neither write nor draw nor act is a function of its arguments. Where a body does, or where
//! nobody recorded it, the call is an operator of which nothing is known.
//!
//! # What it does not do
//!
//! It does not unroll loops, nor compare a branch with what stands elsewhere. Bodies of `flex_attention` are told apart
//! in the same way, and count as functions where they are not recorded.

use crate::analysis::bodies::{INVOKE, body, called};
use crate::graph::{Editor, Graph, NodeId, Op, OrderingEdge, Out, Tags, Tensor, Transcriber, Value};
use crate::ops::{Kind, OpInfo, Ops, Schema, views_where_strides_allow};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::LazyCell;
use std::sync::Arc;

/// Operators that are functions of their arguments if their bodies are.
const FUNCTIONS: [&str; 7] = [
    INVOKE,
    "higher_order.cond",
    "higher_order.while_loop",
    "higher_order.scan",
    "higher_order.associative_scan",
    "higher_order.map_impl",
    "higher_order.control_deps",
];

/// Kernels that run their bodies on single numbers: what these return is no memory, and unrecorded ones are functions.
const KERNELS: [&str; 2] = ["higher_order.flex_attention", "higher_order.flex_attention_backward"];

/// Whether a graph has anything to be seen through.
pub fn has_bodies(graph: &Graph) -> bool {
    let is_higher =
        |id: NodeId| graph.node(id).op == Op::Call && graph.target(id).starts_with("higher_order.");
    !graph.subgraphs.is_empty() || graph.ids().any(is_higher)
}

/// A call that is replaced by its body.
pub(super) struct Expansion {
    pub(super) body: Graph,
    pub(super) given: Vec<NodeId>,
    /// Nodes that come before all of the body.
    after: Vec<NodeId>,
    /// What the body returns, and whether that is a list.
    pub(super) returned: Vec<Option<NodeId>>,
    is_list: bool,
}

impl Expansion {
    /// The nodes that come before the body and are not given to it.
    fn only_ordered(&self) -> Vec<NodeId> {
        self.after.iter().copied().filter(|before| !self.given.contains(before)).collect()
    }
}

/// The node of a value, if it is one of the graph.
fn node(graph: &Graph, value: Value) -> Option<NodeId> {
    match value {
        Value::Node(id) if id.index() < graph.len() => Some(id),
        _ => None,
    }
}

/// How a call is replaced by its body; `None` where it has to stay.
pub(super) fn expansion(graph: &Graph, id: NodeId) -> Option<Expansion> {
    let called = called(graph, id).filter(|called| called.misfit().is_none())?;
    let nodes = |values: &[Value]| values.iter().map(|&value| node(graph, value)).collect::<Option<Vec<_>>>();
    let (after, given) = (nodes(called.after)?, nodes(called.given)?);
    let body = inlined(called.body).unwrap_or_else(|| Graph::clone(called.body));
    let [result] = *body.args(body.output()?) else { return None };
    let returned = |value: Value| match value {
        Value::None => Some(None),
        value => node(&body, value).map(Some),
    };
    let (returned, is_list) = match result {
        Value::List(span) => {
            (body.values(span).iter().map(|&value| returned(value)).collect::<Option<Vec<_>>>()?, true)
        }
        value => (vec![returned(value)?], false),
    };
    let has_order = body.ordering.is_empty() && body.renames.is_empty() && body.clusters.is_empty();
    has_order.then_some(Expansion { body, given, after, returned, is_list })
}

/// The index that a node takes out of another one.
fn item(graph: &Graph, id: NodeId) -> Option<(NodeId, usize)> {
    match (graph.target(id), graph.args(id)) {
        ("operator.getitem", &[Value::Node(of), Value::Int(index)]) => {
            Some((of, usize::try_from(index).ok()?))
        }
        _ => None,
    }
}

/// The graph with the constants of its bodies under names of their own: each module has attributes of its own, and two
/// of one name are two constants.
pub fn with_own_constants(graph: &Graph) -> Graph {
    fn within(body: &Graph, path: &str) -> Graph {
        let mut own = body.clone();
        for id in body.ids().filter(|&id| body.node(id).op == Op::GetAttr) {
            let attribute = body.target(id);
            if body.subgraph(attribute).is_none() {
                own.node_mut(id).target = own.intern_target(&format!("{path}.{attribute}"));
            }
        }
        for (attribute, inner) in &mut own.subgraphs {
            *inner = Arc::new(within(inner, &format!("{path}.{attribute}")));
        }
        own
    }
    let mut own = graph.clone();
    for (attribute, body) in &mut own.subgraphs {
        *body = Arc::new(within(body, attribute));
    }
    own
}

/// The graph with bodies in the place of `invoke_subgraph` and `control_deps`; `None` where nothing changes.
pub fn inlined(graph: &Graph) -> Option<Graph> {
    if graph.subgraphs.is_empty() {
        return None;
    }
    let calls = graph.ids().filter(|&id| graph.node(id).op == Op::Call);
    let mut expansions: FxHashMap<NodeId, Expansion> =
        calls.filter_map(|id| Some((id, expansion(graph, id)?))).collect();
    // A result that is used as a whole has no node in the body, but in an order: there its nodes stand for it. The
    // last come first, since it is an order only where the call behind it is replaced too.
    for id in graph.ids().rev() {
        let ordered: Vec<NodeId> = expansions.get(&id).map(|own| own.only_ordered()).unwrap_or_default();
        for input in graph.inputs(id) {
            let Some(expansion) = expansions.get(&input) else { continue };
            let taken = match item(graph, id) {
                Some((of, index)) if of == input && expansion.is_list => {
                    expansion.returned.get(index).copied().flatten().is_some()
                }
                _ if !expansion.is_list => expansion.returned[0].is_some(),
                _ => ordered.contains(&input),
            };
            if !taken || input >= id {
                expansions.remove(&input);
            }
        }
    }
    if expansions.is_empty() {
        return None;
    }
    Some(Inliner::new(graph, expansions).run())
}

struct Inliner<'g> {
    graph: &'g Graph,
    expansions: FxHashMap<NodeId, Expansion>,
    to: Graph,
    map: Vec<Option<NodeId>>,
    /// The nodes that stand for each call that was replaced.
    images: FxHashMap<NodeId, Vec<NodeId>>,
    results: FxHashMap<NodeId, Vec<Option<NodeId>>>,
    names: FxHashSet<String>,
}

impl<'g> Inliner<'g> {
    fn new(graph: &'g Graph, expansions: FxHashMap<NodeId, Expansion>) -> Inliner<'g> {
        let mut to = Graph::with_capacity(graph.len());
        to.name.clone_from(&graph.name);
        to.kind.clone_from(&graph.kind);
        to.world = graph.world.clone();
        to.symbols.clone_from(&graph.symbols);
        to.facts.clone_from(&graph.facts);
        to.subgraphs.clone_from(&graph.subgraphs);
        Inliner {
            graph,
            expansions,
            to,
            map: vec![None; graph.len()],
            images: FxHashMap::default(),
            results: FxHashMap::default(),
            names: graph.ids().map(|id| graph.name(id).to_string()).collect(),
        }
    }

    fn run(mut self) -> Graph {
        let graph = self.graph;
        for id in graph.ids() {
            if let Some(expansion) = self.expansions.remove(&id) {
                self.expand(id, &expansion);
                continue;
            }
            let taken = item(graph, id).and_then(|(of, index)| self.results.get(&of)?.get(index).copied());
            match taken {
                Some(result) => self.map[id.index()] = result,
                None => {
                    let mut copier = Transcriber { from: graph, to: &mut self.to, map: &mut self.map };
                    let new = copier.node(id, graph.name(id));
                    self.to.node_mut(new).desc = None;
                    self.map[id.index()] = Some(new);
                }
            }
        }
        self.to.resolve_references();
        for edge in &graph.ordering {
            self.order(edge.before, &self.image(edge.after));
        }
        without_unused_attributes(self.to)
    }

    /// The nodes that stand for one of the graph.
    fn image(&self, id: NodeId) -> Vec<NodeId> {
        match self.images.get(&id) {
            Some(nodes) => nodes.clone(),
            None => self.map[id.index()].into_iter().collect(),
        }
    }

    /// Puts what stands for a node before other nodes.
    fn order(&mut self, before: NodeId, others: &[NodeId]) {
        for before in self.image(before) {
            self.to.ordering.extend(others.iter().map(|&after| OrderingEdge { before, after }));
        }
    }

    fn expand(&mut self, id: NodeId, expansion: &Expansion) {
        let (graph, body) = (self.graph, &expansion.body);
        let mut map = vec![None; body.len()];
        let mut given = expansion.given.iter();
        let mut nodes = Vec::new();
        let custom =
            graph.tags(id).and_then(|tags| tags.custom).map(|custom| self.to.intern(graph.text(custom)));
        for inner in body.ids() {
            match body.node(inner).op {
                Op::Placeholder => {
                    map[inner.index()] = given.next().and_then(|&outer| self.map[outer.index()]);
                }
                Op::Output => {}
                Op::Call | Op::GetAttr => {
                    let name = self.fresh_name(&format!("{}_{}", graph.name(id), body.name(inner)));
                    let new = Transcriber { from: body, to: &mut self.to, map: &mut map }.node(inner, &name);
                    self.rename_attribute(new, body, inner, graph.name(id));
                    // It runs on the stream of the call, unless it names one.
                    let own = self.to.tags(new).cloned().unwrap_or_default();
                    if custom.is_some() && own.custom.is_none() {
                        self.to.node_mut(new).tags = self.to.intern_tags(Tags { custom, ..own });
                    }
                    map[inner.index()] = Some(new);
                    nodes.push(new);
                }
            }
        }
        let result = |inner: &Option<NodeId>| inner.and_then(|inner| map[inner.index()]);
        let results: Vec<Option<NodeId>> = expansion.returned.iter().map(result).collect();
        for &before in &expansion.after {
            self.order(before, &nodes);
        }
        self.images.insert(id, nodes);
        match expansion.is_list {
            true => _ = self.results.insert(id, results),
            false => self.map[id.index()] = results[0],
        }
    }

    /// An attribute of a body is another one than that of the graph around it.
    fn rename_attribute(&mut self, new: NodeId, body: &Graph, inner: NodeId, call: &str) {
        if body.node(inner).op != Op::GetAttr {
            return;
        }
        let Some(of_body) = body.subgraph(body.target(inner)) else { return };
        let name = format!("{call}.{}", body.target(inner));
        if self.to.subgraph(&name).is_none() {
            self.to.subgraphs.push((name.clone(), of_body.clone()));
        }
        self.to.node_mut(new).target = self.to.intern_target(&name);
    }

    fn fresh_name(&mut self, name: &str) -> String {
        let mut fresh = name.to_string();
        let mut count = 1;
        while !self.names.insert(fresh.clone()) {
            count += 1;
            fresh = format!("{name}_{count}");
        }
        fresh
    }
}

/// The graph without bodies that nothing takes any more.
fn without_unused_attributes(graph: Graph) -> Graph {
    let used: FxHashSet<NodeId> = graph.ids().flat_map(|id| graph.inputs(id)).collect();
    let is_unused = |&id: &NodeId| {
        graph.node(id).op == Op::GetAttr && !used.contains(&id) && graph.subgraph(graph.target(id)).is_some()
    };
    let unused: Vec<NodeId> = graph.ids().filter(is_unused).collect();
    if unused.is_empty() {
        return graph;
    }
    let mut editor = Editor::from_owned(graph);
    for id in unused {
        editor.erase(id);
    }
    editor.finish()
}

/// The graph with views of what a body is given for items that show it: what `invoke_subgraph` returns besides is new
/// memory.
pub fn with_items_of_inputs(mut graph: Graph) -> Graph {
    let whole = taken_whole(&graph);
    for id in graph.ids() {
        let Some((call, index)) = item(&graph, id).filter(|(call, _)| graph.target(*call) == INVOKE) else {
            continue;
        };
        if whole.contains(&call) {
            continue;
        }
        let [module, _, given @ ..] = graph.args(call) else { continue };
        let shown = body(&graph, *module).and_then(|body| shown_input(body, index));
        let Some(&tensor) = shown.and_then(|place| given.get(place)) else { continue };
        let (Some(shown), Some(own)) =
            (node(&graph, tensor).and_then(|tensor| graph.tensor_of(tensor)), graph.tensor_of(id))
        else {
            continue;
        };
        let (target, args) = match (shown.shape, shown.stride) == (own.shape, own.stride) {
            true => ("aten.alias.default", vec![tensor]),
            false => {
                let (sizes, strides) = (graph.sizes(own.shape), graph.sizes(own.stride));
                let (Some(sizes), Some(strides)) = (sizes, strides) else { continue };
                let offset = Value::Int(own.offset);
                let mut list = |numbers: Vec<i64>| {
                    let numbers: Vec<Value> = numbers.into_iter().map(Value::Int).collect();
                    Value::List(graph.push_values(&numbers))
                };
                ("aten.as_strided.default", vec![tensor, list(sizes), list(strides), offset])
            }
        };
        let (target, args) = (graph.intern_target(target), graph.push_values(&args));
        let node = graph.node_mut(id);
        (node.target, node.args) = (target, args);
    }
    // A tracer that has seen a body gives the next call of it the storages of the first.
    for id in graph.ids() {
        let call = item(&graph, id).map_or(id, |(call, _)| call);
        if FUNCTIONS.contains(&graph.target(call)) {
            let out = graph.node(id).out;
            graph.node_mut(id).out = without_storages(&mut graph, out);
        }
    }
    graph
}

fn without_storages(graph: &mut Graph, out: Out) -> Out {
    match out {
        Out::Tensor(id) => {
            let known = Tensor { storage: None, ..*graph.tensor(id) };
            Out::Tensor(graph.push_tensor(known))
        }
        Out::Tuple(span) => {
            let outs: Vec<Out> = graph.outs(span).to_vec();
            let outs: Vec<Out> = outs.into_iter().map(|out| without_storages(graph, out)).collect();
            Out::Tuple(graph.push_outs(&outs))
        }
        out => out,
    }
}

/// The nodes whose results are taken as a whole, and not only by items.
fn taken_whole(graph: &Graph) -> FxHashSet<NodeId> {
    let mut whole = FxHashSet::default();
    for id in graph.ids() {
        let of = item(graph, id).map(|(of, _)| of);
        whole.extend(graph.inputs(id).into_iter().filter(|&input| Some(input) != of));
    }
    whole
}

/// The place of the input of a body that its result of that number is, or is a view of.
fn shown_input(body: &Graph, index: usize) -> Option<usize> {
    let [Value::List(results)] = *body.args(body.output()?) else { return None };
    let result = node(body, *body.values(results).get(index)?)?;
    let shown = origin(body, &Ops::of(body), result);
    body.ids().filter(|&id| body.node(id).op == Op::Placeholder).position(|input| input == shown)
}

/// Whether what a body does is seen in what it returns, and nowhere else: new memory, written by nobody else. Views of
/// inputs are none of its results where `items_apart` ([`with_items_of_inputs`]).
fn is_function(body: &Graph, items_apart: bool) -> bool {
    let ops = Ops::of(body);
    returns_new_memory(body, &ops, items_apart) && !acts(body, &ops)
}

/// Whether a body may do more than compute: write, draw, communicate, or what nobody knows.
fn acts(body: &Graph, ops: &Ops) -> bool {
    let whole = LazyCell::new(|| taken_whole(body));
    body.ids().filter(|&id| body.node(id).op == Op::Call).any(|id| {
        let info = ops.get(body, id);
        info.effect
            || info.writes()
            || info.collective().is_some()
            || [Kind::Unknown, Kind::Wait].contains(&info.kind)
            || ops.draws(body, id)
            || !are_functions(body, id, &|call| whole.contains(&call))
    })
}

/// Whether nothing that a body returns is, or may show, what it is given; what certainly shows it aside, where
/// `items_apart`.
fn returns_new_memory(body: &Graph, ops: &Ops, items_apart: bool) -> bool {
    let returned = body.output().into_iter().flat_map(|output| body.inputs(output));
    let shows_input = |id: NodeId| body.node(origin(body, ops, id)).op == Op::Placeholder;
    let mut open: Vec<NodeId> = returned.filter(|&id| !(items_apart && shows_input(id))).collect();
    let mut seen: FxHashSet<NodeId> = open.iter().copied().collect();
    while let Some(id) = open.pop() {
        if body.node(id).op != Op::Call {
            return false;
        }
        // What views and items show, and what an operator may hand back.
        let info = ops.get(body, id);
        let hands_on = info.is_view() || info.kind == Kind::GetItem || info.schema.is_none();
        if hands_on {
            open.extend(body.inputs(id).into_iter().filter(|&input| seen.insert(input)));
        }
    }
    true
}

/// What a node is a view of, through views that never copy.
fn origin(body: &Graph, ops: &Ops, id: NodeId) -> NodeId {
    let may_copy = |schema: &Schema| {
        views_where_strides_allow(schema) || ["contiguous", "to", "type_as"].contains(&schema.name.as_str())
    };
    let is_plain =
        |info: &OpInfo| info.is_view() && info.schema.as_ref().is_some_and(|schema| !may_copy(schema));
    let mut at = id;
    while ops.call(body, at).is_some_and(is_plain) {
        match body.inputs(at).first() {
            Some(&input) if input < at => at = input,
            _ => break,
        }
    }
    at
}

/// Whether all bodies that a call takes are recorded, and are functions; also where it takes none. `is_whole` says
/// whether the results of a call are taken as a whole.
fn are_functions(graph: &Graph, id: NodeId, is_whole: &dyn Fn(NodeId) -> bool) -> bool {
    let items_apart = graph.target(id) == INVOKE && !is_whole(id);
    let mut attributes = graph.inputs(id).into_iter().filter(|&input| is_module(graph, input));
    attributes
        .all(|input| graph.subgraph(graph.target(input)).is_some_and(|body| is_function(body, items_apart)))
}

/// Whether a call is no function of its arguments, because of what its bodies do.
fn acts_by_its_bodies(graph: &Graph, id: NodeId, is_whole: &dyn Fn(NodeId) -> bool) -> bool {
    let target = graph.target(id);
    let mut bodies = graph.inputs(id).into_iter().filter_map(|input| body(graph, Value::Node(input)));
    graph.node(id).op == Op::Call
        && (FUNCTIONS.contains(&target) && !are_functions(graph, id, is_whole)
            || KERNELS.contains(&target) && bodies.any(|body| acts(body, &Ops::of(body))))
}

/// Whether a node gets a sub-module, as far as is known.
fn is_module(graph: &Graph, id: NodeId) -> bool {
    graph.node(id).op == Op::GetAttr && graph.tensor_of(id).is_none()
}

/// A body that was taken for another one, though the two are not known to do the same.
pub struct Assumed {
    /// The attribute that holds it.
    pub attribute: String,
    /// What the first graph has under that name, if anything.
    pub before: Option<Graph>,
    /// What another graph has.
    pub after: Graph,
}

/// Bodies by the names that they have in all graphs.
#[derive(Default)]
struct Names(Vec<Named>);

struct Named {
    name: String,
    attribute: String,
    /// The body as bodies are compared, and as it is read; `None` where nobody recorded it.
    body: Option<[Graph; 2]>,
}

/// Gives equal bodies of all `graphs` one name, and different ones different names. `is_same` says of two bodies that
/// are not equal node for node whether they do the same. With `assume` a body of a later graph that is none of the
/// first one's has the name of the one that stood under its attribute: it is assumed to do the same, and returned.
pub fn named(graphs: &mut [Graph], assume: bool, is_same: &dyn Fn(&Graph, &Graph) -> bool) -> Vec<Assumed> {
    let (mut names, mut assumed) = (Names::default(), Vec::new());
    for (number, graph) in graphs.iter_mut().enumerate() {
        let ids: Vec<NodeId> = graph.ids().filter(|&id| graph.node(id).op == Op::GetAttr).collect();
        let recorded: Vec<(NodeId, String, Option<[Graph; 2]>)> = ids
            .into_iter()
            .filter(|&id| is_module(graph, id))
            .map(|id| {
                let attribute = graph.target(id).to_string();
                let body = graph.subgraph(&attribute).map(|body| canonical(body, graph));
                (id, attribute, body)
            })
            .collect();
        for (id, attribute, body) in recorded {
            // What stands under one attribute on both sides is compared first.
            let stood = names.0.iter().find(|known| {
                assume && number > 0 && known.attribute == attribute && known.body.is_some() == body.is_some()
            });
            let found = match stood {
                Some(stood) => is_one(stood, &attribute, &body, is_same).then(|| stood.name.clone()),
                None => names.find(&attribute, &body, is_same),
            };
            let name = match found {
                Some(name) => name,
                None => {
                    let (name, before) = match stood {
                        Some(stood) => {
                            (stood.name.clone(), stood.body.as_ref().map(|[_, read]| read.clone()))
                        }
                        None => (names.fresh(&attribute), None),
                    };
                    if let (true, Some([_, after])) = (assume && number > 0, &body) {
                        assumed.push(Assumed { attribute: attribute.clone(), before, after: after.clone() });
                    }
                    if stood.is_none() {
                        names.0.push(Named { name: name.clone(), attribute: attribute.clone(), body });
                    }
                    name
                }
            };
            graph.node_mut(id).target = graph.intern_target(&name);
            if let Some(body) = graph.subgraph(&attribute).cloned()
                && graph.subgraph(&name).is_none()
            {
                graph.subgraphs.push((name, body));
            }
        }
        let whole = taken_whole(graph);
        for id in graph.ids() {
            if acts_by_its_bodies(graph, id, &|call| whole.contains(&call)) {
                let target = format!("{} of an unknown body, or one that acts", graph.target(id));
                graph.node_mut(id).target = graph.intern_target(&target);
            }
        }
    }
    assumed
}

/// The calls that take bodies: of what operator, and of which bodies.
pub fn calls(graph: &Graph) -> Vec<(String, Vec<String>)> {
    let of = |id: NodeId| {
        let modules = graph.inputs(id).into_iter().filter(|&input| is_module(graph, input));
        let names: Vec<String> = modules.map(|input| graph.target(input).to_string()).collect();
        (!names.is_empty()).then(|| (graph.target(id).to_string(), names))
    };
    let mut calls: Vec<(String, Vec<String>)> =
        graph.ids().filter(|&id| graph.node(id).op == Op::Call).filter_map(of).collect();
    calls.sort();
    calls
}

/// A body with the names and the world that bodies are compared under, and with its own names.
fn canonical(body: &Graph, of: &Graph) -> [Graph; 2] {
    let mut read = inlined(body).unwrap_or_else(|| body.clone());
    // Who communicates with nobody does the same on each rank.
    let ops = Ops::of(&read);
    if read.ids().any(|id| ops.call(&read, id).is_some_and(|info| info.collective().is_some())) {
        read.world = of.world.clone();
    }
    read.symbols.clone_from(&of.symbols);
    [read.with_names(|id| format!("n{}", id.0)), read]
}

/// Whether a body is the one of that name, node for node.
fn is_equal(known: &Named, attribute: &str, body: &Option<[Graph; 2]>) -> bool {
    match (&known.body, body) {
        (Some([known, _]), Some([body, _])) => known.difference(body).is_none(),
        // Of bodies that nobody recorded those of one name are taken to be one.
        (None, None) => known.attribute == attribute,
        _ => false,
    }
}

/// Whether a body is the one of that name, node for node or by what it does.
fn is_one(
    known: &Named,
    attribute: &str,
    body: &Option<[Graph; 2]>,
    is_same: &dyn Fn(&Graph, &Graph) -> bool,
) -> bool {
    let does_the_same = || match (&known.body, body) {
        (Some([known, _]), Some([body, _])) => takes_the_same(known, body) && is_same(known, body),
        _ => false,
    };
    is_equal(known, attribute, body) || does_the_same()
}

/// Whether two bodies take tensors of the same sizes and dtypes: others cannot be given the same.
fn takes_the_same(one: &Graph, other: &Graph) -> bool {
    let taken = |graph: &Graph| {
        let inputs = graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder);
        let types = inputs.map(|id| {
            graph.tensor_of(id).map(|tensor| {
                let sizes = graph.dims(tensor.shape).iter().map(|dim| dim.known()).collect::<Vec<_>>();
                (sizes, tensor.dtype)
            })
        });
        types.collect::<Vec<_>>()
    };
    taken(one) == taken(other)
}

impl Names {
    /// The name of a body that is the same.
    fn find(
        &self,
        attribute: &str,
        body: &Option<[Graph; 2]>,
        is_same: &dyn Fn(&Graph, &Graph) -> bool,
    ) -> Option<String> {
        // What two bodies do is asked last: it takes a judgement.
        let equal = self.0.iter().find(|known| is_equal(known, attribute, body));
        let found = equal.or_else(|| self.0.iter().find(|known| is_one(known, attribute, body, is_same)));
        found.map(|known| known.name.clone())
    }

    fn fresh(&self, attribute: &str) -> String {
        let mut name = attribute.to_string();
        let mut count = 1;
        while self.0.iter().any(|known| known.name == name) {
            count += 1;
            name = format!("{attribute} ({count})");
        }
        name
    }
}
