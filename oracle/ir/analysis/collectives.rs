//! The communication of a graph: which nodes start it, on which group, with which tensors, and which nodes wait.
//!
//! One [`CollectiveCall`] is one launch: a coalesced form moves several tensors in one launch and may have one
//! wait per tensor, each through a `getitem`. A wait belongs to the calls whose results lie in the storage of what it is
//! given: the value of a call, a `getitem` or a view of it, or the buffer that a call writes its result into, until a wait
//! has ended that. A wait that ends nothing does nothing: it stands for the first one of the same value. Source:
//! `c10d::register_work` and `wait_tensor`, which know work by its storage.
//!
//! What it does not do: the value of a launch is not followed through a `reshape`; its memory is.

use super::messages::{self, Message};
use crate::graph::{Graph, NodeId, Op, Tensor, Value};
use crate::ops::shape::{Output, strides_of_view};
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
        let (mut late, mut launches) = (Vec::new(), Vec::new());
        // The node in whose memory each node lies, as far as that is certain.
        let mut bases: Vec<NodeId> = Vec::with_capacity(n);
        for id in graph.ids() {
            let of = shown(graph, ops, id);
            let call = describe(graph, ops, id);
            let base = same_memory(graph, ops, id);
            bases.push(base.and_then(|base| bases.get(base.index()).copied()).unwrap_or(id));
            if let Some(call) = call {
                this.call_at[id.index()] = this.calls.len() as u32;
                this.value_of[id.index()] = this.calls.len() as u32;
                this.calls.push(call);
                this.waits.push(Vec::new());
            } else if let Some(info) = ops.call(graph, id) {
                // In an unsorted list the value may come later than its use: look again afterwards.
                if info.kind == Kind::Wait || of.is_some() {
                    late.push(id);
                }
            }
        }
        let mut open: FxHashMap<NodeId, Vec<u32>> = FxHashMap::default();
        for (launch, call) in (0..).zip(&this.calls) {
            let buffers = call.inputs.iter().filter(|_| call.in_place).chain(&call.out).chain([&call.node]);
            // What stands below is a fault, or the list is still to be sorted.
            let buffers = buffers.filter(|&&buffer| buffer <= call.node);
            let mut buffers: Vec<NodeId> =
                buffers.filter_map(|buffer| bases.get(buffer.index()).copied()).collect();
            buffers.sort_unstable();
            buffers.dedup();
            buffers.into_iter().for_each(|base| open.entry(base).or_default().push(launch));
        }
        let mut first: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        // Waits last, so that they find their launches whatever the list order.
        late.sort_by_key(|&id| is_wait(id));
        for &id in &late {
            launches.clear();
            graph.for_each_input(id, &mut |input: NodeId| {
                // A reference outside the graph is a fault that the validator reports.
                let launch = this.value_of.get(input.index()).copied().unwrap_or(NONE);
                if launch != NONE && !launches.contains(&launch) {
                    launches.push(launch);
                }
            });
            if !is_wait(id) {
                if let [launch] = launches[..] {
                    this.value_of[id.index()] = launch;
                }
                continue;
            }
            // It ends what was launched before it, and is not ended. A coalesced launch ends in each of its buffers.
            let has_no_wait = |launch: &u32| this.waits[*launch as usize].is_empty();
            let is_open = |launch: &u32| this.calls[*launch as usize].coalesced || has_no_wait(launch);
            let lacks_own = |&launch: &u32| !this.has_own_wait(graph, launch as usize);
            let mut ended: Vec<u32> = launches.iter().copied().filter(lacks_own).collect();
            graph.for_each_input(id, &mut |input: NodeId| {
                let base = bases.get(input.index()).filter(|_| input < id || !is_wait(input));
                let open = base.and_then(|base| open.get_mut(base));
                let Some(open) = open else { return };
                let before = open.partition_point(|&launch| this.calls[launch as usize].node < id);
                ended.extend(open.drain(..before).filter(is_open));
            });
            ended.sort_unstable();
            ended.dedup();
            if let [value] = graph.inputs(id)[..] {
                let elder = first.get(&value).copied().filter(|_| ended.is_empty());
                this.repeated.extend(elder.map(|elder| (id, elder)));
                first.extend([value, id].map(|node| (node, elder.unwrap_or(id))));
            }
            if !ended.is_empty() {
                launches = ended;
            }
            if launches.is_empty() {
                this.idle_waits.push(id);
            } else {
                for &launch in &launches {
                    this.waits[launch as usize].push(id);
                }
            }
        }
        this
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

/// A node in whose memory the result of `node` certainly lies: what it is a view or an item of, writes into and hands
/// back, or waits for.
fn same_memory(graph: &Graph, ops: &Ops, node: NodeId) -> Option<NodeId> {
    let is_item = ops.call(graph, node)?.kind == Kind::GetItem;
    let (call, item) = match (graph.arg(node, 0), graph.arg(node, 1)) {
        (Some(Value::Node(of)), Some(Value::Int(item))) if is_item => (of, usize::try_from(item).ok()?),
        _ if is_item => return None,
        _ => (node, 0),
    };
    let info = ops.call(graph, call).filter(|_| call.index() < graph.len())?;
    let schema = info.schema.as_ref()?;
    let result = if schema.returns.len() > 1 { item } else { 0 };
    let mut aliases = schema.aliases().chain(info.undeclared_aliases().iter().copied());
    let (_, param) = aliases.find(|&(of, _)| of == result)?;
    let follows_strides = views_where_strides_allow(schema);
    let shares = match info.kind {
        Kind::View(_) => true,
        _ => schema.params[param].write || follows_strides || !info.undeclared_aliases().is_empty(),
    };
    match graph.argument(call, param, &schema.params[param].name).filter(|_| shares)? {
        Value::Node(of) if follows_strides => is_view(graph, of, call).then_some(of),
        Value::Node(of) => Some(of),
        Value::List(span) => graph.values(span).get(item).copied().and_then(as_node),
        _ => None,
    }
}

/// Whether one tensor can be a view of another by their recorded sizes and strides.
fn is_view(graph: &Graph, of: NodeId, view: NodeId) -> bool {
    // A reference outside the graph is a fault that the validator reports.
    let recorded = |id: NodeId| {
        let out = (id.index() < graph.len()).then(|| graph.node(id).out)?;
        if let Output::Tensor(tensor) = Output::recorded(graph, out) { Some(tensor) } else { None }
    };
    let strides = || {
        let (of, view) = (recorded(of)?, recorded(view)?);
        strides_of_view(&of.shape, of.stride.as_ref()?, &view.shape)?
    };
    strides().is_some()
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
