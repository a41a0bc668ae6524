//! The operators: one table from which everything else is read.
//!
//! # The idea
//!
//! A row is a schema in PyTorch's notation, a short name for the text format and a [`Kind`]. Aliasing, mutation
//! and arity follow from the schema; shape rule, kernel, randomness and communication from the kind. A target
//! that is not in the table takes its schema from the facts in the file; without facts it is unknown, and an
//! unknown operator has an effect.
//!
//! # What it does not do
//!
//! It does not say what a value is (`semantics` does), only what an operator may touch.

mod arithmetic;
mod facts;
mod idle;
mod kind;
mod schema;
mod schemas;
pub mod shape;
mod spelling;
mod table;

pub(crate) use facts::uncomputed;
pub use facts::{
    FactsAbout, FactsDisagreement, facts_disagreements, may_hand_back, views_where_strides_allow,
};
pub use kind::{Binary, Collective, Fill, Kind, Matmul, Move, Number, Random, Reduce, Sync, Unary, View};
pub use schema::{ArityError, Bound, Default, Param, Return, Schema, SchemaError};
pub use spelling::{Word, counts_dimensions, kind_of_device, spelled};
pub use table::{by_short_name, by_target, rows};

use crate::graph::{Dtype, Graph, NodeId, Op, TargetId, Value};
use facts::FactsOf;
use std::borrow::Cow;

/// Operators without kernel that reduce over a set of dimensions.
const REDUCES: [&str; 6] = ["var", "var_mean", "std", "std_mean", "linalg_vector_norm", "logsumexp"];

/// What is known about one target.
#[derive(Clone, PartialEq, Debug)]
pub struct OpInfo {
    /// FX's target, for example `aten.slice.Tensor`.
    pub target: String,
    /// The name in the text case format; empty where there is none and the full target is written.
    pub short: &'static str,
    /// The schema; `None` for Python functions, higher-order operators and unknown targets.
    pub schema: Option<Schema>,
    /// What it does.
    pub kind: Kind,
    /// Whether running it has an effect beyond its results and the arguments that the schema says it writes.
    pub effect: bool,
}

/// What the names of operators begin with that stand for random ones as functions of their draws.
pub const DRAWN_FROM_AN_INPUT: &str = "oracle.draw_";

impl OpInfo {
    /// What is known of a target without a row and without facts.
    pub fn unknown(target: &str) -> OpInfo {
        OpInfo { target: target.to_string(), short: "", schema: None, kind: Kind::Unknown, effect: true }
    }

    /// Whether it may draw random numbers; whether one node does, see [`Ops::draws`].
    pub fn is_random(&self) -> bool {
        matches!(self.kind, Kind::Random(_))
    }

    /// Whether it has an effect beyond memory that comes and goes, which counts as a write to it, and the order of
    /// streams, which `order/streams` looks at.
    pub fn acts(&self) -> bool {
        self.effect && !matches!(self.kind, Kind::Resize | Kind::Sync(_))
    }

    /// Whether all that it does is to check what it takes: a value, or the metadata and sizes of a tensor.
    pub fn asserts(&self) -> bool {
        self.kind == Kind::Assert || (self.kind == Kind::Effect && self.target.starts_with("aten."))
    }

    /// How it orders streams.
    pub fn sync(&self) -> Option<Sync> {
        match self.kind {
            Kind::Sync(sync) => Some(sync),
            _ => None,
        }
    }

    /// Of a copy that may lead from one device to another: whether the host waits for it, given its arguments. None of
    /// all else.
    pub fn copy_is_waited_for(&self, graph: &Graph, id: NodeId) -> Option<bool> {
        let param = self.schema.as_ref()?.param("non_blocking")?;
        let given = graph.argument(id, param, "non_blocking");
        Some(given != Some(Value::Bool(true)))
    }

    /// The kind of communication it starts.
    pub fn collective(&self) -> Option<Collective> {
        match self.kind {
            Kind::Collective(collective) => Some(collective),
            _ => None,
        }
    }

    /// Whether its communication runs on the stream of its caller. What goes through symmetric memory does, but for what
    /// registers a work to be waited for. Sources: `torch/distributed/_symmetric_memory/__init__.py`,
    /// `torch/csrc/distributed/c10d/symm_mem/CUDASymmetricMemoryOps.cu`.
    pub fn is_on_callers_stream(&self) -> bool {
        const WORKS: [&str; 2] = ["_low_contention_all_gather", "_low_contention_reduce_scatter"];
        let is_over_memory =
            |schema: &Schema| schema.namespace == "symm_mem" && !WORKS.contains(&schema.name.as_str());
        self.collective().is_some() && self.schema.as_ref().is_some_and(is_over_memory)
    }

    /// Whether its communication is done when the call is: nothing has to wait for it.
    pub fn is_done_at_once(&self) -> bool {
        let kind = self.collective();
        matches!(kind, Some(Collective::Barrier | Collective::ShardDimAllToAll | Collective::Other))
            || self.is_on_callers_stream()
    }

    /// (result, parameter) pairs that share storage at run time although the schema does not say so: a wait hands
    /// back the tensor that it waits for, a receive the tensor that it fills. Sources: `Functional.cpp`,
    /// `torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py`.
    pub fn undeclared_aliases(&self) -> &'static [(usize, usize)] {
        match self.kind {
            Kind::Wait | Kind::Collective(Collective::Recv) => &[(0, 0)],
            Kind::Move(Move::AllGatherCopyIn) => &[(0, 1), (1, 1)],
            _ => &[],
        }
    }

    /// The parameters that it writes to at run time although the schema does not say so. Of the tensors of
    /// `batch_p2p_ops`, those that are received.
    pub fn undeclared_writes(&self) -> &'static [usize] {
        match self.kind {
            Kind::Collective(Collective::Recv) => &[0],
            Kind::Collective(Collective::PointToPoint) => &[3],
            Kind::Move(Move::AllGatherCopyIn) => &[1],
            Kind::Resize => &[0],
            _ => &[],
        }
    }

    /// Beside [`OpInfo::undeclared_writes`] the running statistics that a call updates in training, which its schema
    /// does not say. Source: `aten/src/ATen/native/Normalization.cpp`.
    pub fn updated(&self, graph: &Graph, id: NodeId) -> &'static [usize] {
        let Some(schema) = self.schema.as_ref().filter(|schema| schema.namespace == "aten") else {
            return &[];
        };
        let params: &[usize] = match schema.name.as_str() {
            "batch_norm"
            | "native_batch_norm"
            | "instance_norm"
            | "_batch_norm_impl_index"
            | "cudnn_batch_norm"
            | "miopen_batch_norm"
            | "batch_norm_gather_stats"
            | "batch_norm_gather_stats_with_counts" => &[3, 4],
            "batch_norm_update_stats" => &[1, 2],
            _ => return &[],
        };
        let trains = ["training", "use_input_stats"].iter().find_map(|name| {
            let param = schema.param(name)?;
            graph.argument(id, param, name)
        });
        if trains == Some(Value::Bool(false)) || schema.mutated().next().is_some() { &[] } else { params }
    }

    /// All parameters that a call writes to, whether the schema says so or not.
    pub fn written(&self, graph: &Graph, id: NodeId) -> impl Iterator<Item = usize> {
        self.mutated().chain(self.undeclared_writes().iter().chain(self.updated(graph, id)).copied())
    }

    /// Whether it stands for a draw that is one of its inputs (see [`DRAWN_FROM_AN_INPUT`]): what it gives is random, and
    /// nothing else is to be known of it.
    pub fn is_given_its_draw(&self) -> bool {
        self.target.starts_with(DRAWN_FROM_AN_INPUT)
    }

    /// Whether a result shares storage with an argument that is not written.
    pub fn is_view(&self) -> bool {
        self.schema.as_ref().is_some_and(|s| s.returns.iter().any(|r| r.alias.is_some() && !r.write))
    }

    /// Whether a parameter counts dimensions of the first tensor, or of the [whole](Self::whole): -1 is the last one.
    /// Windows, which have kernels, and what adds dimensions are left out.
    pub fn counts_dims(&self, param: usize) -> bool {
        let Some(schema) = &self.schema else { return false };
        let is_left_out = matches!(self.kind, Kind::View(_) | Kind::Move(Move::Stack));
        !is_left_out && schema.params.get(param).is_some_and(|param| counts_dimensions(self, param))
    }

    /// The parameter that says how large the whole was, of the gradient of a piece: it counts dimensions of that.
    pub fn whole(&self) -> Option<usize> {
        self.schema.as_ref()?.params.iter().position(|param| param.name == "input_sizes")
    }

    /// The dimensions that such a parameter counts, from the first one of `rank`, those of a reduction in order (no
    /// list is the empty one); `None` where the default says the same, or where these are all and so would none be.
    pub fn dims_counted(&self, param: usize, mut dims: Vec<i64>, rank: i64) -> Option<Vec<i64>> {
        let from_first = |dim: i64| if (-rank..0).contains(&dim) { dim + rank } else { dim };
        dims.iter_mut().for_each(|dim| *dim = from_first(*dim));
        let (schema, known) =
            self.schema.as_ref().and_then(|schema| Some((schema, schema.params.get(param)?)))?;
        let reduces = matches!(self.kind, Kind::Reduce(_)) || REDUCES.contains(&schema.name.as_str());
        if reduces {
            dims.sort_unstable();
        }
        let none_is_all = reduces && known.ty.starts_with("int[") && schema.name != "logsumexp";
        let is_all = none_is_all && (dims.is_empty() || dims.iter().copied().eq(0..rank));
        let says_default = matches!(known.default, Some(Default::Int(n)) if dims == [from_first(n)]);
        (!is_all && !says_default).then_some(dims)
    }

    /// Whether it writes to a parameter.
    pub fn writes(&self) -> bool {
        self.mutated().next().is_some()
    }

    /// The parameters it writes to.
    pub fn mutated(&self) -> impl Iterator<Item = usize> {
        self.schema.iter().flat_map(|s| s.mutated())
    }
}

/// The dtype that `bucketing._pre_bucket_all_gather` means by a number in `out_dtype_ints`: its position among
/// the names of `torch`'s dtypes in alphabetical order, aliases included. Source: `_ALL_DTYPES` in
/// `torch/_inductor/fx_passes/bucketing.py` of PyTorch 2.15.
pub fn dtype_of_bucketing_id(id: i64) -> Option<Dtype> {
    BUCKETING_IDS.iter().find(|&&(i, _)| i == id).map(|&(_, dtype)| dtype)
}

const BUCKETING_IDS: &[(i64, Dtype)] = &[
    (1, Dtype::BF16),
    (8, Dtype::Bool),
    (9, Dtype::C128),
    (10, Dtype::C64),
    (12, Dtype::C128),
    (14, Dtype::C64),
    (15, Dtype::F64),
    (16, Dtype::F32),
    (17, Dtype::F16),
    (18, Dtype::F32),
    (20, Dtype::F64),
    (21, Dtype::F8E4M3),
    (23, Dtype::F8E5M2),
    (26, Dtype::F16),
    (27, Dtype::I32),
    (29, Dtype::I16),
    (32, Dtype::I32),
    (36, Dtype::I64),
    (38, Dtype::I8),
    (39, Dtype::I64),
    (45, Dtype::I16),
    (47, Dtype::U16),
    (50, Dtype::U32),
    (54, Dtype::U64),
    (56, Dtype::U8),
];

/// The operators of one graph, by [`TargetId`].
#[derive(Clone, Debug, Default)]
pub struct Ops(Vec<Cow<'static, OpInfo>>);

impl Ops {
    /// Looks up every target of `graph`: in the table, else in the facts of its file.
    pub fn of(graph: &Graph) -> Ops {
        let mut ops = Ops(Vec::new());
        ops.update(graph);
        ops
    }

    /// Looks up the targets that `graph` has gained since it was last looked at.
    pub fn update(&mut self, graph: &Graph) {
        let known = self.0.len();
        if graph.targets().len() == known {
            return;
        }
        let facts = std::cell::LazyCell::new(|| FactsOf::new(graph));
        let row = |target| by_target(target).map(Cow::Borrowed);
        self.0.extend(graph.targets_from(known).map(|target| {
            row(target).unwrap_or_else(|| {
                let target = schemas::only_overload(target).unwrap_or(target);
                row(target).unwrap_or_else(|| Cow::Owned(facts.info(target)))
            })
        }));
    }

    /// Whether the same is known of `target` and of the target `twin` of another graph.
    pub fn same(&self, target: TargetId, other: &Ops, twin: TargetId) -> bool {
        let (a, b) = (&*self.0[target.0 as usize], &*other.0[twin.0 as usize]);
        std::ptr::eq(a, b) || a == b
    }

    /// What `node` calls; meaningless for other nodes than calls.
    pub fn get(&self, graph: &Graph, node: NodeId) -> &OpInfo {
        &self.0[graph.node(node).target.0 as usize]
    }

    /// Whether running `node` draws random numbers: attention does only where its dropout is not 0, a dropout or
    /// `rrelu` not outside training. In training `native_dropout` draws whatever its probability is. The dropouts that
    /// PyTorch makes of other operators draw nothing where all or nothing is dropped (`_dropout_impl` in
    /// `aten/src/ATen/native/Dropout.cpp`).
    pub fn draws(&self, graph: &Graph, node: NodeId) -> bool {
        let Some(info) = self.call(graph, node) else { return false };
        let bound = || info.schema.as_ref().and_then(|schema| Bound::new(graph, node, schema).ok());
        let is_made_of_others = info.schema.as_ref().is_some_and(|schema| {
            let name = schema.name.trim_end_matches('_');
            ["dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"].contains(&name)
        });
        let may_draw = |bound: Option<Bound>| {
            bound.is_none_or(|bound| {
                let drops_all_or_nothing = is_made_of_others && matches!(bound.float("p"), Some(0.0 | 1.0));
                bound.float("dropout_p") != Some(0.0)
                    && bound.trains() != Some(false)
                    && !drops_all_or_nothing
            })
        };
        info.is_random() && may_draw(bound())
    }

    /// What `node` calls, if it is a call.
    pub fn call(&self, graph: &Graph, node: NodeId) -> Option<&OpInfo> {
        (graph.node(node).op == Op::Call).then(|| self.get(graph, node))
    }
}
