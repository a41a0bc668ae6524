"""Passes of PyTorch as functions to fuzz: `graph-oracle fuzz rewrite --python graph_oracle.pytorch.peers:NAME`.

`PEERS` names each pass, as PyTorch does, and says how Inductor calls it; `a+b` is the pass `a` and then `b`. A call
gives the pass what Inductor gives it: a functional graph, the settings under which the pass runs, and after it what
Inductor does before anyone reads the result (a sort, metadata brought up to date). Settings are put back afterwards.

Not here are passes on scheduler nodes (passes/memory.py, passes/schedule.py), partitioners (passes/partition.py), and
passes on what these graphs cannot hold: modules and methods (pre-grad), weights as constants (freezing).
docs/findings/passes.md lists them all, with what was found.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from . import ordering, streams
from .errors import Refused
from .passes.bucketing import estimate
from .worker import demand_functional

_FX = "torch._inductor.fx_passes"
_COMMUNICATION = "aten_distributed_optimizations"


@dataclass(frozen=True)
class Peer:
    """A pass: where it is in torch, how Inductor calls it, and with which settings."""

    path: str
    call: Callable[[Any, fx.GraphModule], Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    # Run with the fallbacks of PyTorch's own tests: here no memory is shared between devices.
    symmetric_memory: bool = False
    # What Inductor's passes never meet (docs/protocol.md): calls that order streams stand in bodies of control_deps.
    without: tuple[str, ...] = ("streams", "ordering-edges-in-flight")

    def __call__(self, gm: fx.GraphModule) -> Any:
        # What Inductor's passes get has been functionalized.
        demand: Any = demand_functional
        for module in (one for one in gm.modules() if isinstance(one, fx.GraphModule)):
            demand(module.graph)
            if "streams" in self.without:
                _refuse_streams(module.graph)
            as_traced(module.graph)
        function = found(self.path)
        with ExitStack() as stack:
            if self.symmetric_memory:
                stack.enter_context(found("torch.distributed._symmetric_memory._test_mode")())
            stack.enter_context(found("torch._inductor.config").patch(dict(self.settings)))
            result = self.call(function, gm)
        for node in gm.graph.nodes:
            if isinstance(node.target, functools.partial):
                raise Refused(f"{node.name} is {node.target.func.__name__}, a lowering of Inductor and no operator")
        return result


def found(path: str) -> Any:
    """What a dotted path names; numbers and keys reach into lists and tables. Refused where this torch has it not."""
    parts = path.split(".")
    value: Any = torch
    for index, part in enumerate(parts[1:], start=2):
        if isinstance(value, (list, tuple)) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            if not hasattr(value, part):
                try:
                    importlib.import_module(".".join(parts[:index]))
                except ImportError:
                    raise Refused(f"this torch has no {path}") from None
            value = getattr(value, part)
    return value


def as_traced(graph: fx.Graph) -> None:
    """Tracing records metadata twice: some passes read the older form."""
    extract = found("torch.fx.passes.shape_prop._extract_tensor_metadata")
    for node in graph.nodes:
        if isinstance(node.meta.get("val"), torch.Tensor):
            node.meta["tensor_meta"] = extract(node.meta["val"])


# ---------------------------------------------------------------------------------------------------------------
# How Inductor calls them


def on_graph(function: Any, gm: fx.GraphModule) -> Any:
    return function(gm.graph)


def on_module(function: Any, gm: fx.GraphModule) -> Any:
    return function(gm)


def into_module(function: Any, gm: fx.GraphModule) -> fx.GraphModule:
    """A pass that makes a new graph, which its caller puts into the module."""
    gm.graph = function(gm.graph)
    return gm


def sorted_after(function: Any, gm: fx.GraphModule) -> None:
    """A pass that may leave readers before what they read; a sort follows."""
    function(gm)
    found("torch._inductor.pattern_matcher.stable_topological_sort")(gm.graph)


def on_collectives(function: Any, gm: fx.GraphModule) -> None:
    """A pass on communication: no collective has two waits by then, and buckets are put in order afterwards."""
    _refuse_edges_in_flight(gm.graph)
    found(f"{_FX}.bucketing.deduplicate_wait_tensors")(gm.graph)
    sorted_after(function, gm)


def _refuse_streams(graph: fx.Graph) -> None:
    """AOTAutograd has wrapped what orders streams (wrap_all_sync_nodes_with_control_deps) before anybody sees it."""
    for node in graph.nodes:
        if streams.orders_streams(node):
            raise Refused(f"{node.name} orders streams outside of a body of control_deps")


def _refuse_edges_in_flight(graph: fx.Graph) -> None:
    """Inductor makes ordering edges from a launch, or to a wait, after these passes only."""
    for node in graph.nodes:
        edges = ordering.carried(node)
        if edges is not None and any(map(_is_launch, edges.before)):
            raise Refused(f"{node.name} has an ordering edge from a launch")
        if edges is not None and "wait_tensor" in str(edges.target):
            raise Refused(f"{node.name} is a wait with an ordering edge")


def _is_launch(node: fx.Node) -> bool:
    target = str(getattr((ordering.carried(node) or node), "target", ""))
    return target.startswith("_c10d_functional.") and "wait_tensor" not in target


def on_collectives_of_graph(function: Any, gm: fx.GraphModule) -> None:
    on_collectives(lambda module: function(module.graph), gm)


def of_post_grad(function: Any, gm: fx.GraphModule) -> None:
    """A pass in the first half of `post_grad_passes`, which then sorts and brings metadata up to date."""
    updater = found("torch._inductor.fx_utils.FakeTensorUpdater")(gm)
    function(gm.graph)
    found("torch._inductor.pattern_matcher.stable_topological_sort")(gm.graph)
    updater.incremental_update()


def patterns_of_joint_graph(matcher: Any, gm: fx.GraphModule) -> None:
    found(f"{_FX}.joint_graph.lazy_init")()
    sorted_after(lambda module: matcher.apply(module.graph), gm)


def patterns_of_post_grad(matcher: Any, gm: fx.GraphModule) -> None:
    found(f"{_FX}.post_grad.lazy_init")()
    of_post_grad(matcher.apply, gm)


def fused_by_group(function: Any, gm: fx.GraphModule) -> None:
    of_post_grad(lambda graph: function(graph, pre_grad=False), gm)


def with_updater(function: Any, gm: fx.GraphModule) -> None:
    function(found("torch._inductor.fx_utils.FakeTensorUpdater")(gm), gm.graph)


def fused_for_ddp(function: Any, gm: fx.GraphModule) -> None:
    config = found("torch._inductor.config")
    passes, size = config._fuse_ddp_communication_passes, config._fuse_ddp_bucket_size
    of_post_grad(lambda graph: function(graph, passes, size), gm)


def in_bodies(function: Any, gm: fx.GraphModule) -> Any:
    """As `_recursive_joint_graph_passes` and `_recursive_post_grad_passes`: bodies first."""
    for name in list(found("torch._inductor.compile_fx._get_subgraph_names")(gm)):
        changed = in_bodies(function, getattr(gm, name))
        if changed is not None:
            setattr(gm, name, changed)
    return function(gm)


def in_training(function: Any, gm: fx.GraphModule) -> None:
    _after_views(gm)
    in_bodies(functools.partial(function, is_inference=False), gm)


def in_inference(function: Any, gm: fx.GraphModule) -> None:
    _after_views(gm)
    in_bodies(functools.partial(function, is_inference=True), gm)


def _after_views(gm: fx.GraphModule) -> None:
    """Inductor turns views to reshapes before its post-grad passes."""
    found(f"{_FX}.post_grad.view_to_reshape")(gm)


def where_possible(function: Any, gm: fx.GraphModule) -> Any:
    """The chunker says by an exception that it did nothing, and Inductor goes on with the graph."""
    try:
        return function(gm)
    except found(f"{_FX}.auto_chunker.CantChunk"):
        return None


def by_module(function: Any, gm: fx.GraphModule) -> None:
    """A plan of one bucket for each module that is in no other one's."""
    stacks = [node.meta.get("nn_module_stack") or {} for node in gm.graph.nodes]
    paths = list(dict.fromkeys(path for stack in stacks for path, _ in list(stack.values())[-1:]))
    plan = [path for path in paths if not any(other.startswith(f"{path}.") for other in paths)]
    if not plan:
        raise Refused("no node is from a module, so there is nothing to plan by")
    on_collectives(lambda module: function(module, plan, insert_overlap_deps=False), gm)


# ---------------------------------------------------------------------------------------------------------------
# The passes


def _rows(module: str, call: Callable[[Any, fx.GraphModule], Any], names: str, **settings: Any) -> dict[str, Peer]:
    return {name.strip("_"): Peer(f"{module}.{name}", call, settings) for name in names.split()}


def _overlap(**settings: Any) -> Peer:
    stated = {
        "enable_overlap_scheduling": True,
        "insert_overlap_deps": True,
        "custom_runtime_estimation": estimate,
        "compute_estimator": "analytical",
        **settings,
    }
    path = f"{_FX}.overlap_scheduling.schedule_overlap_bucketing_from_inductor_configs"
    return Peer(path, on_collectives, {f"{_COMMUNICATION}.{key}": value for key, value in stated.items()})


_GROUPS = ["add", "sub", "mul", "div", "tanh", "sigmoid", "relu"]
# Which of these passes run, and with what.
_PATTERNS = {
    "normalization_aten_pass": {},
    "decompose_mm_pass": {},
    "unbind_stack_aten_pass": {},
    "shape_padding_multiplier": {"k_multiple": 4},
    "pad_aten_mm_pass": {"k_threshold_to_pad": 1},
    "split_cat_aten_pass": {"threshold_to_cat": 2},
    "select_cat_aten_pass": {},
    "move_view_after_cat_aten_pass": {},
}
_FUSIONS = {
    **{f"batch_aten_{name}": {"min_fuse_set_size": 2} for name in _GROUPS},
    "batch_linear_post_grad": {"min_fuse_set_size": 2},
}
_BUCKETED = {f"bucket_{kind}_fx": "all" for kind in ("all_gathers", "reduce_scatters", "all_reduces")}
# As in PyTorch's own tests of the chunker, so that small graphs are large enough.
_CHUNKER = {
    "auto_chunker.enable": True,
    "auto_chunker.output_size_threshold": 4,
    "auto_chunker.amplify_ratio_threshold": 1,
    "auto_chunker.num_chunk": 2,
}

PEERS: dict[str, Peer] = {
    # Communication.
    "schedule_overlap_bucketing": _overlap(collective_bucketing=False, pre_bucketing_fsdp_collectives=False),
    "overlap_preserving_bucketer": _overlap(collective_bucketing=True, pre_bucketing_fsdp_collectives=False),
    "overlap_with_all": _overlap(collective_bucketing=True),
    **_rows(f"{_FX}.overlap_manual_scheduling", by_module, "manual_overlap_bucketing"),
    **_rows(f"{_FX}.overlap_scheduling", on_module, "make_all_device_put_sync"),
    **_rows(f"{_FX}.bucketing", on_collectives, "bucket_all_gather bucket_reduce_scatter bucket_all_reduce"),
    **_rows(f"{_FX}.bucketing", on_graph, "deduplicate_wait_tensors"),
    **_rows(
        f"{_FX}.fsdp",
        on_collectives,
        "bucket_fsdp_all_gather bucket_fsdp_reduce_scatter bucket_fsdp_all_reduce pre_bucket_fsdp_collectives",
    ),
    **_rows(f"{_FX}.fsdp", on_collectives, "dedup_fsdp_reduce_scatter"),
    **_rows(f"{_FX}.ddp_fusion", fused_for_ddp, "fuse_ddp_communication"),
    "fuse_ddp_with_coalesced_op": Peer(
        f"{_FX}.ddp_fusion.fuse_ddp_communication",
        fused_for_ddp,
        {"_fuse_ddp_communication_passes": ["fuse_ddp_with_coalesced_op", "schedule_comm_wait"]},
    ),
    "micro_pipeline_tp_pass": Peer(
        f"{_FX}.micro_pipeline_tp.micro_pipeline_tp_pass", of_post_grad, {"_micro_pipeline_tp": True}, True
    ),
    "replace_collectives_with_low_contention": Peer(
        f"{_FX}.low_contention_collectives.replace_collectives_with_low_contention",
        on_collectives_of_graph,
        {
            f"{_COMMUNICATION}.low_contention_skip_overlap_check": True,
            f"{_COMMUNICATION}.low_contention_min_bytes_per_rank": 0,
        },
        True,
    ),
    **_rows(f"{_FX}.decomp_comms", on_collectives, "decomp_comms"),
    # control_dependencies.preserve_node_ordering, as Inductor calls it for random numbers.
    **_rows(f"{_FX}.post_grad", of_post_grad, "_chain_random_ops_for_ordering", fallback_random=True),
    # All of a graph.
    **_rows(f"{_FX}.joint_graph", in_bodies, "joint_graph_passes"),
    **_rows(f"{_FX}.post_grad", in_training, "post_grad_passes"),
    "post_grad_passes_in_inference": Peer(f"{_FX}.post_grad.post_grad_passes", in_inference),
    "post_grad_passes_with_buckets": Peer(f"{_FX}.post_grad.post_grad_passes", in_training, _BUCKETED),
    # Of AOTAutograd, before the partitioner.
    **{
        name: Peer(f"{streams.MODULE}.{name}", call, without=("ordering-edges-in-flight",))
        for name, call in (
            ("wrap_all_sync_nodes_with_control_deps", streams.ordered_by_edges),
            ("insert_backward_syncs", streams.in_backward),
            ("sync_deallocations", streams.joined),
        )
    },
    # Of the joint graph.
    **_rows(f"{_FX}.joint_graph", patterns_of_joint_graph, "early_patterns"),
    "joint_graph_pass_pattern_0": Peer(f"{_FX}.joint_graph.pass_patterns.0", patterns_of_joint_graph),
    "joint_graph_pass_pattern_1": Peer(f"{_FX}.joint_graph.pass_patterns.1", patterns_of_joint_graph),
    **_rows(
        f"{_FX}.joint_graph",
        on_module,
        "canonicalize_aten_ir_passes constant_fold_uniform_value remove_redundant_views",
    ),
    **_rows(f"{_FX}.replace_random", sorted_after, "replace_random_passes"),
    "auto_chunker": Peer(f"{_FX}.auto_chunker.chunk", where_possible, _CHUNKER),
    # After the partitioner.
    **_rows(f"{_FX}.post_grad", on_module, "view_to_reshape"),
    **_rows(
        f"{_FX}.post_grad",
        of_post_grad,
        "reorder_for_locality _remove_profiler_ops respecialize_current_device_nodes remove_noop_ops remove_assert_ops "
        "move_constructors_to_gpu",
    ),
    **{
        f"post_grad_pass_pattern_{number}": Peer(f"{_FX}.post_grad.pass_patterns.{number}", patterns_of_post_grad)
        for number in range(3)
    },
    **_rows(
        f"{_FX}.split_cat.POST_GRAD_PATTERNS",
        patterns_of_post_grad,
        " ".join(_PATTERNS),
        post_grad_fusion_options=_PATTERNS,
    ),
    "group_batch_fusion_passes": Peer(
        f"{_FX}.group_batch_fusion.group_batch_fusion_passes", fused_by_group, {"post_grad_fusion_options": _FUSIONS}
    ),
    "b2b_gemm": Peer(f"{_FX}.b2b_gemm.B2B_GEMM_PASS", patterns_of_post_grad, {"b2b_gemm_pass": True}),
    **_rows(
        f"{_FX}.reduced_atomic_contention",
        of_post_grad,
        "partitioned_scatter_optimization_pass",
        partitioned_scatter_enabled=True,
    ),
    **_rows(f"{_FX}.slice_scatter_chunking", on_graph, "slice_scatter_chunking_pass"),
    **_rows(f"{_FX}.reinplace", with_updater, "reinplace_inplaceable_ops"),
    **_rows(
        f"{_FX}.post_grad",
        on_graph,
        "fix_auto_functionalized_dtype_views decompose_triton_kernel_wrapper_functional decompose_auto_functionalized",
    ),
    **_rows(f"{_FX}.post_grad", on_module, "decompose_scan_to_while_loop decompose_map_to_while_loop"),
    **_rows(f"{_FX}.dedupe_symint_uses", on_graph, "dedupe_symints"),
    # Of no one stage.
    **_rows("torch._functorch.compile_utils", into_module, "fx_graph_cse"),
    **_rows("torch.fx.Graph", on_graph, "eliminate_dead_code"),
    **_rows("torch._inductor.pattern_matcher", on_graph, "stable_topological_sort"),
}


@dataclass(frozen=True)
class InTurn:
    """Several passes, each on what the one before it leaves."""

    peers: tuple[Peer, ...]
    without: tuple[str, ...] = Peer.without

    def __call__(self, gm: fx.GraphModule) -> fx.GraphModule:
        for peer in self.peers:
            result = peer(gm)
            gm = result if isinstance(result, fx.GraphModule) else gm
        return gm


def __getattr__(name: str) -> Peer | InTurn:
    if name in PEERS:
        return PEERS[name]
    names = name.split("+")
    if all(one in PEERS for one in names):
        return InTurn(tuple(PEERS[one] for one in names))
    raise AttributeError(f"there is no pass {name}; there are {', '.join(PEERS)}")
