"""Which versions of torch this package works with, and what it leans on that torch does not promise.

    if versions.have("torch._inductor.comms.simple_overlap"): ...
    function = versions.get("torch._inductor.comms.simple_overlap")      # None where this torch has none

`ROWS` lists each private or unstable part of torch that the package uses, with the first and the last version that has
it. Other modules ask `have` and `get`, and import without a guard only what all versions have. The table is checked
twice: against the sources of all versions (benches/torch_versions.py), and against the torch that is installed
(python/tests/test_versions.py).

`have` looks at the torch that is there and not at its number, so that a nightly build is taken for what it is.
Importing this module does not import torch.
"""

from __future__ import annotations

import importlib
import inspect
import os
from dataclasses import dataclass
from functools import cache
from typing import Any

# Versions whose own tests and passes ran under this package's tests; the others are known by their sources alone.
TESTED = ("2.8.0", "2.9.1", "2.11.0", "2.15.0")
FIRST, LAST = (2, 8), (2, 15)
Version = tuple[int, int]


@dataclass(frozen=True)
class Row:
    """A part of torch: its dotted path, what uses it, the versions that have it (both ends included).

    `takes`: parameters that it must have; without them it is not what is meant, and counts as absent. `compiled`: it
    is compiled, or made when torch is imported, so the sources do not show it. `of_instance`: objects of the class
    have it, not the class.
    """

    path: str
    used_by: str
    first: Version = FIRST
    last: Version = LAST
    takes: tuple[str, ...] = ()
    compiled: bool = False
    of_instance: bool = False


def _all(module: str, names: str, used_by: str, first: Version = FIRST, last: Version = LAST) -> list[Row]:
    return [Row(f"{module}.{name}", used_by, first, last) for name in names.split()]


_PASSES = "torch._inductor.fx_passes"
_COMMS = "torch._inductor.comms"
_C10D = "torch.distributed.distributed_c10d"
_SHAPES = "torch.fx.experimental.symbolic_shapes"
_FUNCTORCH = "torch._functorch.config"

ROWS: list[Row] = [
    # Passes as objects.
    Row("torch._inductor.custom_graph_pass.CustomGraphPass", "hooks, stacks"),
    Row("torch._inductor.custom_graph_pass.CustomPartitionerFn", "hooks, watch", (2, 9)),
    # Bucketing.
    *_all(f"{_PASSES}.bucketing", "bucket_all_gather bucket_reduce_scatter", "bucketing, watch", (2, 9)),
    Row(f"{_PASSES}.bucketing.bucket_all_reduce", "bucketing, watch", (2, 10)),
    Row(f"{_PASSES}.bucketing.reduce_scatter_merge_fn_coalesced", "bucketing: mode=coalesced", (2, 12)),
    Row(f"{_PASSES}.bucketing._ALL_DTYPES", "bucketing: modes custom_ops, whose operators take dtypes since", (2, 10)),
    Row(f"{_PASSES}.bucketing.deduplicate_wait_tensors", "bucketing: waits that post_grad_passes merges", (2, 15)),
    *_all(f"{_PASSES}.fsdp", "bucket_fsdp_all_gather bucket_fsdp_reduce_scatter", "bucketing: filter=fsdp", (2, 9)),
    *_all(f"{_PASSES}.fsdp", "bucket_fsdp_all_reduce pre_bucket_fsdp_collectives", "bucketing: filter=fsdp", (2, 13)),
    Row(
        f"{_PASSES}.overlap_scheduling.schedule_overlap_bucketing",
        "bucketing: selection=overlap",
        (2, 13),
        takes=(
            "collective_bucketing",
            "insert_overlap_deps",
            "custom_runtime_estimation",
            "collective_estimator",
            "compute_estimator",
            "bucket_mode",
            "pre_bucketing_fsdp_collectives",
        ),
    ),
    Row(
        f"{_PASSES}.overlap_manual_scheduling.manual_overlap_bucketing",
        "bucketing: selection=manual",
        (2, 12),
        takes=("bucket_mode",),
    ),
    Row("torch._inductor.pattern_matcher.stable_topological_sort", "bucketing, repair, watch"),
    # Ordering edges.
    *_all(f"{_PASSES}.control_dependencies", "control_deps preserve_node_ordering", "ordering edges", (2, 10)),
    # Partitions.
    *_all(
        "torch._functorch.partitioners",
        "default_partition min_cut_rematerialization_partition _is_primal",
        "partition, watch",
    ),
    *_all(
        _FUNCTORCH,
        "ban_recompute_used_far_apart ban_recompute_long_fusible_chains ban_recompute_reductions "
        "ban_recompute_materialized_backward ban_recompute_not_in_allowlist cse aggressive_recomputation "
        "treat_parameters_as_free_to_save recompute_views max_dist_from_bw activation_memory_budget "
        "activation_memory_budget_solver activation_memory_budget_runtime_estimator",
        "partition",
    ),
    *_all(_FUNCTORCH, "unsafe_allow_optimization_of_collectives graphsafe_rng_functionalization", "partition: options"),
    Row(f"{_FUNCTORCH}.activation_memory_budget_require_full_coverage", "partition: options", (2, 15)),
    Row("torch.fx.passes.shape_prop._extract_tensor_metadata", "partition"),
    *_all("torch._guards", "tracing TracingContext", "partition"),
    # Scheduling and memory.
    *_all(
        _COMMS,
        "sink_waits raise_comms reorder_compute_for_overlap decide_global_ordering_of_comms "
        "reorder_communication_preserving_peak_memory",
        "schedule",
    ),
    Row(f"{_COMMS}.sink_waits_iterative", "schedule", (2, 9)),
    Row(f"{_COMMS}.simple_overlap", "schedule", (2, 14)),
    *_all(
        _COMMS,
        "_calculate_potential_peak_memory_reorder _calculate_potential_peak_memory_sink_waits "
        "_perform_double_linked_list_swap _perform_double_linked_list_swap_sink_waits "
        "_update_memory_tracking_after_swap_reorder _update_memory_tracking_after_swap_sink_waits",
        "memory: the accounts of the iterative passes",
        (2, 10),
    ),
    Row("torch._inductor.config_comms.patch", "schedule: settings", (2, 9), compiled=True),
    *_all(
        "torch._inductor.config_comms",
        "reorder_iterative_peak_memory_budget sink_iterative_peak_memory_budget "
        "reorder_iterative_use_runtime_estimations sink_iterative_use_runtime_estimations "
        "reorder_iterative_unsafe_collectives_reorder sink_waits_iterative_unsafe_collectives_reorder",
        "schedule: settings",
        (2, 10),
    ),
    *_all(
        "torch._inductor.memory",
        "reorder_for_peak_memory estimate_peak_memory topological_sort_lpmf "
        "topological_sort_bfs topological_sort_dfs prepare_planning_info",
        "memory",
    ),
    *_all("torch._inductor.memory", "estimate_peak_memory_allocfree", "memory: method=estimate", (2, 9)),
    *_all("torch._inductor.memory", "estimate_region_peak_memory", "memory: method=estimate", (2, 13)),
    *_all(f"{_PASSES}.memory_estimator", "build_memory_profile MemoryTracker", "memory: method=profile", (2, 10)),
    *_all(
        "torch._inductor.ir",
        "MultiOutput MultiOutputLayout FixedLayout NoneLayout _CollectiveKernel _WaitKernel",
        "mock scheduler nodes",
    ),
    *_all("torch._inductor.dependencies", "StarDep WeakDep", "mock scheduler nodes"),
    Row("torch._inductor.dependencies.WeakDep.is_fake", "mock scheduler nodes: ordering-only dependencies", (2, 9)),
    Row("torch._inductor.scheduler.GroupedSchedulerNode", "mock scheduler nodes"),
    Row("torch._inductor.virtualized.V", "mock scheduler nodes, capture"),
    Row("torch.utils._ordered_set.OrderedSet", "ordering edges, mock scheduler nodes"),
    Row("torch._inductor.scheduler.Scheduler.codegen", "schedules: stops the compilation"),
    Row("torch._inductor.utils.contains_collective", "schedules"),
    # Compilation.
    *_all(
        "torch._inductor.compile_fx",
        "compile_fx min_cut_rematerialization_partition view_to_reshape fake_tensor_prop _recursive_post_grad_passes",
        "capture",
    ),
    *_all(f"{_PASSES}.post_grad", "post_grad_passes", "watch"),
    Row(f"{_FUNCTORCH}.force_non_lazy_backward_lowering", "capture: backward graphs that are not called", (2, 10)),
    Row(f"{_FUNCTORCH}.enable_autograd_cache", "capture"),
    Row("torch._inductor.config.force_disable_caches", "schedules"),
    Row("torch._dynamo.config.suppress_errors", "schedules"),
    Row("torch._dynamo.reset", "capture, schedules"),
    Row("torch._dynamo.exc.TorchDynamoException", "capture: what Dynamo refuses"),
    Row("torch.utils._python_dispatch._disable_current_modes", "capture, document, watch: real tensors are read"),
    # Rebuilding graphs.
    *_all(
        "torch._subclasses.fake_tensor",
        "FakeTensorMode FakeTensor in_kernel_invocation_manager FakeTensorMode.cache FakeTensorMode.cache_clear",
        "rebuild, caches",
    ),
    *_all("torch.fx._lazy_graph_module", "_make_graph_module _use_lazy_graph_module", "rebuild"),
    Row("torch.fx.graph_module._loader", "caches"),
    *_all(_SHAPES, "ShapeEnv DimDynamic ShapeEnv.create_symbol ShapeEnv.create_symintnode", "rebuild"),
    Row(f"{_SHAPES}.ShapeEnv.var_to_range", "document: ranges of symbols", of_instance=True),
    Row(f"{_SHAPES}.ShapeEnv.backed_var_to_val", "document: hints of symbols", (2, 11), of_instance=True),
    Row(f"{_SHAPES}.ShapeEnv.var_to_val", "document: hints of symbols, under an older name", of_instance=True),
    Row("torch._dynamo.source.ConstantSource", "rebuild"),
    Row("torch._library.fake_class_registry.FakeScriptObject", "rebuild: opaque inputs"),
    *_all("torch._ops", "OpOverload HigherOrderOperator", "targets"),
    *_all("torch", "sym_sum sym_max sym_min sym_not sym_int sym_float sym_ite sym_sqrt", "targets"),
    Row("torch._C._AutoDispatchBelowAutograd", "rebuild", compiled=True),
    # Modules that register operators.
    Row("torch.distributed.fsdp._fully_shard._fsdp_collectives", "targets: operators fsdp"),
    Row("torch.distributed._functional_collectives", "targets: operators _c10d_functional"),
    Row("torch._prims.rng_prims", "targets: operators rngprims"),
    # How a graph is called.
    Row("torch.fx.graph._PyTreeCodeGen", "signature"),
    Row("torch.fx.graph.Graph._codegen", "signature", of_instance=True),
    # Process groups.
    *_all(
        _C10D,
        "_get_default_group _world _unregister_process_group _register_process_group _resolve_process_group "
        "_new_process_group_helper",
        "groups, document, gloo",
    ),
    Row("torch.testing._internal.distributed.fake_pg.FakeStore", "fake worlds"),
    # Values.
    *_all("torch.utils._pytree", "tree_leaves tree_map", "smoke"),
]
_KNOWN = {row.path: row for row in ROWS}


def have(path: str) -> bool:
    """Whether this torch has a part of torch, by its path in the table."""
    return _found(path) is not None


def get(path: str) -> Any:
    """The part of torch itself, or None where this torch has none."""
    found = _found(path)
    return None if found is None else found[0]


def only_known(settings: dict[str, Any], config: str) -> dict[str, Any]:
    """Those settings that this torch's configuration module has."""
    return {name: value for name, value in settings.items() if have(f"{config}.{name}")}


@cache
def _found(path: str) -> tuple[Any] | None:
    """The part in a tuple, since it may itself be None."""
    row = _KNOWN.get(path)
    if row is None:
        raise KeyError(f"{path} is not in the table of graph_oracle.pytorch.versions")
    if row.of_instance:
        # Nothing shows it but an object; the tests make one.
        return (path,) if row.first <= (version() or LAST) <= row.last else None
    found = _looked_up(path)
    return found if found is not None and takes(found[0], row.takes) else None


def _looked_up(path: str) -> tuple[Any] | None:
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            found = _MISSING if found is _MISSING else _attribute(found, part)
        return None if found is _MISSING else (found,)
    return None


_MISSING: Any = object()


def _attribute(owner: Any, name: str) -> Any:
    # Fields of data classes without a default are no attributes of the class.
    fields = getattr(owner, "__dataclass_fields__", {}) if isinstance(owner, type) else {}
    return getattr(owner, name, fields.get(name, _MISSING))


def takes(function: Any, parameters: tuple[str, ...]) -> bool:
    """Whether it can be called with all of these keywords."""
    if not parameters:
        return True
    known = inspect.signature(function).parameters
    return all(name in known for name in parameters)


def version() -> Version | None:
    """The first two numbers of the installed torch; None where they cannot be read."""
    import torch

    return parsed(torch.__version__)


def parsed(text: str) -> Version | None:
    """`2.15.0+cpu` -> (2, 15)."""
    try:
        major, minor = text.split("+")[0].split(".")[:2]
        return int(major), int(minor)
    except ValueError:
        return None


def missing() -> str | None:
    """One line that says what to do where torch cannot be used, else None. Nothing is imported but torch."""
    try:
        import torch
    except ImportError as error:
        if getattr(error, "name", None) == "torch":
            return (
                "graph-oracle: there is no torch in this Python; install one (pip install torch) or use the Python "
                "that has it"
            )
        return f"graph-oracle: torch cannot be imported: {str(error).splitlines()[0]}"
    found = version()
    if found is not None and FIRST <= found <= LAST:
        return None
    if os.environ.get("GRAPH_ORACLE_ANY_TORCH") == "1":
        return None
    return (
        f"graph-oracle: torch {torch.__version__} is outside {'.'.join(map(str, FIRST))} to "
        f"{'.'.join(map(str, LAST))} (tested: {', '.join(TESTED)}); install one of these, or set "
        "GRAPH_ORACLE_ANY_TORCH=1 to try"
    )
