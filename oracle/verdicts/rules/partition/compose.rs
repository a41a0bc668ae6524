//! Forward and backward put together again: one graph that runs the forward graph, then the backward graph on the
//! values that the forward graph saved and on the tangents.
//!
//! The composed graph has the inputs of the joint graph and its outputs in its order, so that the two can be compared
//! like a graph before and after any other pass. A saved value is the very node that the forward graph returns: what
//! the forward graph writes to its storage later is seen, as at run time.
//!
//! # What is not copied
//!
//! - The wrappers of random operators that are drawn once and replayed (`run_and_save_rng_state`,
//!   `run_with_rng_state`): the operator itself stands in their place, and both executions are marked as one [`Draw`].
//!   Wrappers that the joint graph itself has, since an earlier partition put them there, are copied like other calls.

use crate::graph::Transcriber;
use crate::graph::{Graph, NodeId, Op, Out, Value};
use crate::ops::Ops;
use rustc_hash::FxHashSet;

/// Which graph a node of the composed graph comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// An input, or the output.
    Interface,
    /// The forward graph.
    Forward,
    /// The backward graph.
    Backward,
}

/// One execution of a random operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Draw {
    /// The node of the composed graph.
    pub node: NodeId,
    /// What is drawn: executions with one key draw the same numbers. The name of the joint graph's node for the
    /// first execution and for its replay.
    pub key: String,
}

/// Forward and backward as one graph.
#[derive(Clone, Debug)]
pub struct Composition {
    /// The graph.
    pub graph: Graph,
    /// Where each node comes from.
    pub origin: Vec<Origin>,
    /// The node of the joint graph with the name that each node has in its own graph.
    pub twin: Vec<Option<NodeId>>,
    /// What stands for each node of the forward graph.
    pub of_forward: Vec<Option<NodeId>>,
    /// What stands for each node of the backward graph.
    pub of_backward: Vec<Option<NodeId>>,
    /// Random draws, in order of execution.
    pub draws: Vec<Draw>,
}

/// How a random operator is wrapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wrapper {
    /// Draws, and returns (state before, value).
    Save,
    /// Draws from the state that is its first argument.
    Replay,
    /// Draws from a generator given as a keyword argument.
    Generator,
}

/// The wrapper that a node of a part is, if the partition put it there. The joint graph may have wrappers of its own,
/// where it was traced from an earlier partition: those are calls like others.
pub(super) fn added_wrapper(joint: &Graph, part: &Graph, id: NodeId) -> Option<Wrapper> {
    let kind = wrapper(part, id)?;
    let is_own = joint.find(part.name(id)).is_some_and(|twin| {
        wrapper(joint, twin) == Some(kind)
            && wrapped_target(joint, twin, kind) == wrapped_target(part, id, kind)
    });
    // New wrappers may have the names of old ones that are not in this part, but they take states that are handed over.
    let takes_state = matches!(
        (kind, part.arg(id, 0)),
        (Wrapper::Replay, Some(Value::Node(state)))
            if state.index() < part.len() && is_generator_input(part.target(state))
    );
    (!is_own || takes_state).then_some(kind)
}

/// Whether a node of a part is an item of a wrapper that the partition put there: the state, or the value.
pub(super) fn item_of_added(joint: &Graph, part: &Graph, id: NodeId) -> Option<(NodeId, i64)> {
    item_of(part, id).filter(|&(parent, _)| added_wrapper(joint, part, parent) == Some(Wrapper::Save))
}

/// Whether a node draws from a state or a generator that it is given.
pub(super) fn is_from_state(graph: &Graph, id: NodeId) -> bool {
    matches!(wrapper(graph, id), Some(Wrapper::Replay | Wrapper::Generator))
}

/// Whether a node draws from a generator that it is given, which goes on as it draws.
pub(in crate::rules) fn draws_from_generator(graph: &Graph, id: NodeId) -> bool {
    wrapper(graph, id) == Some(Wrapper::Generator)
}

/// The wrapper that a node is. Source: `torch._prims.rng_prims`.
fn wrapper(graph: &Graph, id: NodeId) -> Option<Wrapper> {
    if graph.node(id).op != Op::Call {
        return None;
    }
    match graph.target(id).rsplit('.').next()? {
        "run_and_save_rng_state" => Some(Wrapper::Save),
        "run_with_rng_state" => Some(Wrapper::Replay),
        "graphsafe_run_with_rng_state" => Some(Wrapper::Generator),
        _ => None,
    }
}

/// The operator that a wrapper runs.
pub(super) fn wrapped_target(graph: &Graph, id: NodeId, wrapper: Wrapper) -> Option<&str> {
    match graph.arg(id, usize::from(wrapper == Wrapper::Replay))? {
        Value::Function(name) | Value::Str(name) => Some(graph.text(name)),
        _ => None,
    }
}

/// The values that a graph returns, nested lists and mappings flattened.
pub fn returned(graph: &Graph) -> Vec<Value> {
    leaves(graph).0
}

/// The keys of the mappings that a graph returns.
pub fn returned_keys(graph: &Graph) -> Vec<&str> {
    leaves(graph).1
}

fn leaves(graph: &Graph) -> (Vec<Value>, Vec<&str>) {
    graph.output().map(|output| leaves_of(graph, graph.args(output))).unwrap_or_default()
}

fn leaves_of<'g>(graph: &'g Graph, values: &[Value]) -> (Vec<Value>, Vec<&'g str>) {
    fn walk<'g>(graph: &'g Graph, values: &[Value], found: &mut (Vec<Value>, Vec<&'g str>)) {
        for &value in values {
            match value {
                Value::List(span) => walk(graph, graph.values(span), found),
                Value::Dict(span) => {
                    for pair in graph.values(span).chunks_exact(2) {
                        found.1.push(if let Value::Str(key) = pair[0] { graph.text(key) } else { "" });
                        walk(graph, &pair[1..], found);
                    }
                }
                value => found.0.push(value),
            }
        }
    }
    let mut found = (Vec::new(), Vec::new());
    walk(graph, values, &mut found);
    found
}

/// The same graph with its results in one list; `None` where they are. Lists that hold one behind the `own`-th result
/// stay.
pub fn with_flat_output(graph: &Graph, own: usize) -> Option<Graph> {
    let output = graph.output()?;
    let is_nested = |value: &Value| matches!(value, Value::List(_) | Value::Dict(_));
    let top = match graph.args(output) {
        [Value::List(span)] => graph.values(*span),
        args => args,
    };
    if !top.iter().any(is_nested) {
        return None;
    }
    let mut results = Vec::with_capacity(top.len());
    let mut count = 0;
    for &value in top {
        let leaves = leaves_of(graph, &[value]).0;
        count += leaves.len();
        match count <= own {
            true => results.extend(leaves),
            false => results.push(value),
        }
    }
    let mut flat = graph.clone();
    let list = flat.list(&results);
    let args = flat.push_values(&[list]);
    flat.node_mut(output).args = args;
    Some(flat)
}

/// The nodes among the values that a graph returns, from the `skip`-th value on.
pub(super) fn returned_nodes(graph: &Graph, skip: usize) -> Vec<NodeId> {
    let node = |value| match value {
        Value::Node(id) if id.index() < graph.len() => Some(id),
        _ => None,
    };
    returned(graph).into_iter().skip(skip).filter_map(node).collect()
}

/// Whether an input that the joint graph does not have may be given to a part: state of random generators.
pub(super) fn is_generator_input(target: &str) -> bool {
    ["rng_state_output_", "fwd_rng_state_", "bwd_rng_state_"].iter().any(|prefix| target.contains(prefix))
}

/// Composes `forward` and `backward`, of which the first `forward_outputs` results of `forward` are the joint graph's.
///
/// # Errors
/// Why they do not fit together: something needed is neither computed, nor saved, nor an input; or there are fewer
/// results than the joint graph has.
pub fn compose(
    joint: &Graph,
    forward: &Graph,
    backward: &Graph,
    forward_outputs: usize,
) -> Result<Composition, String> {
    let mut this = Composer::new(joint, forward, backward);
    this.inputs();
    let of_forward = this.forward()?;
    let of_backward = this.backward(&of_forward, forward_outputs)?;
    this.output(&of_forward, &of_backward, forward_outputs)?;
    Ok(Composition {
        graph: this.graph,
        origin: this.origin,
        twin: this.twin,
        of_forward,
        of_backward,
        draws: this.draws,
    })
}

struct Composer<'a> {
    joint: &'a Graph,
    forward: &'a Graph,
    backward: &'a Graph,
    graph: Graph,
    origin: Vec<Origin>,
    twin: Vec<Option<NodeId>>,
    draws: Vec<Draw>,
    /// The keys of `draws`.
    drawn: FxHashSet<String>,
    /// Operators of the two parts.
    ops: [Ops; 2],
    /// Random nodes of the joint graph that the forward graph does not have under their names, in joint order.
    wrapped: Vec<NodeId>,
    /// Draws whose state is kept, in order.
    states: Vec<NodeId>,
}

impl<'a> Composer<'a> {
    fn new(joint: &'a Graph, forward: &'a Graph, backward: &'a Graph) -> Composer<'a> {
        let ops = Ops::of(joint);
        let is_plain = |id: NodeId| {
            forward.find(joint.name(id)).is_some_and(|twin| forward.target(twin) == joint.target(id))
        };
        let wrapped = joint.ids().filter(|&id| ops.draws(joint, id) && !is_plain(id)).collect();
        let mut graph = Graph::with_capacity(forward.len() + backward.len());
        graph.name = format!("{} composed", joint.name);
        graph.world = joint.world.clone();
        for part in [joint, forward, backward] {
            for symbol in &part.symbols {
                if !graph.symbols.iter().any(|known| known.name == symbol.name) {
                    graph.symbols.push(symbol.clone());
                }
            }
            for body in &part.subgraphs {
                if graph.subgraph(&body.0).is_none() {
                    graph.subgraphs.push(body.clone());
                }
            }
            for fact in &part.facts {
                if !graph.facts.iter().any(|known| known.0 == fact.0) {
                    graph.facts.push(fact.clone());
                }
            }
        }
        Composer {
            joint,
            forward,
            backward,
            graph,
            origin: Vec::new(),
            twin: Vec::new(),
            draws: Vec::new(),
            drawn: FxHashSet::default(),
            ops: [Ops::of(forward), Ops::of(backward)],
            wrapped,
            states: Vec::new(),
        }
    }

    /// The inputs of the joint graph.
    fn inputs(&mut self) {
        let joint = self.joint;
        let mut map = vec![None; joint.len()];
        for id in joint.ids().filter(|&id| joint.node(id).op == Op::Placeholder) {
            Transcriber { from: joint, to: &mut self.graph, map: &mut map }.node(id, joint.name(id));
            self.origin.push(Origin::Interface);
            self.twin.push(Some(id));
        }
    }

    /// The input of the joint graph with this name.
    fn input(&self, name: &str) -> Option<NodeId> {
        self.graph.find(name).filter(|&id| self.origin[id.index()] == Origin::Interface)
    }

    fn forward(&mut self) -> Result<Vec<Option<NodeId>>, String> {
        let forward = self.forward;
        let mut map = vec![None; forward.len()];
        for id in forward.ids() {
            let name = forward.name(id);
            match forward.node(id).op {
                Op::Placeholder => {
                    map[id.index()] = self.input(name);
                    if map[id.index()].is_none() && !is_generator_input(forward.target(id)) {
                        return Err(format!("forward takes {name}, which is no input of the joint graph"));
                    }
                }
                Op::Output => {}
                Op::Call | Op::GetAttr => self.copy(forward, id, &mut map, Origin::Forward)?,
            }
        }
        Ok(map)
    }

    fn backward(
        &mut self,
        of_forward: &[Option<NodeId>],
        forward_outputs: usize,
    ) -> Result<Vec<Option<NodeId>>, String> {
        let (forward, backward) = (self.forward, self.backward);
        let saved = returned(forward);
        let saved = saved.get(forward_outputs..).unwrap_or_default().iter();
        let node_of = |value: &Value| if let Value::Node(node) = *value { Some(node) } else { None };
        let saved: FxHashSet<NodeId> = saved.filter_map(node_of).collect();
        let mut map = vec![None; backward.len()];
        for id in backward.ids() {
            let name = backward.name(id);
            let node = backward.node(id);
            let twin = forward.find(name);
            match node.op {
                Op::Placeholder => {
                    let saved = twin.filter(|twin| saved.contains(twin));
                    let found = match saved {
                        Some(twin) => of_forward.get(twin.index()).copied().flatten(),
                        None => self.input(name).filter(|_| super::evidence::is_backward_only(backward, id)),
                    };
                    if found.is_none() && !is_generator_input(backward.target(id)) {
                        return Err(format!("backward takes {name}, which forward does not save"));
                    }
                    map[id.index()] = found;
                }
                Op::Output => {}
                Op::Call | Op::GetAttr => self.copy(backward, id, &mut map, Origin::Backward)?,
            }
        }
        Ok(map)
    }

    /// Copies a node of a part, with a wrapper taken off.
    fn copy(
        &mut self,
        part: &'a Graph,
        id: NodeId,
        map: &mut [Option<NodeId>],
        origin: Origin,
    ) -> Result<(), String> {
        let name = part.name(id);
        let which = if origin == Origin::Forward { "forward" } else { "backward" };
        // The items of a wrapper: the state, which is dropped, and the value.
        if let Some((parent, index)) = item_of_added(self.joint, part, id) {
            map[id.index()] = map[parent.index()].filter(|_| index == 1);
            return Ok(());
        }
        let fresh = self.fresh_name(name);
        let kind = added_wrapper(self.joint, part, id);
        let mut twin = self.joint.find(name);
        let new = match kind {
            None => Transcriber { from: part, to: &mut self.graph, map }.node(id, &fresh),
            Some(kind) => {
                let target = wrapped_target(part, id, kind)
                    .ok_or_else(|| format!("{which}: {name} does not say what it runs"))?;
                twin = self.take_wrapped(part, id, target, map);
                let skip = if kind == Wrapper::Replay { 2 } else { 1 };
                let node = part.node(id);
                let mut copier = Transcriber { from: part, to: &mut self.graph, map };
                let args: Vec<Value> =
                    part.args(id).iter().skip(skip).map(|&value| copier.value(value)).collect();
                let mut kwargs = Vec::new();
                for pair in part.values(node.kwargs).chunks_exact(2) {
                    let is_state = matches!(pair[0], Value::Str(key) if part.text(key) == "rng_state");
                    if !is_state {
                        kwargs.extend([copier.value(pair[0]), copier.value(pair[1])]);
                    }
                }
                let out = match (kind, node.out) {
                    (Wrapper::Save, Out::Tuple(span)) => {
                        part.outs(span).get(1).copied().unwrap_or(Out::Absent)
                    }
                    // A printed graph says of items alone what they are.
                    (Wrapper::Save, Out::Absent) => {
                        let mut items = part.ids().filter(|&item| item_of(part, item) == Some((id, 1)));
                        items.next().map_or(Out::Absent, |item| part.node(item).out)
                    }
                    (_, out) => out,
                };
                let out = copier.out(out, false);
                let new = self.graph.push(&fresh, Op::Call, target);
                let (args, kwargs) = (self.graph.push_values(&args), self.graph.push_values(&kwargs));
                let copy = self.graph.node_mut(new);
                (copy.args, copy.kwargs, copy.out) = (args, kwargs, out);
                new
            }
        };
        let mut missing = None;
        self.graph.for_each_dangling(new, &mut |name| missing = Some(name.to_string()));
        if let Some(missing) = missing {
            return Err(format!("{which}: {name} takes {missing}, which is not there"));
        }
        self.origin.push(origin);
        self.twin.push(twin);
        map[id.index()] = Some(new);
        if kind == Some(Wrapper::Save) {
            self.states.push(new);
        }
        if kind.is_some() || self.ops[usize::from(origin == Origin::Backward)].draws(part, id) {
            let own = twin.map_or_else(|| fresh.clone(), |twin| self.joint.name(twin).to_string());
            // A plain operator that runs again draws other numbers.
            let again = self.drawn.contains(&own) && kind.is_none();
            let key = if again { format!("{own}, drawn again by {fresh}") } else { own };
            self.drawn.insert(key.clone());
            self.draws.push(Draw { node: new, key });
        }
        Ok(())
    }

    /// The random node of the joint graph that a wrapper stands for. Wrappers have names of their own; who reads their
    /// value has the name that it has in the joint graph, and reads the random node there. Where nobody does, a replay
    /// belongs to the draw whose state it takes, and otherwise the first node that takes the same inputs is meant.
    fn take_wrapped(&self, part: &Graph, id: NodeId, target: &str, map: &[Option<NodeId>]) -> Option<NodeId> {
        let joint = self.joint;
        let fits = |twin: &NodeId| joint.node(*twin).op == Op::Call && joint.target(*twin) == target;
        if let Some(named) = joint.find(part.name(id)).filter(fits) {
            return Some(named);
        }
        let of_wrapper = |user: NodeId| part.inputs(user).contains(&id);
        let mut readers = Vec::new();
        for user in part.ids().filter(|&user| user > id && of_wrapper(user)) {
            match (added_wrapper(joint, part, id), item_of(part, user)) {
                // The value is item 1; its readers are one step further.
                (Some(Wrapper::Save), Some((_, 1))) => {
                    readers
                        .extend(part.ids().filter(|&next| next > user && part.inputs(next).contains(&user)));
                }
                (Some(Wrapper::Save), _) => {}
                _ => readers.push(user),
            }
        }
        for reader in readers {
            let twin = joint.find(part.name(reader)).filter(|&twin| joint.node(twin).op == Op::Call);
            if let Some(read) = twin.and_then(|twin| joint.inputs(twin).into_iter().find(fits)) {
                return Some(read);
            }
        }
        if let Some(Value::Node(state)) = part.arg(id, 0)
            && added_wrapper(joint, part, id) == Some(Wrapper::Replay)
        {
            let index = part.target(state).rsplit('_').next().and_then(|digits| digits.parse().ok());
            let kept: Option<NodeId> = index.and_then(|index: usize| self.states.get(index).copied());
            return kept.and_then(|node| self.twin[node.index()]);
        }
        let inputs: Vec<Option<NodeId>> = part
            .inputs(id)
            .into_iter()
            .filter_map(|input| map.get(input.index()).copied().flatten())
            .map(|input| self.twin[input.index()])
            .collect();
        let taken = |twin: &NodeId| self.drawn.contains(joint.name(*twin));
        let same = |twin: &&NodeId| joint.inputs(**twin).into_iter().map(Some).eq(inputs.iter().copied());
        let free = || self.wrapped.iter().filter(|twin| fits(twin) && !taken(twin));
        free().find(same).or_else(|| free().next()).copied()
    }

    fn fresh_name(&self, name: &str) -> String {
        let mut fresh = name.to_string();
        let mut count = 0;
        while self.graph.find(&fresh).is_some() {
            count += 1;
            fresh = if count == 1 { format!("{name}_again") } else { format!("{name}_again_{count}") };
        }
        fresh
    }

    fn output(
        &mut self,
        of_forward: &[Option<NodeId>],
        of_backward: &[Option<NodeId>],
        forward_outputs: usize,
    ) -> Result<(), String> {
        let (forward, backward) = (self.forward, self.backward);
        let expected = returned(self.joint).len();
        let (first, second) = (returned(forward), returned(backward));
        if first.len() < forward_outputs {
            let n = first.len();
            return Err(format!(
                "forward returns {n} values; the joint graph has {forward_outputs} of its own"
            ));
        }
        if forward_outputs + second.len() != expected {
            let n = second.len();
            return Err(format!(
                "backward returns {n} values; the joint graph has {}",
                expected.saturating_sub(forward_outputs)
            ));
        }
        let mut outputs = Vec::with_capacity(expected);
        let mut none: [Option<NodeId>; 0] = [];
        for (part, map, values) in
            [(forward, of_forward, &first[..forward_outputs]), (backward, of_backward, &second[..])]
        {
            for &value in values {
                outputs.push(match value {
                    Value::Node(node) => {
                        let new = map.get(node.index()).copied().flatten();
                        Value::Node(new.ok_or("an output is not there")?)
                    }
                    Value::Dangling(name) => {
                        return Err(format!("output {} is not there", part.text(name)));
                    }
                    constant => {
                        Transcriber { from: part, to: &mut self.graph, map: &mut none }.value(constant)
                    }
                });
            }
        }
        let list = self.graph.list(&outputs);
        let args = self.graph.push_values(&[list]);
        let output = self.graph.push("output", Op::Output, "output");
        self.graph.node_mut(output).args = args;
        self.origin.push(Origin::Interface);
        self.twin.push(self.joint.output());
        Ok(())
    }
}

/// The call whose item `id` is, through tuples in tuples; `id` itself if it is no item.
pub(super) fn root_of(graph: &Graph, mut id: NodeId) -> NodeId {
    while let Some((parent, _)) = item_of(graph, id).filter(|&(parent, _)| parent < id) {
        id = parent;
    }
    id
}

/// The parent and the index of a `getitem` with a known index.
pub(super) fn item_of(graph: &Graph, id: NodeId) -> Option<(NodeId, i64)> {
    if graph.node(id).op != Op::Call || !matches!(graph.target(id), "operator.getitem" | "_operator.getitem")
    {
        return None;
    }
    match (graph.arg(id, 0)?, graph.arg(id, 1)?) {
        (Value::Node(parent), Value::Int(index)) if parent.index() < graph.len() => Some((parent, index)),
        _ => None,
    }
}
