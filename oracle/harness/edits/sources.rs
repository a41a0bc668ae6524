//! Which inputs a value depends on.
//!
//! For each node two sets of inputs: those that *every* element of its value depends on, and those that *any* may. If
//! some input is in the first set of one value and not in the second of another, the two are different functions of the
//! inputs, and so is what is computed from them. Inputs that share memory count as one.
//!
//! Operators are taken at their word: a function is taken to depend on each operand that it reads, except where the
//! tables below say that it may not. Through memory that is written, nothing is certain.

use crate::analysis::Storages;
use crate::graph::{Graph, NodeId, Op, StorageId, Value};
use crate::ops::{Collective, Kind, Move, OpInfo, Ops, Random, View};
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;

/// What the elements of a call's value are made of.
pub(super) enum Made {
    /// Every element depends on each of these.
    OfAll(Vec<NodeId>),
    /// Every element comes from one of these, and each of these is in the result.
    Joined(Vec<NodeId>),
    /// Some elements depend on these; others may not.
    PartOf(Vec<NodeId>),
    /// Nothing certain.
    Unknown,
}

impl Made {
    /// The operands that some element depends on.
    pub(super) fn operands(self) -> Vec<NodeId> {
        match self {
            Made::OfAll(of) | Made::Joined(of) | Made::PartOf(of) => of,
            Made::Unknown => Vec::new(),
        }
    }
}

/// Operators that do not use each of their operands for each of their results, or use some only for their shape.
const LOOSE: &[&str] = &[
    "aten.convolution_backward",
    "aten.native_layer_norm_backward",
    "aten.native_group_norm_backward",
    "aten.native_batch_norm",
    "aten._native_batch_norm_legit",
    "aten.cudnn_batch_norm",
    "aten.embedding_dense_backward",
    "aten.max_pool2d_with_indices_backward",
    "higher_order.",
];

/// What the value of `id` is made of.
pub(super) fn made(graph: &Graph, ops: &Ops, id: NodeId) -> Made {
    let Some(info) = ops.call(graph, id) else { return Made::Unknown };
    let inputs = || graph.inputs(id);
    let first = |n: usize| inputs().into_iter().skip(n).take(1).collect::<Vec<_>>();
    match info.kind {
        Kind::View(View::AsStrided) => Made::PartOf(first(0)),
        Kind::View(_) | Kind::Cast | Kind::Wait | Kind::Reduce(_) | Kind::Cumsum => Made::OfAll(first(0)),
        Kind::Unary(_)
        | Kind::Binary(_)
        | Kind::Where
        | Kind::Fma
        | Kind::Clamp
        | Kind::MaskedFill
        | Kind::Pointwise
        | Kind::Matmul(_) => Made::OfAll(inputs()),
        Kind::Move(Move::Clone | Move::Repeat | Move::Flip | Move::Roll | Move::SplitWithSizesCopy) => {
            Made::OfAll(first(0))
        }
        Kind::Move(Move::Index | Move::IndexSelect | Move::Gather | Move::Embedding) => Made::OfAll(inputs()),
        Kind::Move(Move::Cat | Move::Stack) => Made::Joined(inputs()),
        Kind::Move(Move::Copy) => Made::OfAll(first(1)),
        Kind::Move(
            Move::SliceScatter | Move::SelectScatter | Move::AsStridedScatter | Move::DiagonalScatter,
        ) => Made::PartOf(first(1)),
        Kind::Move(Move::Pad) => Made::PartOf(first(0)),
        Kind::Collective(
            Collective::AllGather
            | Collective::ReduceScatter
            | Collective::AllReduce
            | Collective::AllToAll
            | Collective::ShardDimAllToAll,
        ) => match &info.schema {
            // Of what is sent; a buffer to be filled says nothing, and of several tensors each gives its own result.
            Some(schema) if schema.params.first().is_some_and(|param| param.ty == "Tensor") => {
                Made::OfAll(first(0))
            }
            _ => Made::Joined(inputs()),
        },
        Kind::GetItem => item(graph, ops, id),
        Kind::Random(Random::Attention) | Kind::Opaque => match is_loose(info) {
            true => Made::Unknown,
            false => Made::OfAll(inputs()),
        },
        _ => Made::Unknown,
    }
}

fn is_loose(info: &OpInfo) -> bool {
    info.effect || LOOSE.iter().any(|prefix| info.target.starts_with(prefix))
}

/// Of several results of an operator that the oracle does not compute, only the first is taken to depend on all
/// operands.
fn item(graph: &Graph, ops: &Ops, id: NodeId) -> Made {
    let Some(Value::Node(of)) = graph.arg(id, 0) else { return Made::Unknown };
    let is_first = graph.arg(id, 1) == Some(Value::Int(0));
    match ops.call(graph, of).map(|info| info.kind) {
        Some(Kind::View(_) | Kind::Move(Move::SplitWithSizesCopy)) => Made::OfAll(vec![of]),
        Some(Kind::Opaque | Kind::Random(Random::Attention)) if is_first => Made::OfAll(vec![of]),
        Some(Kind::Collective(_)) => Made::OfAll(vec![of]),
        _ => Made::Unknown,
    }
}

/// The sets of all nodes of a graph.
pub(super) struct Sources {
    certain: Vec<FixedBitSet>,
    possible: Vec<FixedBitSet>,
}

impl Sources {
    /// The sets for the inputs of `graph` itself, each node's own unless `known` has others.
    pub(super) fn new(
        graph: &Graph,
        ops: &Ops,
        storages: &Storages,
        count: usize,
        known: &dyn Fn(NodeId) -> Option<(FixedBitSet, FixedBitSet)>,
    ) -> Sources {
        let empty = || FixedBitSet::with_capacity(count);
        let mut sets = Sources { certain: vec![empty(); graph.len()], possible: vec![empty(); graph.len()] };
        let mut written: Vec<FixedBitSet> = vec![empty(); storages.len()];
        for id in graph.ids() {
            let mut possible = empty();
            graph.for_each_input(id, &mut |input: NodeId| {
                if let Some(set) = sets.possible.get(input.index()) {
                    possible.union_with(set);
                    storages
                        .all_parts(input)
                        .for_each(|part| possible.union_with(&written[part.storage.index()]));
                }
            });
            for access in storages.accesses_by(id).iter().filter(|access| access.touch.writes()) {
                written[access.part.storage.index()].union_with(&possible);
            }
            // Nothing depends on a tensor that has no elements.
            if graph.tensor_of(id).is_some_and(|tensor| graph.numel(tensor) == Some(0)) {
                continue;
            }
            if let Some((certain, possible)) = known(id) {
                (sets.certain[id.index()], sets.possible[id.index()]) = (certain, possible);
                continue;
            }
            sets.certain[id.index()] = sets.certainly(graph, ops, storages, id, count);
            sets.possible[id.index()] = possible;
            if matches!(graph.node(id).op, Op::Placeholder | Op::GetAttr) {
                sets.possible[id.index()].insert_range(..);
            }
        }
        // Memory that is written shows one thing here and another there.
        for id in graph.ids().filter(|&id| storages.shows_written(id)) {
            sets.certain[id.index()].clear();
            sets.possible[id.index()].insert_range(..);
        }
        sets
    }

    fn certainly(
        &self,
        graph: &Graph,
        ops: &Ops,
        storages: &Storages,
        id: NodeId,
        count: usize,
    ) -> FixedBitSet {
        let of = |input: NodeId| match storages.shows_written(input) {
            true => FixedBitSet::with_capacity(count),
            false => self.certain[input.index()].clone(),
        };
        let mut sets = match made(graph, ops, id) {
            Made::OfAll(operands) => {
                let mut all = FixedBitSet::with_capacity(count);
                operands.into_iter().for_each(|operand| all.union_with(&of(operand)));
                return all;
            }
            Made::Joined(operands) => operands.into_iter().map(of),
            Made::PartOf(_) | Made::Unknown => return FixedBitSet::with_capacity(count),
        };
        let first = sets.next().unwrap_or_else(|| FixedBitSet::with_capacity(count));
        sets.fold(first, |mut all, set| {
            all.intersect_with(&set);
            all
        })
    }

    /// Both sets of a node.
    pub(super) fn of(&self, id: NodeId) -> (FixedBitSet, FixedBitSet) {
        (self.certain[id.index()].clone(), self.possible[id.index()].clone())
    }

    /// An input that every element of `a` depends on and no element of `b`.
    pub(super) fn distinguishes(&self, a: NodeId, b: NodeId) -> Option<usize> {
        self.certain[a.index()].difference(&self.possible[b.index()]).next()
    }

    /// Whether a value may depend on some input.
    pub(super) fn may_vary(&self, id: NodeId) -> bool {
        !self.possible[id.index()].is_clear()
    }

    /// Whether two values are certainly different functions of the inputs.
    pub(super) fn differ(&self, a: NodeId, b: NodeId) -> bool {
        self.distinguishes(a, b).is_some() || self.distinguishes(b, a).is_some()
    }

    /// The inputs that every element of a value depends on.
    pub(super) fn certain(&self, id: NodeId) -> &FixedBitSet {
        &self.certain[id.index()]
    }
}

/// The inputs of a graph, numbered; those that share recorded memory have one number.
pub(super) fn inputs(graph: &Graph) -> (Vec<Option<usize>>, usize) {
    let mut by_storage: FxHashMap<StorageId, usize> = FxHashMap::default();
    let mut count = 0;
    let mut numbers = vec![None; graph.len()];
    for id in graph.ids().filter(|&id| matches!(graph.node(id).op, Op::Placeholder | Op::GetAttr)) {
        let storage = graph.tensor_of(id).and_then(|tensor| tensor.storage);
        let number = match storage {
            Some(storage) => *by_storage.entry(storage).or_insert(count),
            None => count,
        };
        count = count.max(number + 1);
        numbers[id.index()] = Some(number);
    }
    (numbers, count)
}
