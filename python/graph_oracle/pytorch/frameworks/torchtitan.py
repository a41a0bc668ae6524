"""Passes of torchtitan (torchtitan/experiments): of graph_trainer in 0.3, of compiler_toolkit and simple_fsdp before.

graph_trainer traces a whole step without functionalizing it: its graphs write in place, and are not refused here.
"""

from __future__ import annotations

import functools
import types
from contextlib import ExitStack
from typing import Any, TypeAlias
from unittest import mock

import torch
from torch import fx

from ..errors import Refused
from ..peers import found
from .called import Call, Cut, annotated, of, returned, without_edges
from .meaning import AO, by_name

_TRAINER = "torchtitan.experiments.graph_trainer"
_TOOLKIT = "torchtitan.experiments.compiler_toolkit"
_PLANS = ["layers.0", "layers.1", ["norm", "lm_head"]]


def _plain(module: str, name: str, gm: fx.GraphModule) -> Any:
    return of(f"{_TRAINER}.{module}", name)(gm)


def _moved_groups(module: str, name: str, registry: str, make: str, gm: fx.GraphModule) -> Any:
    """A pass that moves collectives to a group of the same ranks. What the judge is told is the group that it was."""
    new: dict[str, str] = {}

    def extra(source: str, *_: Any, **__: Any) -> str:
        new[f"{source}_extra"] = source
        return f"{source}_extra"

    of(f"{_TRAINER}.{module}", registry)
    with mock.patch(f"{_TRAINER}.{module}.{make}", extra):
        _plain(module, name, gm)
    for node in gm.graph.nodes:
        node.args = tuple(new.get(arg, arg) if isinstance(arg, str) else arg for arg in node.args)


def _deduplicated(gm: fx.GraphModule) -> Any:
    try:
        return _plain("fsdp_passes", "deduplicate_fsdp_unshard_chains_pass", gm)
    except ValueError as error:
        if "Expected" in str(error) or "should have exactly one input" in str(error):
            raise Refused(f"no graph of FSDP: {error}") from None
        raise


def _autobucketing(gm: fx.GraphModule) -> Any:
    return _plain("fsdp_passes", "autobucketing_reordering_pass", gm)


def _toolkit_autobucketing(gm: fx.GraphModule) -> Any:
    return of(f"{_TOOLKIT}.passes", "autobucketing_reordering_pass")(gm)


def _block_bucketing(gm: fx.GraphModule) -> Any:
    """Its modules are those of the model's own stack."""
    annotated(gm.graph)
    for node in gm.graph.nodes:
        if "custom" in node.meta:
            name = node.meta["custom"]["module_fqn"]
            node.meta["nn_module_stack"] = {name: (name, torch.nn.Module)}
    return of(f"{_TRAINER}.fsdp_passes", "transformer_block_bucketing_reordering_pass")(gm, fsdp_manual_buckets=_PLANS)


def _joint_bucketing(gm: fx.GraphModule) -> Any:
    annotated(gm.graph)
    bucketed = of(f"{_TRAINER}.fsdp_passes", "joint_transformer_block_bucketing_reordering_pass")
    return bucketed(gm, module_bucket_plans=_PLANS)


def _dense_regions(gm: fx.GraphModule) -> Any:
    """After bucketing. Without `strict`, what cannot be moved stays."""
    gm = _joint_bucketing(gm)
    schedule = of(f"{_TRAINER}.fsdp_passes", "schedule_fsdp_comms_to_dense_regions_pass")
    return schedule(gm, moe_layer_ids=frozenset(), n_layers=2)


def _tagged(gm: fx.GraphModule, policy: str) -> None:
    without_edges(gm.graph)
    annotated(gm.graph)
    for node in gm.graph.nodes:
        node.meta.pop("recompute", None)
    make = of(f"{_TRAINER}.memory_policy", f"_make_{policy}_memory_policy")
    of(f"{_TRAINER}.memory_policy", "tag_sac_policy")(gm, policy_fn=make())


def _rematerialized(policy: str, gm: fx.GraphModule) -> Any:
    _tagged(gm, policy)
    try:
        return _plain("selective_activation_remat", "selective_activation_remat_pass", gm)
    except RuntimeError as error:
        if "does not support RNG ops" in str(error) or "disjoint backward regions" in str(error):
            raise Refused(str(error)) from None
        raise


def _offloaded(remat: bool, gm: fx.GraphModule, **settings: int) -> Any:
    """With SAC as the policy sac_and_offload does, and no activation too small."""
    offload = f"{_TRAINER}.cpu_offload"
    of(offload, "apply_cpu_offload_pass")
    _tagged(gm, "default")
    with mock.patch(f"{offload}._MIN_OFFLOAD_BYTES", 0):
        of(offload, "tag_all_offloadable_activations")(gm)
        gm = of(offload, "apply_cpu_offload_pass")(gm, **settings)
    if remat:
        try:
            gm = _plain("selective_activation_remat", "selective_activation_remat_pass", gm)
        except RuntimeError as error:
            if "does not support RNG ops" in str(error) or "disjoint backward regions" in str(error):
                raise Refused(str(error)) from None
            raise
    by_name(gm, AO)
    return gm


def _async_tp(gm: fx.GraphModule) -> Any:
    """With the fallbacks of PyTorch's own tests: here no memory is shared between devices."""
    run = of(f"{_TRAINER}.passes", "async_tensor_parallel_pass")
    with ExitStack() as stack:
        stack.enter_context(found("torch.distributed._symmetric_memory._test_mode")())
        stack.enter_context(mock.patch("torch.distributed._symmetric_memory.enable_symm_mem_for_group"))
        return run(gm, ())


# ---------------------------------------------------------------------------------------------------------------
# GraphPP: a graph in two, which are judged as one after the other


# Graphs, and the names under which their results are handed on.
_Parts: TypeAlias = list[tuple[fx.GraphModule, tuple[str, ...]]]


def _inlined(parts: _Parts, gm: fx.GraphModule, results: list[Any]) -> fx.GraphModule:
    """One graph that runs the parts in turn. A value of one is handed to the next by its name."""
    graph = fx.Graph()
    known: dict[str, Any] = {}
    for node in gm.graph.find_nodes(op="placeholder"):
        known[node.name] = graph.node_copy(node)
    for part, names in parts:
        env: dict[fx.Node, Any] = {}
        for node in part.graph.nodes:
            if node.op == "placeholder":
                if node.name not in known:
                    raise RuntimeError(f"a part reads {node.name}, which nobody hands it")
                env[node] = known[node.name]
            elif node.op == "output":
                values = fx.node.map_arg(tuple(returned(part.graph)), env.__getitem__)
                known.update(zip(names, values))
            else:
                env[node] = graph.node_copy(node, env.__getitem__)
    graph.output(tuple(known[result] if isinstance(result, str) else result for result in results))
    return fx.GraphModule(gm, graph)


def _forward_split(gm: fx.GraphModule) -> Any:
    """All inputs as parameters."""
    without_edges(gm.graph)
    names = tuple(node.name for node in gm.graph.find_nodes(op="placeholder"))
    results = returned(gm.graph)
    split = of(f"{_TRAINER}.graph_pp.split_fsdp_collectives", "split_forward_fsdp_collectives")
    _deduplicated(gm)
    try:
        done = split(gm, num_params=len(names), fwd_input_names=names, fwd_flat_input_indices=tuple(range(len(names))))
    except ValueError as error:
        raise Refused(f"no graph of FSDP: {error}") from None
    if done.unshard_module is None:
        return gm
    ends = [f"graph_pp_result_{index}" for index in range(len(results))]
    # The second part takes the values of the first in their order.
    handed = done.fw_no_fsdp_input_names[: done.num_fw_unsharded_param_inputs]
    parts = [(done.unshard_module, handed), (done.fw_no_fsdp_module, tuple(ends))]
    return _inlined(parts, gm, list(ends))


def _backward_split(gm: fx.GraphModule) -> Any:
    """All results as gradients of parameters."""
    without_edges(gm.graph)
    results = returned(gm.graph)
    split = of(f"{_TRAINER}.graph_pp.split_fsdp_collectives", "split_backward_fsdp_collectives")
    done = split(gm, num_param_grads=len(results))
    if done.reduce_grad_module is None:
        return gm
    ends = tuple(f"graph_pp_result_{index}" for index in range(len(results)))
    parts = [(done.bw_no_fsdp_module, done.bw_no_fsdp_output_names), (done.reduce_grad_module, ends)]
    return _inlined(parts, gm, list(ends))


def _di_dw_split(gm: fx.GraphModule) -> Any:
    """The first half of the results as gradients of parameters."""
    without_edges(gm.graph)
    results = returned(gm.graph)
    parameters = len(results) // 2
    if any(not isinstance(value, fx.Node) for value in results):
        raise Refused("a result is no node")
    done = of(f"{_TRAINER}.graph_pp.split_di_dw", "split_di_dw_graph")(gm, num_param_grads=parameters)
    if done is None:
        return gm
    ends = [f"graph_pp_result_{index}" for index in range(len(results))]
    inputs = (*ends[parameters:], *done.bw_di_output_names[done.num_input_grads :])
    parts = [(done.bw_di_module, inputs), (done.bw_dw_module, tuple(ends[:parameters]))]
    return _inlined(parts, gm, list(ends))


def _graph_pp(joint: fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **_: Any) -> Any:
    """The partitioner of GraphPP: tangents are what the schedule supplies in backward."""
    partition = of(f"{_TRAINER}.graph_pp.partition", "partition_joint_graph")
    placeholders = joint.graph.find_nodes(op="placeholder")
    late = tuple(index for index, node in enumerate(placeholders) if "tangents" in str(node.target))
    traced = types.SimpleNamespace(gm=joint)
    forward, backward, _meta = partition(traced, num_fwd_outputs=num_fwd_outputs, backward_only_input_indices=late)
    return forward, backward


def _annotated_gathers(reshard: bool, joint: fx.GraphModule, inputs: Any, **kwargs: Any) -> Any:
    """simple_fsdp's tags (0.2), and the partitioner that AOTAutograd has after them."""
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    annotate = of("torchtitan.experiments.simple_fsdp.reshard_after_forward", "annotate_fsdp_all_gather")
    annotate(joint, reshard)
    return min_cut_rematerialization_partition(joint, inputs, **kwargs)


def _row(module: str, *names: str) -> dict[str, Call]:
    return {f"titan_{name.removesuffix('_pass')}": Call(functools.partial(_plain, module, name)) for name in names}


PASSES: dict[str, Call | Cut] = {
    **_row(
        "remove_noop_passes",
        "eliminate_dead_code_pass",
        "remove_detach_pass",
        "remove_identity_view_pass",
        "remove_b2b_transpose_pass",
        "remove_identity_slice_pass",
        "normalize_view_ops_as_reshape",
        "canonicalize_graph_pass",
    ),
    "titan_deduplicate_fsdp_unshard_chains": Call(_deduplicated),
    "titan_reassign_collective_pgs": Call(
        functools.partial(
            _moved_groups,
            "fsdp_passes",
            "reassign_collective_pgs_pass",
            "_EXTRA_FSDP_PG_REGISTRY",
            "_get_or_create_extra_fsdp_pg",
        )
    ),
    "titan_isolate_ep_process_group": Call(
        functools.partial(
            _moved_groups,
            "ep_process_group_pass",
            "isolate_ep_process_group_pass",
            "_EXTRA_EP_PG_REGISTRY",
            "_get_or_create_extra_ep_pg",
        )
    ),
    "titan_autobucketing_reordering": Call(_autobucketing, functional=True),
    "titan_toolkit_autobucketing_reordering": Call(_toolkit_autobucketing, functional=True),
    "titan_transformer_block_bucketing_reordering": Call(_block_bucketing, functional=True),
    "titan_joint_transformer_block_bucketing_reordering": Call(_joint_bucketing),
    "titan_schedule_fsdp_comms_to_dense_regions": Call(_dense_regions),
    "titan_selective_activation_remat": Call(functools.partial(_rematerialized, "default")),
    "titan_selective_activation_remat_full": Call(functools.partial(_rematerialized, "full")),
    "titan_selective_activation_remat_eager": Call(functools.partial(_rematerialized, "eager")),
    "titan_cpu_offload": Call(functools.partial(_offloaded, False)),
    "titan_cpu_offload_at_once": Call(functools.partial(_offloaded, False, defer_n_layers=0)),
    "titan_cpu_offload_and_remat": Call(functools.partial(_offloaded, True)),
    "titan_async_tensor_parallel": Call(_async_tp),
    "titan_split_forward_fsdp_collectives": Call(_forward_split),
    "titan_split_backward_fsdp_collectives": Call(_backward_split),
    "titan_split_di_dw": Call(_di_dw_split),
    "titan_partition_joint_graph": Cut(_graph_pp),
    "titan_reshard_after_forward": Cut(functools.partial(_annotated_gathers, True)),
    "titan_keep_after_forward": Cut(functools.partial(_annotated_gathers, False)),
}
