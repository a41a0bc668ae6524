//! What one rank does, as seen by the others: lowered from its graph, or written by hand.

use super::Estimates;
use crate::analysis::fused;
use crate::analysis::sequences::Launch;
use crate::analysis::streams::at_once;
use crate::analysis::{CollectiveCall, Collectives, Computed, GroupName, Sequences, computed};
use crate::graph::{Dtype, Graph, NodeId, Op, Value};
use crate::ops::{Collective, Kind, Ops};
use std::fmt;

/// One end of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// Whether this rank sends; it receives otherwise.
    pub sends: bool,
    /// The other rank's index in the group.
    pub peer: i64,
    /// Element type.
    pub dtype: Option<Dtype>,
    /// Elements.
    pub numel: Option<i64>,
    /// The tag.
    pub tag: i64,
}

impl Part {
    /// Whether a send and a receive are the two ends of one message, as far as it is known.
    pub(super) fn meets(&self, other: &Part) -> bool {
        self.tag == other.tag && may_agree(self.dtype, other.dtype) && may_agree(self.numel, other.numel)
    }
}

/// One launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// The node that launches it.
    pub name: String,
    /// The process group.
    pub group: String,
    /// What it does.
    pub kind: Collective,
    /// `sum`, `avg`, ... for reductions; the operator for what is not modelled.
    pub reduce_op: Option<String>,
    /// Element type of the first tensor sent.
    pub dtype: Option<Dtype>,
    /// Elements sent.
    pub numel_in: Option<i64>,
    /// Elements of the result.
    pub numel_out: Option<i64>,
    /// Source of a broadcast.
    pub root: Option<i64>,
    /// Of an all-to-all the elements that go to each member of the group, and those that are expected from each.
    pub splits: Option<[Vec<i64>; 2]>,
    /// The shapes of what is sent and of the results; `None` where one is not known.
    pub shapes: Option<[Vec<Vec<i64>>; 2]>,
    /// What it computes, where other ranks run other graphs.
    pub computed: Option<Computed>,
    /// The messages of a point-to-point operation; started together.
    pub parts: Vec<Part>,
    /// Whether the host stands still until it is complete.
    pub is_synchronous: bool,
    /// How long it takes, once all ranks have come to it, in nanoseconds.
    pub nanoseconds: u64,
}

/// What a rank does next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Computes.
    Compute {
        /// The node.
        name: String,
        /// For how long.
        nanoseconds: u64,
    },
    /// Launches an operation: an index into [`Program::operations`].
    Launch(usize),
    /// Waits for an operation.
    Wait {
        /// The node that waits.
        name: String,
        /// The operation: an index.
        operation: usize,
    },
}

/// What one rank does.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Its launches, in order.
    pub operations: Vec<Operation>,
    /// Its steps, in order.
    pub steps: Vec<Step>,
    /// What of its graph was left out.
    pub unmodelled: Vec<String>,
    /// Why it may stand still whatever the others do.
    pub hangs: Vec<String>,
    /// Whether nothing is known of it. Nobody waits for ranks that run it.
    pub is_unknown: bool,
}

impl Operation {
    /// A collective with nothing to tell it from others but its group and kind.
    pub fn collective(name: &str, group: &str, kind: Collective) -> Operation {
        Operation {
            name: name.to_string(),
            group: group.to_string(),
            kind,
            reduce_op: None,
            dtype: None,
            numel_in: None,
            numel_out: None,
            root: None,
            splits: None,
            shapes: None,
            computed: None,
            parts: Vec::new(),
            is_synchronous: matches!(kind, Collective::Barrier | Collective::ShardDimAllToAll),
            nanoseconds: 0,
        }
    }

    /// A send or receive; `peer` is the other rank's index in the group.
    pub fn message(name: &str, group: &str, sends: bool, peer: i64) -> Operation {
        let kind = if sends { Collective::Send } else { Collective::Recv };
        let part = Part { sends, peer, dtype: None, numel: None, tag: 0 };
        Operation { parts: vec![part], ..Operation::collective(name, group, kind) }
    }

    /// Whether it is between two ranks rather than among all of a group.
    pub fn is_message(&self) -> bool {
        self.kind.is_message()
    }

    /// Whether two ranks that launch these two may meet, as far as it is known what they send.
    pub fn may_meet(&self, other: &Operation) -> bool {
        let [mut a, mut b] = [self, other].map(Operation::clone);
        for (one, other) in [(&mut a, other), (&mut b, self)] {
            one.dtype = one.dtype.or(other.dtype);
            one.numel_in = one.numel_in.or(other.numel_in);
            one.numel_out = one.numel_out.or(other.numel_out);
        }
        a.meets(&b)
    }

    /// Whether two ranks that launch these two meet, as far as their places in the group do not matter: what the ranks
    /// of an all-to-all send and receive differs, and a barrier moves nothing.
    pub fn meets(&self, other: &Operation) -> bool {
        let sizes = |o: &Operation| match o.kind {
            Collective::AllToAll => (o.dtype, None, None),
            Collective::Barrier | Collective::Other => (None, None, None),
            _ => (o.dtype, o.numel_in, o.numel_out),
        };
        // Tensor by tensor; and where dimensions are exchanged, which.
        let tensors = |o: &Operation| match (o.kind, &o.shapes) {
            (Collective::AllToAll | Collective::Barrier | Collective::Other, _) | (_, None) => None,
            (Collective::ShardDimAllToAll, Some([sent, received])) => {
                Some([sent, received].into_iter().flatten().cloned().collect())
            }
            (_, Some([sent, _])) => {
                let numel = |shape: &Vec<i64>| vec![shape.iter().fold(1, |n: i64, &d| n.saturating_mul(d))];
                Some(sent.iter().map(numel).collect::<Vec<_>>())
            }
        };
        (self.kind, self.is_synchronous) == (other.kind, other.is_synchronous)
            && self.reduce_op == other.reduce_op
            && self.root == other.root
            && sizes(self) == sizes(other)
            && may_agree(tensors(self), tensors(other))
    }
}

/// Whether two facts agree as far as they are known.
fn may_agree<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
    a.is_none() || b.is_none() || a == b
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.name, self.kind.name())?;
        if let Some(op) = &self.reduce_op {
            write!(f, " {op}")?;
        }
        if let Some(dtype) = self.dtype {
            write!(f, " of {}", dtype.name())?;
        }
        match (self.numel_in, self.numel_out) {
            (Some(a), Some(b)) => write!(f, ", {a} to {b} elements")?,
            (Some(a), None) => write!(f, ", {a} elements")?,
            _ => {}
        }
        if let Some(root) = self.root {
            write!(f, " from rank {root}")?;
        }
        if let Some(part) = self.parts.iter().find(|part| part.tag != 0) {
            write!(f, ", tag {}", part.tag)?;
        }
        write!(f, ")")
    }
}

/// Whole nanoseconds, so that equal times are equal.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round().clamp(0.0, 1e18) as u64
}

impl Program {
    /// Lowers a graph. Linear in its size.
    pub fn of(graph: &Graph, estimates: &Estimates) -> Program {
        let written = fused::written_out(graph);
        let graph = written.as_ref().unwrap_or(graph);
        let ops = Ops::of(graph);
        let collectives = Collectives::new(graph, &ops);
        let seconds = estimates.of(graph, &ops, &collectives);
        let mut program = Program::lower(graph, &ops, &collectives, &seconds);
        match at_once(graph, &ops) {
            Ok(Some((first, second))) => program.hangs.push(format!(
                "{} may start while {} spins, on another stream: both meet their ranks in the same memory of their group, and \
                 may wait for ever",
                graph.name(second),
                graph.name(first)
            )),
            Ok(None) => {}
            Err(why) => program.unmodelled.push(why.tell(graph)),
        }
        program
    }

    /// Says of each operation what it computes, for the comparison with other graphs.
    pub fn identify(&mut self, graph: &Graph) {
        let computed = computed(graph);
        for operation in &mut self.operations {
            operation.computed = graph.find(&operation.name).map(|node| computed[node.index()]);
        }
    }

    /// Lowers a graph whose communication and durations are known.
    pub fn lower(graph: &Graph, ops: &Ops, collectives: &Collectives, seconds: &[f64]) -> Program {
        let launches = Launches::new(graph, collectives);
        let mut program = Program::default();
        let mut operation_of = vec![None; collectives.calls.len()];
        let mut waits: Vec<(NodeId, usize)> = Vec::new();
        for (launch, of_launch) in collectives.waits.iter().enumerate() {
            waits.extend(of_launch.iter().map(|&wait| (wait, launch)));
        }
        waits.sort_unstable();
        let mut next_wait = 0;
        for id in graph.ids().filter(|&id| graph.node(id).op == Op::Call) {
            let name = || graph.name(id).to_string();
            let duration = nanoseconds(seconds.get(id.index()).copied().unwrap_or(0.0));
            while next_wait < waits.len() && waits[next_wait].0 < id {
                next_wait += 1;
            }
            if let Some(launch) = collectives.launch_at(id) {
                match operation(graph, &collectives.calls[launch], launches.get(launch)) {
                    Ok(mut operation) => {
                        if operation.kind.is_unmodelled() {
                            let target = graph.target(id);
                            program.unmodelled.push(format!(
                                "{} communicates in a way that is not modelled ({target})",
                                name()
                            ));
                            operation.reduce_op = Some(target.to_string());
                        }
                        operation.nanoseconds = duration;
                        let is_synchronous = operation.is_synchronous;
                        let index = program.operations.len();
                        operation_of[launch] = Some(index);
                        program.operations.push(operation);
                        program.steps.push(Step::Launch(index));
                        if is_synchronous {
                            program.steps.push(Step::Wait { name: name(), operation: index });
                        }
                    }
                    Err(why) => program.unmodelled.push(why),
                }
            } else if waits.get(next_wait).is_some_and(|wait| wait.0 == id) {
                while let Some(&(_, launch)) = waits.get(next_wait).filter(|wait| wait.0 == id) {
                    next_wait += 1;
                    match operation_of[launch] {
                        Some(operation) => program.steps.push(Step::Wait { name: name(), operation }),
                        None => {
                            let start = graph.name(collectives.calls[launch].node);
                            program
                                .unmodelled
                                .push(format!("{} waits for {start}, which is not launched", name()));
                        }
                    }
                }
            } else if let Some(why) = unknown_communication(graph, ops, id) {
                program.unmodelled.push(why);
            } else if duration > 0 {
                program.steps.push(Step::Compute { name: name(), nanoseconds: duration });
            }
        }
        program
    }

    /// Appends a launch; gives its index.
    pub fn launch(&mut self, operation: Operation) -> usize {
        let index = self.operations.len();
        let is_synchronous = operation.is_synchronous;
        let name = operation.name.clone();
        self.operations.push(operation);
        self.steps.push(Step::Launch(index));
        if is_synchronous {
            self.wait(&name, index);
        }
        index
    }

    /// Appends a wait for an operation.
    pub fn wait(&mut self, name: &str, operation: usize) {
        self.steps.push(Step::Wait { name: name.to_string(), operation });
    }

    /// Whether any operation is between two ranks.
    pub(super) fn has_messages(&self) -> bool {
        self.operations.iter().any(Operation::is_message)
    }
}

/// The launches of a graph by number, as [`Sequences`] describes them.
struct Launches(Vec<Option<Launch>>);

impl Launches {
    fn new(graph: &Graph, collectives: &Collectives) -> Launches {
        let mut launches = vec![None; collectives.calls.len()];
        for sequence in Sequences::new(graph, collectives).groups {
            for launch in sequence.launches {
                if let Some(at) = collectives.launch_at(launch.node) {
                    launches[at] = Some(launch);
                }
            }
        }
        Launches(launches)
    }

    fn get(&self, launch: usize) -> Option<&Launch> {
        self.0.get(launch).and_then(Option::as_ref)
    }
}

/// Why a call that is no known communication may communicate all the same: nobody knows its operator, and it is of
/// PyTorch's library of collectives, or is given a process group; or it waits for what such a call makes.
fn unknown_communication(graph: &Graph, ops: &Ops, id: NodeId) -> Option<String> {
    let is_unknown = |id: NodeId| graph.node(id).op == Op::Call && ops.get(graph, id).schema.is_none();
    let target = graph.target(id);
    let name = graph.name(id);
    if matches!(ops.get(graph, id).kind, Kind::Wait) {
        let started = graph.inputs(id).into_iter().find(|&input| is_unknown(input))?;
        return Some(format!("{name} waits for {}, of an operator that is not known", graph.name(started)));
    }
    if !is_unknown(id) {
        return None;
    }
    let is_group = |value: &Value| match value {
        Value::Str(text) => graph.world.group(graph.text(*text)).is_some(),
        _ => false,
    };
    let is_given_one =
        graph.args(id).iter().any(is_group) || graph.kwargs(id).any(|(_, value)| is_group(&value));
    let is_of_collectives = target.starts_with("_c10d_functional.") || target.starts_with("c10d");
    (is_given_one || is_of_collectives).then(|| format!("{name} may communicate: {target} is not known"))
}

/// A launch as an operation; why it is not modelled, otherwise.
fn operation(graph: &Graph, call: &CollectiveCall, launch: Option<&Launch>) -> Result<Operation, String> {
    let name = graph.name(call.node);
    let GroupName::Text(group) = call.group else {
        return Err(format!("the process group of {name} is not known"));
    };
    let messages = call.messages.as_ref().ok_or_else(|| format!("the messages of {name} are not known"))?;
    let parts = messages.iter().map(|message| {
        let (tag, dtype, numel) = message.terms(graph);
        Part { sends: message.sends, peer: message.peer, dtype, numel, tag }
    });
    let parts = parts.collect();
    let described = launch.cloned();
    let mut operation = Operation::collective(name, group, call.kind);
    operation.parts = parts;
    // Whether ranks wait for each other in what is not modelled is not known.
    operation.is_synchronous = call.is_done_at_once && !call.kind.is_unmodelled();
    if let Some(launch) = described {
        operation.reduce_op = launch.reduce_op;
        operation.dtype = launch.dtype;
        operation.numel_in = launch.numel_in;
        // What a send hands back is empty.
        operation.numel_out = launch.numel_out.filter(|_| !operation.is_message());
        operation.root = launch.root;
        operation.splits = launch.splits;
        operation.shapes = launch.shapes;
    }
    Ok(operation)
}
