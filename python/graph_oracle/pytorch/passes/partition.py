"""Splitting a joint graph into forward and backward.

Sources: `default_partition` and `min_cut_rematerialization_partition` of torch/_functorch/partitioners.py; with
`method=replay` the replaying partitioner of AutoParallel, where that package is installed.

The names and defaults of the options are those of `graph-oracle` (oracle/models/config/partition.rs).
"""

import importlib.util
import os
import unittest.mock
from contextlib import ExitStack

import torch
import torch.distributed._functional_collectives  # noqa: F401  (registers waits as side effects)
from torch._functorch import config, partitioners
from torch.fx.passes.shape_prop import _extract_tensor_metadata

from ..errors import Refused
from ..options import choose, known, number, text, words, yes
from . import register

METHODS = {"default": "default", "min-cut": "min-cut", "replay": "replay"}
BANS = {
    "far_apart": "ban_recompute_used_far_apart",
    "long_chains": "ban_recompute_long_fusible_chains",
    "materialized_backward": "ban_recompute_materialized_backward",
    "not_in_allow_list": "ban_recompute_not_in_allowlist",
    "reductions": "ban_recompute_reductions",
}
FLAGS = {
    "cse": "cse",
    "optimizes_collectives": "unsafe_allow_optimization_of_collectives",
    "aggressive": "aggressive_recomputation",
    "free_parameters": "treat_parameters_as_free_to_save",
    "recompute_views": "recompute_views",
    "budget_needs_coverage": "activation_memory_budget_require_full_coverage",
    "graph_safe_random": "graphsafe_rng_functionalization",
}
SOLVERS = {name: name for name in ("dp", "greedy", "ilp")}
SOLVERS["hirschberg"] = SOLVERS["dp_knapsack_sliding_hirschberg"] = "dp_knapsack_sliding_hirschberg"
RUNTIMES = {"flops": "flops", "testing": "testing"}
_KEYS = [
    "method",
    "num_fwd_outputs",
    "static_inputs",
    "needs_tangents",
    "impure_random",
    "suppressed_waits",
    "bans",
    "max_distance",
    "budget",
    "solver",
    "runtime",
    *FLAGS,
]


def methods():
    """The partitioners that can run here."""
    return [name for name in METHODS if name != "replay" or importlib.util.find_spec("autoparallel") is not None]


# "Recomputing collectives in the partitioner" in torch/_functorch/config.py: unless that is switched off, collectives
# are neither computed again nor dropped as dead. Both partitioners end by raising items
# (torch/_functorch/partitioners.py).
PROMISES = [
    {
        "when": {"optimizes_collectives": ["no", "false", ""]},
        "options": {"promises": ["collectives_once", "getitems_raised"]},
    },
    {"options": {"promises": ["getitems_raised"]}},
]


# A first partition and activation checkpointing belong to the replay, which is not served. Draws that are computed
# again need the state of their device's generator.
@register(
    "partition",
    options={"method": methods(), "suppressed_waits": ["no"], "first": [], "checkpoint": []},
    without=None if torch.cuda.is_available() else ["random-draws"],
    promises=PROMISES,
)
def run(rebuilt, options):
    """Outcome: `forward` and `backward`."""
    known(options, _KEYS)
    method = choose("method", options.get("method", "default"), METHODS)
    if method == "replay":
        raise Refused("method=replay needs the package autoparallel, which is not installed")
    if yes("suppressed_waits", options.get("suppressed_waits", "no")):
        raise Refused(f"option suppressed_waits=yes: {method} does not suppress waits")
    outputs = forward_outputs(rebuilt, options)
    static = static_inputs(rebuilt, options)
    if yes("needs_tangents", options.get("needs_tangents", "yes")) and not any(
        node.op == "placeholder" and "tangents" in node.target for node in rebuilt.graph.nodes
    ):
        raise Refused("the graph has no tangents")
    refuse_random(rebuilt)
    describe(rebuilt)
    patch = patches(options)
    function = (
        partitioners.default_partition if method == "default" else partitioners.min_cut_rematerialization_partition
    )
    with ExitStack() as stack:
        stack.enter_context(without_dumps())
        stack.enter_context(config.patch(patch))
        stack.enter_context(rebuilt.mode)
        if not yes("impure_random", options.get("impure_random", "no")):
            # Within a compilation, dead-code elimination takes draws for pure.
            stack.enter_context(torch._guards.tracing(torch._guards.TracingContext(rebuilt.mode)))
        with rebuilt.timing() as timing:
            forward, backward = function(
                rebuilt.module, (), num_fwd_outputs=outputs, static_lifetime_input_indices=static
            )
    return {
        "seconds": timing.seconds,
        "forward": part(rebuilt, forward, "forward"),
        "backward": part(rebuilt, backward, "backward"),
    }


def without_dumps():
    """The min-cut partitioner writes graphs that it cannot cut into the working directory: within this it does not."""
    return unittest.mock.patch.object(partitioners, "_get_unique_path", lambda *_: os.devnull, create=True)


def describe(rebuilt):
    """The partitioners tell tensors from tuples by `tensor_meta`, which tracing leaves on every tensor."""
    for node in rebuilt.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            node.meta["tensor_meta"] = _extract_tensor_metadata(value)


def part(rebuilt, module, kind):
    document = rebuilt.export(module.graph, name=f"{rebuilt.document.get('name', 'joint')}_{kind}", kind=kind)
    # These count the outputs and the inputs of the joint graph.
    document.pop("num_fwd_outputs", None)
    document.pop("static_lifetime_input_indices", None)
    return document


def forward_outputs(rebuilt, options):
    """How many of the outputs are forward outputs."""
    (output,) = rebuilt.graph.find_nodes(op="output")
    count = len(output.args[0]) if isinstance(output.args[0], (tuple, list)) else 1
    value = options.get("num_fwd_outputs", rebuilt.document.get("num_fwd_outputs"))
    if value is None:
        raise Refused("nothing says how many outputs are forward outputs (num_fwd_outputs)")
    value = value if type(value) is int else number("num_fwd_outputs", value)
    if not 0 <= value <= count:
        raise Refused(f"{value} of {count} outputs cannot be forward outputs")
    return value


def static_inputs(rebuilt, options):
    """Positions of the inputs that live for the whole program."""
    value = options.get("static_inputs")
    if value is None:
        return list(rebuilt.document.get("static_lifetime_input_indices") or [])
    if text(value) in ("none", ""):
        return []
    # PyTorch counts among all placeholders that come before the tangents.
    primals = sum(node.op == "placeholder" and partitioners._is_primal(node) for node in rebuilt.graph.nodes)
    if text(value) == "all":
        return list(range(primals))
    found = []
    for word in words(value):
        first, _, last = word.partition("-")
        found += range(number("static_inputs", first), number("static_inputs", last or first) + 1)
    return [index for index in found if index < primals]


def patches(options):
    """PyTorch's configuration for the options. What is not given has the oracle's default, which is PyTorch's."""
    patch = {}
    defaults = {"cse": "yes", "free_parameters": "yes", "budget_needs_coverage": "yes"}
    for key, name in FLAGS.items():
        value = yes(key, options.get(key, defaults.get(key, "no")))
        if hasattr(config, name):
            patch[name] = value
        elif key in options:
            raise Refused(f"option {key}: this torch has no {name}")
    bans = options.get("bans", "all")
    kept = list(BANS) if text(bans) == "all" else [] if text(bans) == "none" else words(bans)
    for word in kept:
        choose("bans", word, BANS)
    patch.update({name: word in kept for word, name in BANS.items()})
    patch["max_dist_from_bw"] = number("max_distance", options.get("max_distance", "1000"))
    patch["activation_memory_budget"] = number("budget", options.get("budget", "1.0"), float)
    patch["activation_memory_budget_solver"] = choose("solver", options.get("solver", "dp"), SOLVERS)
    patch["activation_memory_budget_runtime_estimator"] = choose("runtime", options.get("runtime", "flops"), RUNTIMES)
    if patch["activation_memory_budget_solver"] == "ilp" and importlib.util.find_spec("scipy") is None:
        raise Refused("option solver=ilp needs scipy, which is not installed")
    return patch


def refuse_random(rebuilt):
    """Draws that are to be computed again need the state of the device's generator."""
    for node in rebuilt.graph.nodes:
        if "recompute" not in node.meta or not hasattr(node.target, "tags"):
            continue
        if torch.Tag.nondeterministic_seeded in node.target.tags:
            value = node.meta.get("val")
            tensors = value if isinstance(value, (list, tuple)) else [value]
            for tensor in tensors:
                if isinstance(tensor, torch.Tensor) and tensor.device.type == "cuda" and not torch.cuda.is_available():
                    raise Refused(f"{node.name} draws on {tensor.device}, and there is no such device here")
