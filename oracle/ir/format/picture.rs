//! What a picture of a graph shows, whatever it is drawn with: the part that each node plays, its group and
//! bucket, a short label, and edges by kind.
//!
//! A collective counts as bucketed if its input was packed from several tensors (through views and copies, also
//! into a slice of a fresh buffer) and its result is taken apart again, or if it moves several tensors at once.
//! Clusters are told by name.

use crate::analysis::Collectives;
use crate::analysis::collectives::{CollectiveCall, GroupName, describe};
use crate::graph::{Dim, Graph, NodeId, Op, Out, Tensor, Value};
use crate::ops::{Collective, Fill, Kind, Move, Ops, View};
use std::fmt::Write;

/// The part that a node plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Input,
    Attribute,
    Output,
    /// Starts communication.
    Start(Collective),
    /// Waits for communication of this kind; of no kind where it waits for nothing.
    Wait(Option<Collective>),
    /// Another window on a storage.
    View,
    /// Writes into an argument.
    Write,
    /// Anything else.
    Compute,
}

/// What an edge tells. An edge that does not run down the list is a fault, whatever it tells.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Tie {
    /// A value passes.
    Data,
    /// The value of a collective that has not been waited for.
    Async,
    /// Order only.
    Order,
}

/// A node of a picture.
#[derive(Clone, Debug)]
pub(super) struct Sketch {
    pub(super) role: Role,
    /// Index of its process group in [`Picture::groups`], for what communicates and for waits.
    pub(super) group: Option<usize>,
    /// For a bucketed collective the number of its members.
    pub(super) bucket: Option<usize>,
    /// The first cluster that it is a member of.
    pub(super) cluster: Option<usize>,
    /// The operator with its constants, shortened.
    pub(super) call: String,
    /// The type, shortened.
    pub(super) ty: String,
    /// Names that it refers to and no node has.
    pub(super) missing: Vec<String>,
}

/// A graph as a picture shows it.
#[derive(Clone, Debug)]
pub(super) struct Picture {
    /// By node.
    pub(super) nodes: Vec<Sketch>,
    /// From what is needed to what needs it; distinct, in order.
    pub(super) edges: Vec<(NodeId, NodeId, Tie)>,
    /// The process groups that occur, by name in order of first use.
    pub(super) groups: Vec<String>,
}

impl Picture {
    pub(super) fn new(graph: &Graph) -> Picture {
        let ops = Ops::of(graph);
        let collectives = Collectives::new(graph, &ops);
        let users = users(graph);
        let mut picture =
            Picture { nodes: Vec::with_capacity(graph.len()), edges: Vec::new(), groups: Vec::new() };
        for id in graph.ids() {
            picture.nodes.push(Sketch {
                role: role(graph, &ops, id),
                group: None,
                bucket: None,
                cluster: None,
                call: call_label(graph, &ops, id),
                ty: type_label(graph, graph.node(id).out),
                missing: Vec::new(),
            });
            let missing = &mut picture.nodes[id.index()].missing;
            graph.for_each_dangling(id, &mut |name: &str| {
                if !missing.iter().any(|m| m == name) {
                    missing.push(name.to_string());
                }
            });
        }
        for (launch, call) in collectives.calls.iter().enumerate() {
            let group = picture.group(graph, call);
            picture.nodes[call.node.index()].group = group;
            picture.nodes[call.node.index()].bucket =
                members(graph, &ops, &users, call, &collectives.waits[launch]);
            for &wait in &collectives.waits[launch] {
                let sketch = &mut picture.nodes[wait.index()];
                (sketch.role, sketch.group) = (Role::Wait(Some(call.kind)), group);
            }
        }
        for (index, cluster) in graph.clusters.iter().enumerate() {
            for &member in &cluster.members {
                picture.nodes[member.index()].cluster.get_or_insert(index);
            }
        }
        for id in graph.ids() {
            for input in graph.inputs(id) {
                let tie = if collectives.launch_of_value(input).is_some() { Tie::Async } else { Tie::Data };
                picture.edges.push((input, id, tie));
            }
        }
        picture.edges.extend(graph.ordering.iter().map(|e| (e.before, e.after, Tie::Order)));
        picture.edges.sort_by_key(|&(from, to, tie)| (to, from, tie));
        // An ordering edge beside a data edge tells nothing.
        picture.edges.dedup_by_key(|(from, to, _)| (*from, *to));
        picture
    }

    fn group(&mut self, graph: &Graph, call: &CollectiveCall) -> Option<usize> {
        let name = match call.group {
            GroupName::Text(name) => name.to_string(),
            GroupName::Node(node) => graph.name(node).to_string(),
            GroupName::Unknown => return None,
        };
        Some(self.groups.iter().position(|g| *g == name).unwrap_or_else(|| {
            self.groups.push(name);
            self.groups.len() - 1
        }))
    }
}

fn users(graph: &Graph) -> Vec<Vec<NodeId>> {
    let mut users = vec![Vec::new(); graph.len()];
    for id in graph.ids() {
        for input in graph.inputs(id) {
            users[input.index()].push(id);
        }
    }
    users
}

fn role(graph: &Graph, ops: &Ops, id: NodeId) -> Role {
    match graph.node(id).op {
        Op::Placeholder => return Role::Input,
        Op::GetAttr => return Role::Attribute,
        Op::Output => return Role::Output,
        Op::Call => {}
    }
    let info = ops.get(graph, id);
    match info.kind {
        Kind::Collective(kind) => Role::Start(kind),
        Kind::Wait => Role::Wait(None),
        Kind::GetItem => Role::View,
        _ if info.writes() => Role::Write,
        _ if info.is_view() => Role::View,
        _ => Role::Compute,
    }
}

fn first_node(graph: &Graph, id: NodeId) -> Option<NodeId> {
    match graph.arg(id, 0)? {
        Value::Node(node) => Some(node),
        _ => None,
    }
}

fn is_window(kind: Kind) -> bool {
    matches!(kind, Kind::View(_) | Kind::GetItem)
}

/// How many tensors a collective moves, if it is a bucket.
fn members(
    graph: &Graph,
    ops: &Ops,
    users: &[Vec<NodeId>],
    call: &CollectiveCall,
    waits: &[NodeId],
) -> Option<usize> {
    if call.coalesced {
        return (call.inputs.len() > 1).then_some(call.inputs.len());
    }
    let packed = packed_tensors(graph, ops, users, *call.inputs.first()?)?;
    let taken_apart = waits.iter().any(|&wait| {
        reach(graph, ops, users, wait).into_iter().any(|id| {
            users[id.index()].iter().any(|&user| {
                ops.call(graph, user).is_some_and(|info| {
                    matches!(
                        info.kind,
                        Kind::View(View::Split | View::SplitWithSizes | View::Chunk)
                            | Kind::Move(Move::SplitWithSizesCopy)
                    )
                })
            })
        })
    });
    (packed > 1 && taken_apart).then_some(packed)
}

/// The windows on what `from` returns, `from` included: at most as many as a person would follow.
fn reach(graph: &Graph, ops: &Ops, users: &[Vec<NodeId>], from: NodeId) -> Vec<NodeId> {
    let mut found = vec![from];
    let mut next = 0;
    while let Some(&id) = found.get(next) {
        next += 1;
        for &user in &users[id.index()] {
            let window = ops.call(graph, user).is_some_and(|info| is_window(info.kind));
            if window && first_node(graph, user) == Some(id) && !found.contains(&user) && found.len() < 1000 {
                found.push(user);
            }
        }
    }
    found
}

/// From how many tensors the value of `id` was packed.
fn packed_tensors(graph: &Graph, ops: &Ops, users: &[Vec<NodeId>], mut id: NodeId) -> Option<usize> {
    let nodes = |values: &[Value]| values.iter().filter(|v| matches!(v, Value::Node(_))).count();
    let list = |id: NodeId, arg: usize| match graph.arg(id, arg) {
        Some(Value::List(span)) => Some(nodes(graph.values(span))),
        _ => None,
    };
    for _ in 0..16 {
        let info = ops.call(graph, id)?;
        id = match info.kind {
            kind if is_window(kind) => first_node(graph, id)?,
            Kind::Move(Move::Copy) => match graph.arg(id, 1) {
                Some(Value::Node(source)) => source,
                _ => return None,
            },
            Kind::Move(Move::Clone) | Kind::Cast => first_node(graph, id)?,
            Kind::Move(
                Move::Cat
                | Move::Stack
                | Move::ChunkCat
                | Move::PreBucketAllGather
                | Move::PreBucketReduceScatter
                | Move::AllGatherCopyIn,
            ) => return list(id, 0),
            // A fresh buffer: what counts is what is copied into it.
            Kind::Fill(Fill::Empty) => {
                let windows = reach(graph, ops, users, id);
                let mut writers: Vec<NodeId> = Vec::new();
                for window in windows {
                    for &user in &users[window.index()] {
                        if !writers.contains(&user) {
                            writers.push(user);
                        }
                    }
                }
                let written =
                    writers.iter().map(|&writer| match ops.call(graph, writer).map(|info| info.kind) {
                        Some(Kind::Move(Move::ForeachCopy)) => list(writer, 1).unwrap_or(0),
                        Some(Kind::Move(Move::Copy)) => 1,
                        _ => 0,
                    });
                return Some(written.sum());
            }
            _ => return None,
        };
    }
    None
}

/// The operator and its constants: what a person needs to tell two calls apart.
fn call_label(graph: &Graph, ops: &Ops, id: NodeId) -> String {
    let node = graph.node(id);
    let target = graph.target(id);
    match node.op {
        Op::Placeholder => return "input".to_string(),
        Op::GetAttr => return format!("attr {target}"),
        Op::Output => return "output".to_string(),
        Op::Call => {}
    }
    let info = ops.get(graph, id);
    let short = if info.short.is_empty() { target } else { info.short };
    let mut label = short.trim_end_matches(".default").to_string();
    if let Some(call) = describe(graph, ops, id) {
        let (op, group) = (call.reduce_op.unwrap_or(""), call.group);
        label.push_str(if op.is_empty() { "" } else { " " });
        label.push_str(op);
        if let GroupName::Text(group) = group {
            label.push_str(" on ");
            label.push_str(group);
        }
        return label;
    }
    for &arg in graph.args(id) {
        constant_label(graph, arg, &mut label);
    }
    for (key, value) in graph.kwargs(id) {
        if !matches!(key, "device" | "pin_memory" | "layout" | "memory_format") {
            constant_label(graph, value, &mut label);
        }
    }
    label
}

fn constant_label(graph: &Graph, value: Value, label: &mut String) {
    let _ = match value {
        Value::Bool(b) => write!(label, " {b}"),
        Value::Int(i64::MAX) => write!(label, " end"),
        Value::Int(n) => write!(label, " {n}"),
        Value::Float(x) => write!(label, " {x}"),
        Value::Str(text) => write!(label, " {}", graph.text(text)),
        Value::Dtype(dtype) => write!(label, " {}", dtype.short()),
        Value::List(span) if graph.values(span).iter().any(|v| matches!(v, Value::Int(_))) => {
            let parts = graph.values(span).iter().map(|v| match v {
                Value::Int(n) => n.to_string(),
                _ => "?".to_string(),
            });
            write!(label, " [{}]", parts.collect::<Vec<_>>().join(","))
        }
        _ => Ok(()),
    };
}

fn type_label(graph: &Graph, out: Out) -> String {
    match out {
        Out::Absent => String::new(),
        Out::None => "None".to_string(),
        Out::Tensor(tensor) => tensor_label(graph, graph.tensor(tensor)),
        Out::Int(n) => format!("int {n}"),
        Out::SymInt(expr) | Out::SymBool(expr) => graph.text(graph.expr(expr).text).to_string(),
        Out::Other(name) => graph.text(name).to_string(),
        Out::Tuple(span) | Out::Dict(span) => {
            let parts = graph.outs(span).iter().filter(|part| !matches!(part, Out::Key(_)));
            let mut parts: Vec<String> = parts.map(|&part| type_label(graph, part)).collect();
            match parts.len() {
                0 => "()".to_string(),
                n if n > 1 && parts.iter().all(|part| *part == parts[0]) => {
                    format!("{n} x {}", parts.swap_remove(0))
                }
                _ => format!("({})", parts.join(", ")),
            }
        }
        Out::Key(_) => String::new(),
    }
}

fn tensor_label(graph: &Graph, tensor: &Tensor) -> String {
    let dims: Vec<String> = graph
        .dims(tensor.shape)
        .iter()
        .map(|dim| match dim {
            Dim::Static(n) => n.to_string(),
            Dim::Symbolic(expr) => graph.text(graph.expr(*expr).text).to_string(),
        })
        .collect();
    format!("{}[{}]", tensor.dtype.short(), dims.join(","))
}

/// At most `limit` characters of `text`; what is left out in the middle is marked.
pub(super) fn shorten(text: &str, limit: usize) -> String {
    let count = text.chars().count();
    if count <= limit {
        return text.to_string();
    }
    let head = limit.saturating_sub(1) * 2 / 3;
    let tail = limit.saturating_sub(1 + head);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}…{end}")
}

/// Text inside XML or HTML-like markup. Characters that XML forbids are replaced.
pub(super) fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
