//! What the partitioners know about each target of a graph, looked up once.

use super::operators::Membership;
use crate::graph::{Graph, NodeId, Op};
use crate::ops::{Kind, OpInfo, Ops};

/// Functions that act although their schema says nothing of it. Sources: `torch.fx.node._side_effectful_functions`
/// with what `torch.distributed._functional_collectives` adds to it.
const SIDE_EFFECTS: &[&str] = &[
    "torch._assert",
    "torch._assert_async",
    "aten._assert_async.msg",
    "aten._assert_scalar.default",
    "aten._assert_tensor_metadata.default",
    "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
    "inductor.accumulate_grad_.default",
    "inductor.resize_storage_bytes_.default",
    "operator.setitem",
    "_operator.setitem",
    "_c10d_functional.wait_tensor.default",
    "_c10d_functional.wait_tensors.default",
    "_c10d_functional.isend.default",
    "_c10d_functional.irecv.default",
    "_c10d_functional.batch_p2p_ops.default",
];

const RECORD_FUNCTIONS: &str = "profiler._record_function_";

/// Facts about one target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Target {
    /// The operator sets that it is in.
    pub sets: Membership,
    /// An operator with a schema, as opposed to a Python function or a higher-order operator.
    pub operator: bool,
    /// The schema says that it writes an argument.
    pub mutable: bool,
    /// It acts beyond its results and what its schema says it writes: by the registry of side effects, by the
    /// table of operators, or because nothing is known of it. Waits included.
    pub side_effect: bool,
    /// Its draws are seeded: it has the tag `nondeterministic_seeded`.
    pub seeded: bool,
    /// It returns nothing.
    pub returns_nothing: bool,
    /// `wait_tensor` or `wait_tensors`.
    pub wait: bool,
    /// `wait_tensor`: what AutoParallel takes the side effect from while it replays.
    pub wait_tensor: bool,
    /// In the namespace `_c10d_functional`.
    pub collective: bool,
    /// `operator.getitem`.
    pub getitem: bool,
    /// `_assert_scalar`.
    pub assert_scalar: bool,
    /// An assertion or a span of the profiler: nothing that anybody saves.
    pub annotation: bool,
    /// `copy_`.
    pub copy: bool,
    /// A write that a graph may hold and still count as functional.
    pub functional_write: bool,
    /// `cat`.
    pub cat: bool,
    /// `lift_fresh`, `lift_fresh_copy`.
    pub lift_fresh: bool,
    /// `with_effects`.
    pub with_effects: bool,
    /// It acts on something outside the graph, such as a log, and is known to.
    pub acts_outside: bool,
    /// A higher-order operator that functionalizes a kernel which writes to some of its arguments.
    pub wrapper: Option<Wrapper>,
    /// `all_gather_into_tensor`.
    pub all_gather: bool,
    /// `convert_element_type`.
    pub convert: bool,
    /// A view by its schema.
    pub schema_view: bool,
}

/// Functional wrappers of kernels that write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrapper {
    /// `auto_functionalized`.
    First,
    /// `auto_functionalized_v2`.
    Second,
    /// `triton_kernel_wrapper_functional`.
    Triton,
}

/// Whether the registry of side effects has `name`.
pub(super) fn acts(name: &str) -> bool {
    SIDE_EFFECTS.contains(&name) || name.starts_with(RECORD_FUNCTIONS)
}

impl Target {
    fn of(name: &str, info: Option<&OpInfo>) -> Target {
        let python = ["operator.", "_operator.", "torch.", "math.", "builtins.", "higher_order."];
        let operator = info.is_some_and(|info| info.schema.is_some())
            || (name.matches('.').count() >= 2 && !python.iter().any(|prefix| name.starts_with(prefix)));
        let packet = match name.rsplit_once('.') {
            Some((packet, _)) if operator => packet,
            _ => name,
        };
        let record = name.starts_with(RECORD_FUNCTIONS);
        // An operator of which nothing is known may act.
        let effect = info.is_some_and(|info| info.effect);
        let with_effects = name == "higher_order.with_effects";
        let wait_tensor = packet == "_c10d_functional.wait_tensor";
        let mutable = info.is_some_and(|info| info.writes());
        let schema = info.and_then(|info| info.schema.as_ref());
        Target {
            sets: Membership::of(packet),
            operator,
            mutable,
            side_effect: acts(name) || effect || with_effects,
            seeded: info.is_some_and(|info| info.is_random() && info.schema.is_some()),
            returns_nothing: schema.is_some_and(|schema| schema.returns.is_empty()),
            wait: wait_tensor || packet == "_c10d_functional.wait_tensors",
            wait_tensor,
            collective: operator && name.starts_with("_c10d_functional."),
            getitem: matches!(name, "operator.getitem" | "_operator.getitem"),
            assert_scalar: name == "aten._assert_scalar.default",
            annotation: record || packet == "aten._assert_scalar" || packet == "aten._assert_async",
            copy: name == "aten.copy_.default",
            functional_write: matches!(
                packet,
                "aten.copy_" | "aten.set_" | "aten.shallow_copy_data_" | "fsdp.copy_"
            ),
            cat: packet == "aten.cat",
            lift_fresh: matches!(name, "aten.lift_fresh.default" | "aten.lift_fresh_copy.default"),
            with_effects,
            acts_outside: with_effects || info.is_some_and(|info| info.effect && info.kind == Kind::Opaque),
            wrapper: match name {
                "higher_order.auto_functionalized" => Some(Wrapper::First),
                "higher_order.auto_functionalized_v2" => Some(Wrapper::Second),
                "higher_order.triton_kernel_wrapper_functional" => Some(Wrapper::Triton),
                _ => None,
            },
            all_gather: name == "_c10d_functional.all_gather_into_tensor.default",
            convert: name == "prims.convert_element_type.default",
            schema_view: info.is_some_and(OpInfo::is_view),
        }
    }
}

/// The targets of one graph, by id.
#[derive(Clone, Debug)]
pub struct Targets(Vec<Target>);

impl Targets {
    /// Looks up every target of `graph`.
    pub fn of(graph: &Graph, ops: &Ops) -> Targets {
        let mut infos: Vec<Option<&OpInfo>> = vec![None; graph.targets().len()];
        for id in graph.ids() {
            if let (Some(info), Some(slot)) =
                (ops.call(graph, id), infos.get_mut(graph.node(id).target.0 as usize))
            {
                *slot = Some(info);
            }
        }
        Targets(graph.targets().zip(infos).map(|(name, info)| Target::of(name, info)).collect())
    }

    /// What `node` calls; nothing in particular for other nodes than calls.
    pub fn call(&self, graph: &Graph, node: NodeId) -> Target {
        match graph.node(node).op {
            Op::Call => self.0[graph.node(node).target.0 as usize],
            _ => Target::default(),
        }
    }
}
