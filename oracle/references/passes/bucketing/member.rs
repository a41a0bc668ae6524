//! The collectives that may be bucketed.

use super::merge::{Layout, MOST};
use super::plan::{Reason, Refusal};
use super::strategy::Context;
use crate::graph::{Dtype, Graph, NodeId, Op, Str, TargetId, Tensor, Value};
use crate::ops::Collective;
use rustc_hash::FxHashSet;

/// The targets that the pass knows, as ids of one graph; `None` where the graph has no such target.
#[derive(Clone, Debug)]
pub struct Targets {
    /// `all_gather_into_tensor`.
    pub all_gather: Option<TargetId>,
    /// `all_gather_into_tensor_out`.
    pub all_gather_out: Option<TargetId>,
    /// `reduce_scatter_tensor`.
    pub reduce_scatter: Option<TargetId>,
    /// `all_reduce`.
    pub all_reduce: Option<TargetId>,
    /// `wait_tensor`.
    pub wait: Option<TargetId>,
    /// `prims.convert_element_type`.
    pub convert: Option<TargetId>,
    /// `aten._to_copy`.
    pub to_copy: Option<TargetId>,
}

impl Targets {
    /// Looks the targets up. Names in `c10d_functional`, without the underscore, are other targets.
    pub fn of(graph: &Graph) -> Targets {
        Targets {
            all_gather: graph.find_target("_c10d_functional.all_gather_into_tensor.default"),
            all_gather_out: graph.find_target("_c10d_functional.all_gather_into_tensor_out.default"),
            reduce_scatter: graph.find_target("_c10d_functional.reduce_scatter_tensor.default"),
            all_reduce: graph.find_target("_c10d_functional.all_reduce.default"),
            wait: graph.find_target("_c10d_functional.wait_tensor.default"),
            convert: graph.find_target("prims.convert_element_type.default"),
            to_copy: graph.find_target("aten._to_copy.default"),
        }
    }

    /// Whether a node calls one of some targets.
    pub fn calls(graph: &Graph, id: NodeId, targets: &[Option<TargetId>]) -> bool {
        let node = graph.node(id);
        node.op == Op::Call && targets.contains(&Some(node.target))
    }

    /// The kind of a candidate.
    pub fn kind(&self, graph: &Graph, id: NodeId) -> Option<Collective> {
        let is = |targets: &[Option<TargetId>]| Targets::calls(graph, id, targets);
        if is(&[self.all_gather, self.all_gather_out]) {
            Some(Collective::AllGather)
        } else if is(&[self.reduce_scatter]) {
            Some(Collective::ReduceScatter)
        } else if is(&[self.all_reduce]) {
            Some(Collective::AllReduce)
        } else {
            None
        }
    }

    /// The collective that a wait waits for, if it is a candidate.
    pub fn waited(&self, graph: &Graph, wait: NodeId) -> Option<(NodeId, Collective)> {
        if !Targets::calls(graph, wait, &[self.wait]) {
            return None;
        }
        match graph.argument(wait, 0, "tensor") {
            Some(Value::Node(start)) => self.kind(graph, start).map(|kind| (start, kind)),
            _ => None,
        }
    }
}

/// A process group as a node names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Group {
    /// By a string.
    Name(Str),
    /// By the value of a node: a graph compiled on one rank for all. Which group it is is not recorded, so two
    /// nodes are two groups.
    Node(NodeId),
}

impl Group {
    /// As an argument.
    pub fn value(self) -> Value {
        match self {
            Group::Name(name) => Value::Str(name),
            Group::Node(node) => Value::Node(node),
        }
    }

    /// For people.
    pub fn name(self, graph: &Graph) -> &str {
        match self {
            Group::Name(name) => graph.text(name),
            Group::Node(node) => graph.name(node),
        }
    }
}

/// A candidate: a collective with its wait.
#[derive(Clone, Debug)]
pub struct Member {
    /// The node that starts it.
    pub start: NodeId,
    /// The wait by which it was found.
    pub wait: NodeId,
    /// What it does.
    pub kind: Collective,
    /// What it sends.
    pub input: NodeId,
    /// Where.
    pub group: Group,
    /// The size of the group; an all-reduce does not say.
    pub group_size: Option<i64>,
    /// How a reduction combines.
    pub reduce_op: Option<Str>,
    /// The buffer that a gather writes to.
    pub out: Option<NodeId>,
    /// The dtype of its result.
    pub dtype: Dtype,
    /// The device of its result.
    pub device: Str,
}

impl Member {
    /// Reads a candidate, whose arguments may be given by position, as traced graphs do, or by keyword.
    pub fn read(graph: &Graph, kind: Collective, start: NodeId, wait: NodeId) -> Result<Member, Refusal> {
        let malformed = |what| Refusal::Malformed { node: graph.name(start).to_string(), what };
        let names: &[&str] = match kind {
            Collective::AllGather => &["input", "group_size", "group_name"],
            Collective::ReduceScatter => &["input", "reduce_op", "group_size", "group_name"],
            _ => &["input", "reduce_op", "group_name"],
        };
        let others = graph.kwargs(start).filter(|(key, _)| *key != "out").count();
        if graph.args(start).len() + others != names.len() {
            return Err(malformed("has another number of arguments than its operator takes"));
        }
        let given = |name: &str| {
            let index = names.iter().position(|known| *known == name)?;
            graph.argument(start, index, name)
        };
        let (Some(input), Some(group)) = (given("input"), given("group_name")) else {
            return Err(malformed("has other arguments than its operator takes"));
        };
        let (reduce_op, group_size) = (given("reduce_op"), given("group_size"));
        let Value::Node(input) = input else { return Err(malformed("has an input that is not a node")) };
        let group = match group {
            Value::Str(name) => Group::Name(name),
            Value::Node(node) => Group::Node(node),
            _ => return Err(malformed("has no group name")),
        };
        let group_size = match group_size {
            None => None,
            Some(Value::Int(size)) if size > 0 => Some(size),
            Some(_) => return Err(malformed("has a group size that is not a positive number")),
        };
        let reduce_op = match reduce_op {
            None => None,
            Some(Value::Str(op)) => Some(op),
            Some(_) => return Err(malformed("has a reduce_op that is not a string")),
        };
        let out = match graph.kwarg(start, "out") {
            Some(Value::Node(out)) => Some(out),
            _ => None,
        };
        let Some(&Tensor { dtype, device, .. }) = graph.tensor_of(start) else {
            return Err(malformed("has no recorded result"));
        };
        Ok(Member { start, wait, kind, input, group, group_size, reduce_op, out, dtype, device })
    }
}

/// The bytes that count for a bucket's size: the larger of the result and the first input, symbolic sizes by
/// their hints. `None` where a size has no hint. For a gather that is the result, for a reduce-scatter the
/// input.
pub fn bytes(graph: &Graph, member: &Member) -> Option<i64> {
    let of = |id| graph.bytes(graph.tensor_of(id)?);
    Some(of(member.start)?.max(of(member.input)?))
}

/// The candidates of a kind in the order of their first waits in the list.
pub fn in_wait_order(cx: &Context, kind: Collective) -> Result<Vec<Member>, Refusal> {
    let graph = cx.editor.graph();
    let (mut members, mut waited) = (Vec::new(), FxHashSet::default());
    let mut next = cx.editor.first();
    while let Some(wait) = next {
        next = cx.editor.next(wait);
        if let Some((start, found)) = cx.targets.waited(graph, wait)
            && found == kind
            && waited.insert(start)
        {
            members.push(Member::read(graph, kind, start, wait)?);
        }
    }
    Ok(members)
}

/// Why a candidate cannot be a member of any bucket. Stricter than PyTorch 2.15, which stops with an assertion
/// or an error of the tracer on most of these.
pub fn fault(cx: &Context, member: &Member) -> Option<Reason> {
    // What is wrong with its sizes says more than that the record contradicts the operator.
    unfit(cx, member).or_else(|| {
        let why = [member.start, member.wait].iter().find_map(|id| cx.facts.contradicted.get(id))?;
        Some(Reason::Contradicted { why: why.clone() })
    })
}

fn unfit(cx: &Context, member: &Member) -> Option<Reason> {
    let graph = cx.editor.graph();
    if cx.editor.users(member.start) != [member.wait] {
        return Some(Reason::UsedBeforeWait);
    }
    let Some(input) = graph.tensor_of(member.input) else { return Some(Reason::NoInputMetadata) };
    let out = graph.tensor_of(member.start)?;
    let sized =
        |tensor: &Tensor| [tensor.shape, tensor.stride].iter().all(|&dims| graph.sizes(dims).is_some());
    if !sized(input) || !sized(out) {
        return Some(Reason::SymbolicSize);
    }
    let gathered = graph.numel(input).and_then(|n| n.checked_mul(member.group_size.unwrap_or(1)));
    if [member.input, member.start].iter().any(|&id| Layout::of(graph, id).is_none())
        || gathered.is_none_or(|n| n > MOST)
    {
        return Some(Reason::AbsurdSize);
    }
    if let Some(reader) = cx.facts.misses(graph, member) {
        return Some(Reason::OutReadElsewhere { reader: graph.name(reader).to_string() });
    }
    let rows = graph.dims(input.shape).first().and_then(|d| d.known());
    match (member.kind, rows, member.group_size) {
        (Collective::AllGather, None, _) => Some(Reason::ScalarInput),
        (Collective::ReduceScatter, None, _) => Some(Reason::ScalarInput),
        (Collective::ReduceScatter, Some(rows), Some(size)) if rows % size != 0 => {
            Some(Reason::UnevenRows { rows, group_size: size })
        }
        _ => None,
    }
}
