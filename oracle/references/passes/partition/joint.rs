//! The joint graph as the partitioners see it: kinds of placeholders, outputs of either side, sizes, and what is
//! impure.
//!
//! Source: `torch._functorch._aot_autograd.utils` (placeholders), `torch._functorch.partitioners._size_of`,
//! `torch._library.utils.is_impure`.

use super::error::{Origin, PartitionError, Problem};
use super::marks::{MarkTable, Marks, Placement};
use super::targets::{Target, Targets};
use crate::analysis::{Collectives, Edges};
use crate::config::partition::PartitionConfig;
use crate::graph::{Dim, Graph, NodeId, Op, Out, Str, Symbol, Value};
use crate::ops::Ops;
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;

/// What a node is to a partitioner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Role {
    Primal,
    ForwardSeed,
    Tangent,
    BackwardSeed,
    Constant,
    Call,
    Output,
}

impl Role {
    /// The kind of a placeholder, by its target.
    fn of_placeholder(target: &str) -> Role {
        let holds = |words: [&str; 2]| words.iter().any(|word| target.contains(word));
        if target.contains("tangents") {
            Role::Tangent
        } else if holds(["bwd_seed", "bwd_base_offset"]) {
            Role::BackwardSeed
        } else if holds(["fwd_seed", "fwd_base_offset"]) {
            Role::ForwardSeed
        } else {
            Role::Primal
        }
    }
}

/// What a node's value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Sort {
    Tensor,
    Tuple,
    SymInt,
    SymBool,
    SymFloat,
    Device,
    /// An object of the script runtime.
    Script,
    /// A process group or the like.
    Opaque,
    /// Nothing, or nothing is recorded.
    Nothing,
}

/// The side of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Side {
    Forward,
    Backward,
}

/// Elements of a tensor whose size has no hint.
const UNKNOWN_ELEMENTS: i64 = 4096;

/// A joint graph with what is known about its nodes.
#[derive(Clone, Debug)]
pub struct Joint {
    /// The graph. Its tags are those of [`Joint::marks`] only once they are written back.
    pub graph: Graph,
    /// Data edges.
    pub edges: Edges,
    /// Operators.
    pub ops: Ops,
    /// Targets.
    pub targets: Targets,
    /// Tags, as the passes have changed them.
    pub marks: MarkTable,
    /// The output node.
    pub output: NodeId,
    /// Forward outputs, flattened.
    pub forward_outputs: Vec<Value>,
    /// Backward outputs, flattened.
    pub backward_outputs: Vec<Value>,
    roles: Vec<Role>,
    /// What is made of a tangent.
    of_tangents: FixedBitSet,
    /// For each value of communication in flight the waits for it.
    waits: FxHashMap<NodeId, Vec<NodeId>>,
    symbols: FxHashMap<Str, usize>,
    suppressed_waits: bool,
    impure_random: bool,
}

impl Joint {
    /// Reads `graph`. Refused: a graph without an output at its end, with a name twice, or with a reference to a
    /// node that does not come before.
    pub fn new(graph: Graph, config: &PartitionConfig) -> Result<Joint, PartitionError> {
        let malformed = |message: &str| PartitionError::new(Problem::Malformed, message);
        let output = graph.output().ok_or_else(|| malformed("the joint graph has no output"))?;
        if output.index() + 1 != graph.len() {
            return Err(malformed("the output is not the last node of the joint graph"));
        }
        for id in graph.ids() {
            let name = graph.name(id);
            if graph.find(name) != Some(id) {
                return Err(malformed("a name occurs twice").with(
                    name,
                    Origin::DataDependence,
                    "is not unique",
                ));
            }
            let mut fault = None;
            graph.for_each_dangling(id, &mut |missing| {
                fault = Some(format!("refers to {missing}, which no node is"))
            });
            graph.for_each_input(id, &mut |input| {
                if input >= id {
                    let known = input.index() < graph.len();
                    let what = if known { graph.name(input) } else { "a node outside the graph" };
                    fault = Some(format!("refers to {what}, which does not come before"));
                }
            });
            if let Some(fault) = fault {
                let error = malformed("the joint graph is not in topological order");
                return Err(error.with(name, Origin::DataDependence, fault));
            }
        }
        let mut outputs = Vec::new();
        flatten(&graph, graph.args(output), &mut outputs);
        let count = config.num_forward_outputs.or_else(|| recorded(&graph, "num_fwd_outputs")).ok_or_else(|| {
            malformed("neither the file nor the options say how many outputs are forward outputs (num_fwd_outputs)")
        })?;
        if count > outputs.len() {
            return Err(malformed("there are fewer outputs than forward outputs"));
        }
        let backward_outputs = outputs.split_off(count);
        let ops = Ops::of(&graph);
        let collectives = Collectives::new(&graph, &ops);
        let edges = Edges::new(&graph);
        let in_flight = |id: NodeId| {
            let waits = &collectives.waits[collectives.launch_of_value(id)?];
            let waits: Vec<NodeId> =
                edges.users(id).iter().copied().filter(|user| waits.contains(user)).collect();
            (!waits.is_empty()).then_some((id, waits))
        };
        let waits = graph.ids().filter_map(in_flight).collect();
        let roles = graph.ids().map(|id| match graph.node(id).op {
            Op::Placeholder => Role::of_placeholder(graph.target(id)),
            Op::GetAttr => Role::Constant,
            Op::Call => Role::Call,
            Op::Output => Role::Output,
        });
        let roles: Vec<Role> = roles.collect();
        let mut of_tangents = FixedBitSet::with_capacity(graph.len());
        for id in graph.ids() {
            let is_made_of_one = edges.inputs(id).iter().any(|input| of_tangents.contains(input.index()));
            of_tangents.set(id.index(), roles[id.index()] == Role::Tangent || is_made_of_one);
        }
        let symbol = |(i, symbol): (usize, &Symbol)| Some((graph.strings().find(&symbol.name)?, i));
        Ok(Joint {
            roles,
            of_tangents,
            waits,
            symbols: graph.symbols.iter().enumerate().rev().filter_map(symbol).collect(),
            edges,
            targets: Targets::of(&graph, &ops),
            marks: MarkTable::of(&graph),
            ops,
            output,
            forward_outputs: outputs,
            backward_outputs,
            suppressed_waits: config.suppresses_waits(),
            impure_random: config.impure_random,
            graph,
        })
    }

    /// All nodes, in graph order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        self.graph.ids()
    }

    /// The name of a node.
    pub fn name(&self, id: NodeId) -> &str {
        self.graph.name(id)
    }

    /// The distinct nodes that take the value of `id`.
    pub fn users(&self, id: NodeId) -> &[NodeId] {
        self.edges.users(id)
    }

    /// What `id` is.
    pub fn role(&self, id: NodeId) -> Role {
        self.roles[id.index()]
    }

    /// The nodes with a role, in graph order.
    pub fn with_role(&self, role: Role) -> Vec<NodeId> {
        self.ids().filter(|&id| self.role(id) == role).collect()
    }

    /// What `id` calls.
    pub fn target(&self, id: NodeId) -> Target {
        self.targets.call(&self.graph, id)
    }

    /// The tags of `id`.
    pub fn tags(&self, id: NodeId) -> &Marks {
        self.marks.get(id)
    }

    /// What the value of `id` is.
    pub fn sort(&self, id: NodeId) -> Sort {
        match self.graph.node(id).out {
            Out::Tensor(_) => Sort::Tensor,
            Out::Tuple(_) | Out::Dict(_) => Sort::Tuple,
            Out::Int(_) | Out::SymInt(_) => Sort::SymInt,
            Out::SymBool(_) => Sort::SymBool,
            Out::Other(name) => match self.graph.text(name) {
                "SymFloat" => Sort::SymFloat,
                "device" | "torch.device" => Sort::Device,
                "ScriptObject" | "FakeScriptObject" => Sort::Script,
                _ => Sort::Opaque,
            },
            Out::Absent | Out::None | Out::Key(_) => Sort::Nothing,
        }
    }

    /// Whether the value is a symbolic number.
    pub fn symbolic(&self, id: NodeId) -> bool {
        matches!(self.sort(id), Sort::SymInt | Sort::SymBool | Sort::SymFloat)
    }

    /// Whether the value is an object that is passed along, neither tensor nor number.
    pub fn opaque(&self, id: NodeId) -> bool {
        matches!(self.sort(id), Sort::Opaque | Sort::Script)
    }

    /// Whether `id` is a symbolic bool that only assertions read.
    pub fn asserted_only(&self, id: NodeId) -> bool {
        let users = self.users(id);
        self.sort(id) == Sort::SymBool
            && !users.is_empty()
            && users.iter().all(|&user| self.target(user).assert_scalar)
    }

    /// Whether `id` has users and all of them take one of its results.
    pub fn read_by_index(&self, id: NodeId) -> bool {
        let users = self.users(id);
        !users.is_empty() && users.iter().all(|&user| self.target(user).getitem)
    }

    /// The users of `id` that take one of its results.
    pub fn getitems(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        self.users(id).iter().copied().filter(|&user| self.target(user).getitem)
    }

    /// The index that a getitem takes.
    pub fn index(&self, id: NodeId) -> Option<i64> {
        match self.graph.arg(id, 1) {
            Some(Value::Int(index)) => Some(index),
            _ => None,
        }
    }

    /// The symbol with this name.
    pub fn symbol(&self, name: Str) -> Option<&Symbol> {
        self.symbols.get(&name).map(|&index| &self.graph.symbols[index])
    }

    /// Whether `id` draws random numbers: dropout of attention that is 0 draws none.
    pub fn draws(&self, id: NodeId) -> bool {
        self.ops.draws(&self.graph, id)
    }

    /// The waits for the communication whose result `id` is before anybody waited: such a value is not saved, since
    /// its buffer is still being filled. Empty for every other value.
    pub fn waits(&self, id: NodeId) -> &[NodeId] {
        self.waits.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Whether `id` acts beyond its value; `random`: whether drawing counts.
    pub fn impure(&self, id: NodeId, random: bool) -> bool {
        match self.role(id) {
            Role::Constant => false,
            Role::Call => {
                let target = self.target(id);
                target.mutable
                    || (target.side_effect && !(target.wait_tensor && self.suppressed_waits))
                    || (random && target.seeded)
                    || (target.wrapper.is_some_and(|_| self.wraps_side_effect(id)))
            }
            _ => true,
        }
    }

    /// Whether dead-code elimination keeps `id` although nobody reads it.
    pub fn survives(&self, id: NodeId) -> bool {
        self.impure(id, self.impure_random)
    }

    fn wraps_side_effect(&self, id: NodeId) -> bool {
        match self.graph.arg(id, 0) {
            Some(Value::Function(name) | Value::Str(name)) => super::targets::acts(self.graph.text(name)),
            _ => false,
        }
    }

    /// Whether `id` belongs in the forward graph by its tag, or because it writes and is not tagged backward, or has
    /// another effect that no tag and no tangent puts into backward. (PyTorch asserts again in backward what forward has
    /// asserted.)
    pub fn must_be_forward(&self, id: NodeId) -> bool {
        let acts = || self.target(id).side_effect && !self.target(id).wait;
        match self.tags(id).placement {
            Placement::MustBeForward => true,
            Placement::Backward | Placement::MustBeBackward => false,
            Placement::Untagged => {
                self.target(id).mutable || acts() && !self.of_tangents.contains(id.index())
            }
            Placement::Forward => self.target(id).mutable || acts(),
        }
    }

    /// Whether `id` belongs in the backward graph by its tag, or because it writes or acts and is tagged backward.
    pub fn must_be_backward(&self, id: NodeId) -> bool {
        match self.tags(id).placement {
            Placement::MustBeBackward => true,
            // In PyTorch the effects of backward take tokens that are tangents. Without tokens the tag alone says it.
            Placement::Backward => self.target(id).mutable || self.target(id).acts_outside,
            _ => false,
        }
    }

    /// The size of the value in bytes, for the budget and for weights. A symbolic number has 1.
    pub fn size(&self, id: NodeId) -> Result<i64, PartitionError> {
        let unknown = |text: &str| {
            let error = PartitionError::new(Problem::UnknownSize, "a value has no size");
            Err(error.with(self.name(id), Origin::DataDependence, text))
        };
        match self.graph.node(id).out {
            Out::Tensor(_) | Out::Tuple(_) | Out::Dict(_) => Ok(self.bytes_of(self.graph.node(id).out)),
            Out::Int(_) | Out::SymInt(_) | Out::SymBool(_) => Ok(1),
            Out::Other(_) if self.symbolic(id) => Ok(1),
            Out::Other(_) => Ok(0),
            Out::Absent if self.role(id) == Role::Constant || self.target(id).returns_nothing => Ok(0),
            Out::Absent => unknown("nothing is recorded of what it returns"),
            Out::None | Out::Key(_) => unknown("returns None"),
        }
    }

    fn bytes_of(&self, out: Out) -> i64 {
        match out {
            Out::Tensor(tensor) => {
                let tensor = self.graph.tensor(tensor);
                let symbolic =
                    self.graph.dims(tensor.shape).iter().any(|dim| matches!(dim, Dim::Symbolic(_)));
                let elements = match self.graph.numel(tensor) {
                    None if symbolic => UNKNOWN_ELEMENTS,
                    None => i64::MAX,
                    Some(elements) => elements,
                };
                elements.saturating_mul(i64::from(tensor.dtype.itemsize()))
            }
            // Tuples in tuples count for nothing.
            Out::Tuple(parts) | Out::Dict(parts) => self
                .graph
                .outs(parts)
                .iter()
                .filter(|part| matches!(part, Out::Tensor(_)))
                .fold(0i64, |sum, &part| sum.saturating_add(self.bytes_of(part))),
            _ => 0,
        }
    }
}

/// A number that the graph's file states about the graph.
fn recorded(graph: &Graph, key: &str) -> Option<usize> {
    graph.extra.iter().find(|(k, _)| k == key)?.1.trim().parse().ok()
}

/// The leaves of nested lists and mappings, in order.
fn flatten(graph: &Graph, values: &[Value], leaves: &mut Vec<Value>) {
    let mut stack: Vec<Value> = values.iter().rev().copied().collect();
    while let Some(value) = stack.pop() {
        match value {
            Value::List(span) => stack.extend(graph.values(span).iter().rev()),
            Value::Dict(span) => stack.extend(graph.values(span).chunks_exact(2).rev().map(|pair| pair[1])),
            leaf => leaves.push(leaf),
        }
    }
}

/// The nodes among values.
pub(super) fn nodes_of(values: &[Value]) -> impl Iterator<Item = NodeId> {
    values.iter().filter_map(|value| match value {
        Value::Node(id) => Some(*id),
        _ => None,
    })
}
