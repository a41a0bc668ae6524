"""A pass of a framework as a function, and what such passes need of a graph."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import fx

from .. import ordering
from ..errors import Refused
from ..peers import as_traced
from ..worker import demand_functional
from .meaning import Rewriter


@dataclass(frozen=True)
class Call:
    """A pass that rewrites a graph. `functional`: whether the framework gives it functional graphs only."""

    call: Callable[[fx.GraphModule], Any]
    functional: bool = False

    def __call__(self, gm: fx.GraphModule) -> Any:
        if self.functional:
            demand: Any = demand_functional
            demand(gm.graph)
        as_traced(gm.graph)
        before = set(gm.graph.nodes)
        result = self.call(gm)
        # A copy of a node claims the metadata of the node, its memory too.
        graph = result.graph if isinstance(result, fx.GraphModule) else gm.graph
        rewriter = Rewriter(graph)
        rewriter.new.update(node for node in graph.nodes if node not in before)
        rewriter.described()
        return result


@dataclass(frozen=True)
class Cut:
    """A partitioner: called as AOTAutograd calls one."""

    call: Callable[..., Any]

    def __call__(self, joint_module: fx.GraphModule, joint_inputs: Any, *, num_fwd_outputs: int, **kwargs: Any) -> Any:
        as_traced(joint_module.graph)
        return self.call(joint_module, joint_inputs, num_fwd_outputs=num_fwd_outputs, **kwargs)


def of(module: str, name: str) -> Any:
    """A name of a framework. Refused where the framework, or this version of it, has it not."""
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise Refused(f"{module} cannot be imported: {error}") from None
    if not hasattr(found, name):
        raise Refused(f"this version has no {module}.{name}")
    return getattr(found, name)


def without_edges(graph: fx.Graph) -> None:
    """Only Inductor makes ordering edges, and only after these passes."""
    if any(ordering.is_carrier(node) for node in graph.nodes):
        raise Refused("the graph has ordering edges, which are made later")


def returned(graph: fx.Graph) -> list[Any]:
    """What a graph returns."""
    (output,) = graph.find_nodes(op="output")
    values = output.args[0]
    return list(values) if isinstance(values, (list, tuple)) else [values]


def backward_of(graph: fx.Graph) -> set[fx.Node]:
    """The calls of backward: what depends on a tangent, or else those from the middle on, where no wait is cut from
    what it waits for."""
    found: set[fx.Node] = set()
    for node in graph.nodes:
        is_tangent = node.op == "placeholder" and "tangents" in str(node.target)
        if is_tangent or any(read in found for read in node.all_input_nodes):
            found.add(node)
    calls = [node for node in graph.nodes if node.op == "call_function"]
    if not any(node in found for node in calls):
        place = {node: index for index, node in enumerate(calls)}
        spans = [(place[read], place[node]) for node in calls for read in node.all_input_nodes if read in place]
        waits = [(start, end) for start, end in spans if "wait" in str(calls[end].target)]
        whole = (cut for cut in range(len(calls) // 2, len(calls)) if not any(s < cut <= e for s, e in waits))
        return set(calls[next(whole, len(calls)) :])
    return {node for node in calls if node in found}


# Of a small model, forward and then backward: the parts of a graph's calls, each up to this share of them.
_FORWARD = ((0.4, "layers.0"), (0.8, "layers.1"), (1.0, "lm_head"))
_BACKWARD = ((0.2, "lm_head"), (0.6, "layers.1"), (1.0, "layers.0"))


def annotated(graph: fx.Graph) -> None:
    """Marks nodes as torchtitan's tracing does: what is of backward, and which module each is of."""
    backward = backward_of(graph)
    calls = [node for node in graph.nodes if node.op in ("call_function", "get_attr")]
    parts = ([n for n in calls if n not in backward], _FORWARD), ([n for n in calls if n in backward], _BACKWARD)
    for nodes, model in parts:
        for index, node in enumerate(nodes):
            name = next(module for share, module in model if index < share * len(nodes))
            node.meta["custom"] = {**node.meta.get("custom", {}), "module_fqn": name}
            if node in backward:
                node.meta["autograd_backward"] = True
