//! What an evaluation leaves: the values of all nodes, and what the graph does to the world around it.

use super::arena::Arena;
use super::hazard::Hazard;
use super::layout;
use super::place::GroupId;
use super::reason::Reason;
use super::source::{KeyId, Symbol, ValueId};
use crate::analysis::messages::Message;
use crate::graph::{Dtype, Graph, NodeId};
use crate::ops::Collective;

/// A window on a storage. Sizes and strides lie in the evaluation's pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tensor {
    pub(super) storage: u32,
    /// In elements of `dtype`.
    pub(super) offset: i64,
    /// Where the sizes begin in the pool; the strides follow them.
    pub(super) at: u32,
    /// Number of dimensions.
    pub(super) rank: u16,
    pub(super) dtype: Dtype,
    /// The views that lead here from the whole storage, where sizes are symbolic.
    pub(super) path: Option<KeyId>,
}

/// Memory: what it holds, in elements of `dtype`.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    pub(super) content: ValueId,
    pub(super) dtype: Dtype,
    /// A tensor of symbolic sizes: the content is one element that stands for all of it.
    pub(super) symbolic: bool,
    /// The bytes that it was left, where it was resized: what is written past them is lost.
    pub(super) room: Option<i64>,
    /// Collectives in flight that will write here: indices into the evaluator's flights.
    pub(super) flights: Vec<u32>,
}

/// What a node has produced.
#[derive(Clone, Copy, Debug)]
pub(super) enum Produced {
    /// It has not been executed.
    Pending,
    /// Nothing, or `None`.
    Nothing,
    /// A tensor, and what its storage held when the node was done.
    Tensor(Tensor, ValueId),
    /// Several: a range of the evaluation's items.
    List(u32, u32),
    Int(i64),
    /// A number that is not known.
    Number(KeyId),
    /// An attribute of the module that is no tensor.
    Attribute(Symbol),
    /// Not known: an index into the evaluation's reasons.
    Unknown(u32),
}

/// The logical value of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorValue {
    /// The elements in row-major order.
    pub value: ValueId,
    /// Sizes; `None` for a tensor of symbolic sizes, whose value is one element that stands for all of it.
    pub sizes: Option<Vec<i64>>,
    /// Element type.
    pub dtype: Dtype,
}

/// One value that a graph returns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OutputValue {
    /// A tensor.
    Tensor(TensorValue),
    /// A known number or another constant, as text.
    Constant(String),
    /// A number that the graph computes.
    Number(NumberId),
    /// `None`.
    Nothing,
    /// Not known, and why.
    Unknown(Reason),
}

/// A number that a graph computes; equal ids are equal numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NumberId(pub(super) KeyId);

/// An entry of the graph's output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// The node that is returned; `None` for a constant.
    pub node: Option<NodeId>,
    /// Its value.
    pub value: OutputValue,
}

/// The final content of the storage of a graph input or a constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mutation {
    /// The input, or the first node that gets the constant.
    pub holder: NodeId,
    /// What its storage holds in the end, by place in the storage.
    pub content: ValueId,
    /// Whether that is what it held in the beginning.
    pub unchanged: bool,
}

/// Something that the graph does beside computing values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect {
    /// The node that does it.
    pub node: NodeId,
    /// What it does: operator and arguments.
    pub(super) key: KeyId,
    /// Whether its place among the other effects matters. Assertions on numbers may trade places.
    pub ordered: bool,
    /// Whether it is known to have an effect: of an unknown operator it is not.
    pub certain: bool,
}

/// What a collective sends of one tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payload {
    /// The elements sent, in row-major order.
    pub value: ValueId,
    /// Their type.
    pub dtype: Dtype,
    /// The elements that this rank receives; they are there once waited for.
    pub result: Option<ValueId>,
}

/// The start of a collective.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launch {
    /// The node.
    pub node: NodeId,
    /// What it does.
    pub kind: Collective,
    /// The process group.
    pub group: GroupId,
    /// Ranks of the group, where known.
    pub group_size: Option<u32>,
    /// `sum`, `avg`, ... for reductions.
    pub reduce_op: Option<Symbol>,
    /// Source or destination of a broadcast, send or receive.
    pub peer: Option<i64>,
    /// The tensors that it sends; several for a coalesced form.
    pub payloads: Vec<Payload>,
    /// The messages that it starts, one for each payload; none of a collective.
    pub messages: Vec<Message>,
}

/// A graph, evaluated.
#[derive(Clone, Debug)]
pub struct Evaluation<'g> {
    /// The graph.
    pub graph: &'g Graph,
    /// What it returns.
    pub outputs: Vec<Output>,
    /// What it leaves in its inputs, one for each tensor input, in order.
    pub mutations: Vec<Mutation>,
    /// What it leaves in its constants, by their targets.
    pub constants: Vec<(&'g str, Mutation)>,
    /// What else it does, in order.
    pub effects: Vec<Effect>,
    /// Its communication, in order.
    pub launches: Vec<Launch>,
    /// What went wrong, in order.
    pub hazards: Vec<Hazard>,
    /// Runs that were written to storages, over all writes: a measure of the work.
    pub runs: usize,
    /// Why effects or writes may be missing: nothing can be said about the graph as a whole.
    pub broken: Option<(NodeId, Reason)>,
    pub(super) pool: Vec<i64>,
    pub(super) storages: Vec<Storage>,
    pub(super) produced: Vec<Produced>,
    pub(super) items: Vec<Produced>,
    pub(super) reasons: Vec<(NodeId, Reason)>,
    /// For each reference of a node, in argument order, the node that it names, and what the storage behind that held
    /// when it was read.
    pub(super) seen: Vec<(NodeId, ValueId)>,
    /// Where the references of each node begin in `seen`.
    pub(super) seen_at: Vec<u32>,
}

impl<'g> Evaluation<'g> {
    pub(super) fn sizes(&self, tensor: Tensor) -> &[i64] {
        let at = tensor.at as usize;
        &self.pool[at..at + tensor.rank as usize]
    }

    pub(super) fn strides(&self, tensor: Tensor) -> &[i64] {
        let at = tensor.at as usize + tensor.rank as usize;
        &self.pool[at..at + tensor.rank as usize]
    }

    pub(super) fn is_symbolic(&self, tensor: Tensor) -> bool {
        tensor.path.is_some() || self.storages[tensor.storage as usize].symbolic
    }

    /// What a node has produced as its `index`-th result: the only one has index 0.
    pub(super) fn result(&self, node: NodeId, index: usize) -> Produced {
        match self.produced.get(node.index()) {
            Some(&Produced::List(start, len)) if index < len as usize => self.items[start as usize + index],
            Some(&produced) if index == 0 => produced,
            _ => Produced::Pending,
        }
    }

    /// How many results a node has.
    pub(super) fn results(&self, node: NodeId) -> usize {
        match self.produced.get(node.index()) {
            Some(&Produced::List(_, len)) => len as usize,
            Some(Produced::Pending) | None => 0,
            _ => 1,
        }
    }

    /// The elements that `tensor` shows of its storage when that holds `content`.
    pub(super) fn shown(
        &self,
        arena: &mut Arena,
        tensor: Tensor,
        content: ValueId,
    ) -> Result<ValueId, Reason> {
        if self.is_symbolic(tensor) {
            return Ok(super::dynamic::shown(arena, tensor, content));
        }
        let stored = self.storages[tensor.storage as usize].dtype;
        let content = arena.retyped(content, stored, tensor.dtype)?;
        let (sizes, strides) = (self.sizes(tensor), self.strides(tensor));
        let count = layout::numel(sizes).ok_or(Reason::Overflow)?;
        if tensor.offset == 0 && count == arena.len(content) && layout::is_contiguous(sizes, strides) {
            return Ok(content);
        }
        arena.read(content, tensor.offset, &layout::normal(sizes, strides), count)
    }

    fn tensor_value(
        &self,
        arena: &mut Arena,
        tensor: Tensor,
        content: ValueId,
    ) -> Result<TensorValue, Reason> {
        let value = self.shown(arena, tensor, content)?;
        let sizes = (!self.is_symbolic(tensor)).then(|| self.sizes(tensor).to_vec());
        Ok(TensorValue { value, sizes, dtype: tensor.dtype })
    }

    /// The `index`-th result of a node, as it was when the node was done: a wait has happened only after the wait.
    /// `None` if that is no tensor; the reason if its value is not known.
    pub fn value(
        &self,
        arena: &mut Arena,
        node: NodeId,
        index: usize,
    ) -> Option<Result<TensorValue, &Reason>> {
        match self.result(node, index) {
            Produced::Tensor(tensor, content) => self.tensor_value(arena, tensor, content).ok().map(Ok),
            Produced::Unknown(reason) => Some(Err(&self.reasons[reason as usize].1)),
            _ => None,
        }
    }

    /// The tensor that the `index`-th reference of `node` (in argument order, repeated references counted) showed
    /// when `node` read it. `None` if it is no single tensor, or not known.
    pub fn value_read(&self, arena: &mut Arena, node: NodeId, index: usize) -> Option<TensorValue> {
        let start = *self.seen_at.get(node.index())? as usize;
        let end = self.seen_at.get(node.index() + 1).map_or(self.seen.len(), |&end| end as usize);
        let &(input, content) = self.seen.get(start..end)?.get(index)?;
        let Produced::Tensor(tensor, _) = self.result(input, 0) else { return None };
        self.tensor_value(arena, tensor, content).ok()
    }

    /// Why the value of a node is not known, if that is so.
    pub fn unknown(&self, node: NodeId) -> Option<&Reason> {
        match self.produced.get(node.index()) {
            Some(&Produced::Unknown(reason)) => Some(&self.reasons[reason as usize].1),
            _ => None,
        }
    }

    /// Nodes whose value is not known though their inputs are, and why; in list order.
    pub fn unknowns(&self) -> impl Iterator<Item = (NodeId, &Reason)> {
        self.reasons
            .iter()
            .filter(|(_, reason)| !matches!(reason, Reason::Input(_)))
            .map(|(node, reason)| (*node, reason))
    }
}
