"""Passes of DeepSpeed's DeepCompile (deepspeed/compile).

Their operators (`dc.*`) come from a C++ extension that needs CUDA. Here they are declared as it declares them
(csrc/compile/init.cpp), without kernels, and replaced by what they do (meaning.py) once the pass is done.

A graph's inputs that are contiguous floats, and that no result shares memory with, stand for its parameters; in
backward its first results are their gradients.
"""

from __future__ import annotations

import functools
import types
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast
from unittest import mock

import torch
from torch import fx

from ..errors import Refused
from .called import Call, Cut, of, returned, without_edges
from .meaning import dc

_COMPILE = "deepspeed.compile"
_OPERATORS = (
    "allgather_param(Tensor a, int graph_id, int id, ScalarType? dtype = None) -> Tensor",
    "prefetch_params_fused(int graph_id, Tensor[] params, int[] ids, ScalarType[]? dtypes = None) -> ()",
    "wait_allgather(Tensor(a) a, int graph_id, int id) -> Tensor(a)",
    "release_param(Tensor(a) a, int graph_id, int id, int n_users) -> Tensor(a)",
    "reduce_grad(Tensor a, int graph_id, int id) -> Tensor",
    "free_tensors(Tensor[] a) -> ()",
    "offload_tensor(Tensor a, int graph_id, int id) -> Tensor",
    "reload_tensor(Tensor a, int graph_id, int id) -> Tensor",
    "wait_offload(Tensor a, int graph_id, int id) -> Tensor",
    "wait_reload(Tensor a, int graph_id, int id) -> Tensor",
    "offload_parameter(Tensor a, int graph_id, int id) -> ()",
    "reload_parameter(Tensor a, int graph_id, int id) -> ()",
    "end_backward(Any deps, int graph_id, bool release_reduce_buckets) -> ()",
)
_ID = 0


@functools.lru_cache(maxsize=1)
def declared() -> Any:
    """The operators, in the name of the extension. It is kept: they go when it goes."""
    library: Any = cast(Any, torch.library.Library)("dc", "FRAGMENT")
    for operator in _OPERATORS:
        library.define(operator)
    return library


@contextmanager
def _as_on_a_device() -> Iterator[None]:
    """One process, for which the extension is there."""
    of(f"{_COMPILE}.util", "get_deepcompile_handle")
    declared()
    handle = mock.MagicMock()
    with ExitStack() as stack:
        stack.enter_context(mock.patch(f"{_COMPILE}.util.dc_handle", handle))
        for name in ("is_initialized", "get_rank", "get_world_size", "all_reduce"):
            given: Any = {"is_initialized": False, "get_world_size": 1}.get(name, 0)
            stack.enter_context(mock.patch(f"deepspeed.comm.{name}", mock.Mock(return_value=given)))
        yield


# ---------------------------------------------------------------------------------------------------------------
# What stands for the parameters


def _parameters(graph: fx.Graph) -> list[fx.Node]:
    """Inputs that can be parameters: nobody writes them or communicates them, and no result is a view of one."""
    shared = {_storage(value) for value in returned(graph) if isinstance(value, fx.Node)}
    written: set[Any] = set()
    for node in graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if schema is not None and (schema.is_mutable or "c10d" in schema.name):
            written.update(_storage(read) for read in node.all_input_nodes)
    inputs = graph.find_nodes(op="placeholder")
    found = []
    for node in inputs:
        value = node.meta.get("val")
        is_float = isinstance(value, torch.Tensor) and value.dtype.is_floating_point
        alone = sum(_storage(other) == _storage(node) for other in inputs) == 1
        if is_float and alone and value.is_contiguous() and value.storage_offset() == 0:
            if _storage(node) not in shared | written and "tangents" not in str(node.target):
                found.append(node)
    if any(any(type(size) is not int for size in node.meta["val"].shape) for node in found):
        raise Refused("parameters of a symbolic size")
    return found


def _storage(node: fx.Node) -> Any:
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else node


def _manager(graph: fx.Graph, parameters: list[fx.Node]) -> Any:
    inputs = graph.find_nodes(op="placeholder")
    values = [node.meta.get("val") for node in inputs]
    indices = [(inputs.index(node), number, node.meta["val"].shape) for number, node in enumerate(parameters)]
    return of(f"{_COMPILE}.graph_param", "DSGraphParamManager")(graph, values, indices)


def _gradients(graph: fx.Graph) -> tuple[Any, dict[int, int]]:
    """A forward graph with a parameter for each result that can be a gradient, and where the gradients are."""
    forward = fx.Graph()
    values = returned(graph)
    found: dict[int, int] = {}
    for index, value in enumerate(values):
        node = forward.placeholder(f"primals_{index + 1}")
        given = value.meta.get("val") if isinstance(value, fx.Node) else None
        node.meta["val"] = given
        if isinstance(given, torch.Tensor) and given.dtype.is_floating_point:
            found[len(found)] = index
    if not found:
        raise Refused("no result can be a gradient")
    forward.output(())
    return _manager(forward, [forward.find_nodes(op="placeholder")[i] for i in found.values()]), found


def _profiled(graph: fx.Graph) -> None:
    """What the profiler leaves on nodes, as far as it counts."""
    for node in graph.nodes:
        value = node.meta.get("val")
        node.meta["device_time"] = node.meta["wall_time"] = 1.0
        tensor = value if isinstance(value, torch.Tensor) else None
        sized = tensor is not None and all(type(size) is int for size in tensor.shape)
        node.meta["tensor_size"] = tensor.numel() * tensor.element_size() if tensor is not None and sized else 0


# ---------------------------------------------------------------------------------------------------------------
# The passes


def _gathered(gm: fx.GraphModule) -> Any:
    """zero3_compile, up to its profile."""
    without_edges(gm.graph)
    parameters = _parameters(gm.graph)
    if not parameters:
        raise Refused("no input can be a parameter")
    manager = _manager(gm.graph, parameters)
    gm.graph = of(f"{_COMPILE}.passes.zero3_compile", "add_gather_and_release")(_ID, gm.graph, manager, parameters)
    _profiled(gm.graph)
    return manager


def _scheduled(gm: fx.GraphModule, limited: bool) -> None:
    """Its scheduler, with room for all gathers or for one."""
    schedule = of(f"{_COMPILE}.list_schedule", "fast_free_schedule")
    budget = None
    if limited:
        largest = max((n.meta["tensor_size"] for n in gm.graph.nodes if "allgather_param" in str(n.target)), default=0)
        budget = of(f"{_COMPILE}.list_schedule", "SchedulerMemoryBudget").minimum_gather_residency(largest)
    gm.graph = schedule(gm.graph, 0, 0, debug_log=False, scheduler_budget=budget)


def _zero3(then: str, gm: fx.GraphModule) -> None:
    with _as_on_a_device():
        manager = _gathered(gm)
        if then != "gather":
            _scheduled(gm, limited=then == "limited")
        if then == "prefetch":
            _prefetched(gm, manager)
        if then == "offload":
            offload = of(f"{_COMPILE}.passes.offload_parameters", "offload_parameter_fwd")
            offload(gm, _ID, [(_ID, True)], None, None, 0.0, {_ID: manager}, False)
    dc(gm, {})


def _prefetched(gm: fx.GraphModule, manager: Any) -> None:
    """With a profile in which memory never runs out, and fused gathers cost as little as single ones."""
    _profiled(gm.graph)
    names = [node.name for node in gm.graph.nodes]
    profile = types.SimpleNamespace(
        process_group=None,
        fwd_graph=gm.graph,
        fwd_mem_complete=True,
        fwd_mem=[(name, 0, 0, 0) for name in names],
        fwd_time=[(name, 1.0, 1.0) for name in names],
        fwd_tensor_sizes=[(node.name, node.meta["tensor_size"]) for node in gm.graph.nodes],
    )
    module = f"{_COMPILE}.passes.prefetch"
    of(module, "schedule_prefetch")
    with ExitStack() as stack:
        device = mock.Mock(total_memory=lambda: 2**40, current_device=lambda: "cpu")
        stack.enter_context(mock.patch(f"{module}.get_accelerator", lambda: device))
        stack.enter_context(mock.patch(f"{module}.create_predictor", lambda: lambda size: 1.0 if size else 0.0))
        stack.enter_context(mock.patch(f"{module}.is_profile_incomplete", lambda graph: False))
        stack.enter_context(mock.patch(f"{module}.print_rank_0", lambda message: None))
        of(module, "schedule_prefetch")(gm, _ID, [(_ID, True)], {_ID: profile}, None, 0.0, {_ID: manager}, False)


def _reduced(gm: fx.GraphModule) -> None:
    """Backward of ZeRO-1 and 2: every gradient is handed over where it is made."""
    without_edges(gm.graph)
    manager, gradients = _gradients(gm.graph)
    add = of(f"{_COMPILE}.passes.zero_1_and_2_compile", "add_z1_reduce_bw")
    with _as_on_a_device():
        add(gm, _ID, [(_ID, True)], {_ID: manager})
    dc(gm, gradients)


def _zero3_backward(gm: fx.GraphModule) -> None:
    """Backward of ZeRO-3: gathers, gradients handed over, and the schedule."""
    without_edges(gm.graph)
    parameters = _parameters(gm.graph)
    manager, gradients = _gradients(gm.graph)
    gathered = _manager(gm.graph, parameters)
    zero3 = f"{_COMPILE}.passes.zero3_compile"
    with _as_on_a_device():
        graph = of(zero3, "add_gather_and_release")(_ID, gm.graph, gathered, parameters)
        _, named = manager.get_bwd_mapping(graph)
        # Numbers of gradients go on behind those of the gathered parameters.
        for name in manager.param_names:
            of(zero3, "add_reduce")(_ID, graph, named[name], name, len(parameters) + manager.ds_ids[name])
        gm.graph = of(f"{_COMPILE}.fx", "move_primals_to_head")(graph)
        _profiled(gm.graph)
        _scheduled(gm, limited=True)
        of(f"{_COMPILE}.fx", "add_end_backward")(gm.graph, _ID, True)
        of(f"{_COMPILE}.fx", "replace_reduce_outputs_with_none")(gm.graph)
    dc(gm, {len(parameters) + number: index for number, index in gradients.items()})


@contextmanager
def _activations() -> Iterator[Any]:
    """No activation too small, and none on the host before: here all are."""
    module = f"{_COMPILE}.passes.offload_activation"
    of(module, "offload_activation_floor")

    def size(node: fx.Node) -> int | None:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or any(type(dim) is not int for dim in value.shape):
            return None
        return value.numel() * value.element_size()

    with ExitStack() as stack:
        stack.enter_context(_as_on_a_device())
        for name, value in {
            "_min_offload_size": lambda: 0,
            "_static_tensor_size": size,
            "print_rank_0": lambda message: None,
            "register_activation_offload_ops": lambda: None,
            "_h2d_bandwidth": lambda: 1e9,
            "_memory_budget": lambda: 1e18,
        }.items():
            stack.enter_context(mock.patch(f"{module}.{name}", value))
        yield functools.partial(of, module)


def _offloaded_forward(gm: fx.GraphModule) -> None:
    """The second half of the results as what is saved for backward."""
    without_edges(gm.graph)
    profile = types.SimpleNamespace(num_fwd_outputs=len(returned(gm.graph)) // 2, fwd_mem=[], bwd_mem=[], bwd_time=[])
    # An input that is saved as it is stays where it is.
    kept = types.SimpleNamespace(param_names=[node.name for node in gm.graph.find_nodes(op="placeholder")])
    with _activations() as found:
        found("offload_activation_floor")(gm, _ID, [(_ID, True)], {_ID: profile}, None, 0.0, {_ID: kept}, False)
    dc(gm, {})


def _reloaded_backward(gm: fx.GraphModule) -> None:
    """All inputs as activations that forward has moved to the host."""
    without_edges(gm.graph)
    plan: OrderedDict[str, tuple[int, int]] = OrderedDict()
    for number, node in enumerate(_parameters(gm.graph)):
        plan[node.name] = (number, node.meta["val"].numel())
    mem = [(node.name, 0, 0, 0) for node in gm.graph.nodes]
    profile = types.SimpleNamespace(bwd_mem=mem, bwd_time=[(node.name, 1.0, 1.0) for node in gm.graph.nodes])
    with _activations() as found:
        found("_offload_plans")[_ID] = plan
        found("offload_activation_floor")(gm, _ID, [(_ID, True)], {_ID: profile}, None, 0.0, {}, True)
    dc(gm, {})


def _cut(joint: fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **kwargs: Any) -> Any:
    """DeepCompile's partitioner for ZeRO-3: what parameters are viewed or cast to is computed again."""
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    wrap = of(f"{_COMPILE}.partitioner", "get_wrapped_partitioner")
    primals = [node for node in joint.graph.find_nodes(op="placeholder") if "tangents" not in str(node.target)]
    indices = [(index, index, getattr(node.meta.get("val"), "shape", ())) for index, node in enumerate(primals)]
    with _as_on_a_device():
        partition = wrap(True, indices[: (len(indices) + 1) // 2], min_cut_rematerialization_partition, 0, set())
        return partition(joint, inputs, num_fwd_outputs=num_fwd_outputs, **kwargs)


def _long_context(joint: fx.GraphModule, inputs: Any, **kwargs: Any) -> Any:
    """The min-cut partitioner with DeepSpeed's rule for what is never computed again."""
    from torch._functorch import partitioners

    register = of(f"{_COMPILE}.passes.long_context_checkpointing", "register_long_context_checkpointing")
    before = partitioners.solve_min_cut
    try:
        register()
        return partitioners.min_cut_rematerialization_partition(joint, inputs, **kwargs)
    finally:
        partitioners.solve_min_cut = before


PASSES: dict[str, Call | Cut] = {
    **{
        f"deepspeed_zero3_{name}": Call(functools.partial(_zero3, name), functional=True)
        for name in ("gather", "schedule", "limited", "prefetch", "offload")
    },
    "deepspeed_zero3_backward": Call(_zero3_backward, functional=True),
    "deepspeed_zero1_reduce": Call(_reduced, functional=True),
    "deepspeed_offload_activation": Call(_offloaded_forward, functional=True),
    "deepspeed_reload_activation": Call(_reloaded_backward, functional=True),
    "deepspeed_partitioner": Cut(_cut),
    "deepspeed_long_context_checkpointing": Cut(_long_context),
}
