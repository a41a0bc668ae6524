//! The communication of a graph: which nodes start it, on which group, with which tensors, and which nodes wait.
//!
//! One [`CollectiveCall`] is one launch: a coalesced form moves several tensors in one launch and may have one
//! wait per tensor, each through a `getitem`. A wait belongs to the calls whose results lie in the storage of what it is
//! given: the value of a call, a `getitem` or a view of it, or the buffer that a call writes its result into, until a wait
//! has ended that. A wait that ends nothing does nothing: it stands for the first one of the same value. Source:
//! `c10d::register_work` and `wait_tensor`, which know work by its storage.
//!
//! What it does not do: the value of a launch is not followed through a `reshape`; its memory is.

use super::aliasing::Aliasing;
use super::edges::Edges;
use super::messages::{self, Message};
use super::storages::{Mode, StorageIndex, Storages};
use super::topological::TopologicalOrder;
use crate::graph::{Graph, NodeId, Op, Tensor, Value};
use crate::ops::{Bound, Collective, Kind, Ops, Schema, views_where_strides_allow};
use rustc_hash::FxHashMap;

/// How a node names its process group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum GroupName<'a> {
    /// By a string.
    Text(&'a str),
    /// By the value of a node that does not say which group of the world it is.
    Node(NodeId),
    /// Not at all, or by something else.
    Unknown,
}

impl std::fmt::Display for GroupName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GroupName::Text(name) => write!(f, "{name}"),
            GroupName::Node(node) => write!(f, "node {}", node.0),
            GroupName::Unknown => write!(f, "?"),
        }
    }
}

/// One launch of communication.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CollectiveCall<'a> {
    /// The node that starts it.
    pub node: NodeId,
    /// What it does.
    pub kind: Collective,
    /// The tensors it sends, in order.
    pub inputs: Vec<NodeId>,
    /// Whether it is a form that takes and returns a list of tensors.
    pub coalesced: bool,
    /// The buffer given as `out=`.
    pub out: Option<NodeId>,
    /// Whether it writes its result into its inputs.
    pub in_place: bool,
    /// Whether it is done when the call is: nothing has to wait for it.
    pub is_done_at_once: bool,
    /// Whether it runs on the stream of its caller.
    pub is_on_callers_stream: bool,
    /// The process group.
    pub group: GroupName<'a>,
    /// The size of the group as the node states it.
    pub group_size: Option<i64>,
    /// `sum`, `avg`, `max`, ... for reductions.
    pub reduce_op: Option<&'a str>,
    /// Source or destination rank of a broadcast, send or receive.
    pub peer: Option<i64>,
    /// What an all-to-all sends to each member of its group and what it expects from each, in rows of its tensors;
    /// `None` where that is not stated or not known.
    pub splits: Option<[Vec<i64>; 2]>,
    /// The messages that it starts; `None` where they are not known.
    pub messages: Option<Vec<Message>>,
}

impl CollectiveCall<'_> {
    /// Whether it copies its inputs before it returns, so that they may be written at once.
    pub fn sends_a_copy(&self) -> bool {
        self.kind.sends_a_copy() && !self.in_place
    }

    /// The inputs that nobody may write until its wait.
    pub fn held(&self) -> &[NodeId] {
        if self.sends_a_copy() { &[] } else { &self.inputs }
    }
}

/// The communication of one graph, in list order, with the waits.
#[derive(Clone, Debug)]
pub struct Collectives<'a> {
    /// The launches.
    pub calls: Vec<CollectiveCall<'a>>,
    /// The waits of each launch, in list order; parallel to `calls`.
    pub waits: Vec<Vec<NodeId>>,
    /// For each node the launch that it starts.
    call_at: Vec<u32>,
    /// For each node the launch whose asynchronous value it is, before any wait.
    value_of: Vec<u32>,
    /// Waits that wait for nothing (the value is no collective's, or has been waited for).
    pub idle_waits: Vec<NodeId>,
    /// Waits that end nothing after another wait of their value, or of what that gives, each with the first such wait.
    repeated: FxHashMap<NodeId, NodeId>,
}

const NONE: u32 = u32::MAX;

impl<'a> Collectives<'a> {
    /// Finds the communication of `graph`.
    pub fn new(graph: &'a Graph, ops: &Ops) -> Collectives<'a> {
        let n = graph.len();
        let mut this = Collectives {
            calls: Vec::new(),
            waits: Vec::new(),
            call_at: vec![NONE; n],
            value_of: vec![NONE; n],
            idle_waits: Vec::new(),
            repeated: FxHashMap::default(),
        };
        let is_wait = |id: NodeId| ops.call(graph, id).is_some_and(|info| info.kind == Kind::Wait);
        let (mut parts, mut waits, mut launches) = (Vec::new(), Vec::new(), Vec::new());
        for id in graph.ids() {
            if let Some(call) = describe(graph, ops, id) {
                this.call_at[id.index()] = this.calls.len() as u32;
                this.value_of[id.index()] = this.calls.len() as u32;
                this.calls.push(call);
                this.waits.push(Vec::new());
            } else if is_wait(id) {
                waits.push(id);
            } else if shown(graph, ops, id).is_some() {
                parts.push(id);
            }
        }
        // In an unsorted list the value may come later than its use: hence not in the same loop.
        for &id in &parts {
            this.launches_of(graph, id, &mut launches);
            if let [launch] = launches[..] {
                this.value_of[id.index()] = launch;
            }
        }
        // As the nodes will stand once the list is in order.
        let order = (!is_sorted(graph)).then(|| TopologicalOrder::or_list(&Edges::new(graph)));
        let position = |id: NodeId| order.as_ref().map_or(id.0, |order| order.position(id));
        waits.sort_by_key(|&id| position(id));
        let memory = this.memory(graph, ops, &waits);
        // The storages in which a node certainly lies.
        let lies_in = |node: NodeId| {
            let parts = memory.iter().flat_map(move |storages| storages.all_parts(node));
            parts.filter(|part| part.certain).map(|part| part.storage)
        };
        let mut open: FxHashMap<StorageIndex, Vec<u32>> = FxHashMap::default();
        let mut starts: Vec<(u32, u32)> =
            (0..).zip(&this.calls).map(|(launch, call)| (position(call.node), launch)).collect();
        starts.sort_unstable();
        for &(start, launch) in &starts {
            let call = &this.calls[launch as usize];
            let buffers = call.inputs.iter().filter(|_| call.in_place).chain(&call.out).chain([&call.node]);
            // What stands below is a fault.
            let buffers = buffers.filter(|&&buffer| position(buffer) <= start);
            let mut storages: Vec<StorageIndex> = buffers.flat_map(|&buffer| lies_in(buffer)).collect();
            storages.sort_unstable();
            storages.dedup();
            storages.into_iter().for_each(|storage| open.entry(storage).or_default().push(launch));
        }
        let mut first: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        for &id in &waits {
            this.launches_of(graph, id, &mut launches);
            // It ends what was launched before it, and is not ended. A coalesced launch ends in each of its buffers.
            let has_no_wait = |launch: &u32| this.waits[*launch as usize].is_empty();
            let is_open = |launch: &u32| this.calls[*launch as usize].coalesced || has_no_wait(launch);
            let lacks_own = |&launch: &u32| !this.has_own_wait(graph, launch as usize);
            let mut ended: Vec<u32> = launches.iter().copied().filter(lacks_own).collect();
            graph.for_each_input(id, &mut |input: NodeId| {
                for storage in lies_in(input).filter(|_| position(input) < position(id) || !is_wait(input)) {
                    let Some(open) = open.get_mut(&storage) else { continue };
                    let is_before = |&launch: &u32| position(this.calls[launch as usize].node) < position(id);
                    let before = open.partition_point(is_before);
                    ended.extend(open.drain(..before).filter(is_open));
                }
            });
            ended.sort_unstable();
            ended.dedup();
            if let [value] = graph.inputs(id)[..] {
                let elder = first.get(&value).copied().filter(|_| ended.is_empty());
                this.repeated.extend(elder.map(|elder| (id, elder)));
                first.extend([value, id].map(|node| (node, elder.unwrap_or(id))));
            }
            if !ended.is_empty() {
                std::mem::swap(&mut launches, &mut ended);
            }
            if launches.is_empty() {
                this.idle_waits.push(id);
            }
            launches.iter().for_each(|&launch| this.waits[launch as usize].push(id));
        }
        this.waits.iter_mut().chain([&mut this.idle_waits]).for_each(|waits| waits.sort_unstable());
        this
    }

    /// The launches whose values a node takes.
    fn launches_of(&self, graph: &Graph, id: NodeId, launches: &mut Vec<u32>) {
        launches.clear();
        graph.for_each_input(id, &mut |input: NodeId| {
            // A reference outside the graph is a fault that the validator reports.
            let launch = self.value_of.get(input.index()).copied().unwrap_or(NONE);
            if launch != NONE && !launches.contains(&launch) {
                launches.push(launch);
            }
        });
    }

    /// Which memory the nodes lie in, where that says more than the values of launches that make memory of their own.
    fn memory(&self, graph: &Graph, ops: &Ops, waits: &[NodeId]) -> Option<Storages> {
        let writes = self.calls.iter().any(|call| call.in_place || call.out.is_some());
        let mut is_needed = writes && !waits.is_empty();
        for &wait in waits {
            graph.for_each_input(wait, &mut |input| {
                is_needed |= self.value_of.get(input.index()) == Some(&NONE)
            });
        }
        let mut is_whole = true;
        graph
            .ids()
            .for_each(|id| graph.for_each_input(id, &mut |input| is_whole &= input.index() < graph.len()));
        (is_needed && is_whole).then(|| Aliasing::new(graph, ops, Mode::Physical).run(&Edges::new(graph)))
    }

    /// The launch that `node` starts: an index into `calls`.
    pub fn launch_at(&self, node: NodeId) -> Option<usize> {
        let launch = self.call_at[node.index()];
        (launch != NONE).then_some(launch as usize)
    }

    /// The waits of a launch that are not for the value of another launch into the same memory. Those end this one too,
    /// wherever they stand; where it has none of its own they are its waits.
    pub fn own_waits(&self, graph: &Graph, launch: usize) -> Vec<NodeId> {
        let all = self.waits[launch].iter().copied();
        let has_own = self.has_own_wait(graph, launch);
        all.filter(|&wait| !has_own || self.is_own(graph, launch, wait)).collect()
    }

    fn has_own_wait(&self, graph: &Graph, launch: usize) -> bool {
        self.waits[launch].iter().any(|&wait| self.is_own(graph, launch, wait))
    }

    fn is_own(&self, graph: &Graph, launch: usize, wait: NodeId) -> bool {
        let is_of_another = |&input: &NodeId| self.launch_of_value(input).is_some_and(|of| of != launch);
        !graph.inputs(wait).iter().all(is_of_another)
    }

    /// Of a wait that ends nothing the first of its value, or of what that gives. Any other node is its own.
    pub fn first_wait(&self, id: NodeId) -> NodeId {
        self.repeated.get(&id).copied().unwrap_or(id)
    }

    /// The launch whose value, not yet waited for, `node` is: the launch's own node, or a `getitem` or view of it.
    pub fn launch_of_value(&self, node: NodeId) -> Option<usize> {
        let launch = self.value_of[node.index()];
        (launch != NONE).then_some(launch as usize)
    }
}

/// Whether every node stands behind what it needs.
fn is_sorted(graph: &Graph) -> bool {
    let mut is_sorted = graph.ordering.iter().all(|edge| edge.before < edge.after);
    graph.ids().for_each(|id| graph.for_each_input(id, &mut |input| is_sorted &= input < id));
    is_sorted
}

/// What a node returns a part or a view of.
fn shown(graph: &Graph, ops: &Ops, node: NodeId) -> Option<NodeId> {
    let info = ops.call(graph, node)?;
    let is_view = || {
        let schema = info.schema.as_ref();
        let is_of_first =
            |schema: &Schema| schema.returns.first().is_some_and(|result| result.alias.is_some());
        matches!(info.kind, Kind::View(_))
            && schema.is_some_and(|schema| is_of_first(schema) && !views_where_strides_allow(schema))
    };
    if info.kind == Kind::GetItem || is_view() { graph.arg(node, 0).and_then(as_node) } else { None }
}

/// What `node` starts, if it starts communication.
pub fn describe<'a>(graph: &'a Graph, ops: &Ops, node: NodeId) -> Option<CollectiveCall<'a>> {
    if graph.node(node).op != Op::Call {
        return None;
    }
    let info = ops.get(graph, node);
    let kind = info.collective()?;
    let mut call = CollectiveCall {
        node,
        kind,
        inputs: Vec::new(),
        coalesced: false,
        out: None,
        in_place: false,
        is_done_at_once: info.is_done_at_once(),
        is_on_callers_stream: info.is_on_callers_stream(),
        group: GroupName::Unknown,
        group_size: None,
        reduce_op: None,
        peer: None,
        splits: None,
        messages: if kind.is_message() { None } else { Some(Vec::new()) },
    };
    let Some(schema) = &info.schema else { return Some(call) };
    let Ok(bound) = Bound::new(graph, node, schema) else { return Some(call) };
    for (index, param) in schema.params.iter().enumerate() {
        let value = bound.given(index);
        match (param.name.as_str(), param.ty.as_str()) {
            ("out", _) => call.out = value.and_then(as_node),
            (_, "Tensor") => {
                call.inputs.extend(value.and_then(as_node));
                call.in_place |= param.write;
            }
            (_, "Tensor[]") => {
                match value {
                    Some(Value::List(span)) => {
                        call.inputs.extend(graph.values(span).iter().copied().filter_map(as_node));
                    }
                    value => call.inputs.extend(value.and_then(as_node)),
                }
                call.coalesced = true;
                call.in_place |= param.write;
            }
            // A barrier takes the group itself.
            ("group_name" | "tag" | "process_group", _) => {
                call.group = match value {
                    Some(Value::Str(name)) => GroupName::Text(graph.text(name)),
                    Some(Value::Node(node)) => GroupName::Node(node),
                    _ => call.group,
                }
            }
            ("group_size", _) => call.group_size = bound.int("group_size"),
            ("reduce_op" | "reduceOp", _) => {
                call.reduce_op = match value {
                    Some(Value::Str(op)) => Some(graph.text(op)),
                    _ => None,
                }
            }
            (name @ ("src" | "dst" | "root"), _) => call.peer = bound.int(name),
            _ => {}
        }
    }
    if kind == Collective::AllToAll {
        let (sent, expected) = (bound.ints("input_split_sizes"), bound.ints("output_split_sizes"));
        call.splits = sent.zip(expected).map(|(sent, expected)| [sent, expected]);
    }
    if let GroupName::Node(node) = call.group
        && let Some(group) = graph.group_of(&graph.world, node, call.group_size)
    {
        call.group = GroupName::Text(&group.name);
    }
    call.messages = messages::of(graph, &bound, &call);
    Some(call)
}

fn as_node(value: Value) -> Option<NodeId> {
    match value {
        Value::Node(node) => Some(node),
        _ => None,
    }
}

/// Bytes that count for a bucket's size: the larger of the output and the first input, symbolic sizes by hint.
/// `None` where a size has no hint. Source:
/// `torch._inductor.fx_passes.bucketing`.
pub fn bucket_bytes(graph: &Graph, call: &CollectiveCall) -> Option<i64> {
    let bytes = |tensor: Option<&Tensor>| graph.bytes(tensor?);
    let input = bytes(graph.tensor_of(*call.inputs.first()?))?;
    Some(bytes(graph.tensor_of(call.node))?.max(input))
}
