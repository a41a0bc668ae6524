"""Bodies of higher-order operators: sub-modules whose graph is run by a call in the graph around them.

A document holds them under `subgraphs`, by the attribute that a `get_attr` node names. Rebuilt are those that are run
once, by `invoke_subgraph` or behind other nodes by `control_deps`: what such a call returns is what its body returns.

    module = rebuild(rebuilt, body)            the module of one body
    found = of_attribute(node)                 the body that a get_attr node names; None where it names something else
    value = returned(mode, node)               what a call returns, by running its body on fake tensors
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from . import targets
from .errors import Refused

if TYPE_CHECKING:
    from .rebuild import Rebuilt

# By name: where the body stands among the arguments, and where what it is given begins.
RUN = {"higher_order.invoke_subgraph": (0, 2), "higher_order.control_deps": (1, 2)}


def rebuild(outer: Rebuilt, body: Any) -> fx.GraphModule:
    """The module of a body: a list of nodes, or an object with `nodes` and `subgraphs`."""
    from .rebuild import Rebuilt, _Builder

    document = body if isinstance(body, dict) else {"nodes": body}
    rebuilt: Any = Rebuilt
    inner = rebuilt({**outer.document, "subgraphs": {}, **document}, outer.rank)
    inner.symbols, inner.shapes = outer.symbols, outer.shapes
    builder: Any = _Builder
    builder(inner, values=True, after=None, mode=outer.mode).build()
    module: fx.GraphModule = inner.module
    return module


def of_attribute(node: fx.Node) -> fx.GraphModule | None:
    owner = node.graph.owning_module
    if node.op != "get_attr" or owner is None:
        return None
    found = targets.attribute(owner, str(node.target))
    return found if isinstance(found, fx.GraphModule) else None


def is_run(target: Any) -> bool:
    """Whether calls of it run a body once."""
    return isinstance(target, torch._ops.HigherOrderOperator) and targets.name_of(target) in RUN


def returned(mode: Any, module: fx.GraphModule, node: fx.Node) -> Any:
    """What a call of the body gives, with the values that its arguments have."""
    _, first = RUN[targets.name_of(node.target)]
    given: Any = node.args[first:]
    inputs = [inner for inner in module.graph.nodes if inner.op == "placeholder"]
    if len(given) != len(inputs) or not all(isinstance(one, fx.Node) for one in given):
        raise Refused(f"{node.name} gives its body {len(given)} values, and it takes {len(inputs)}")
    with mode, torch._C._AutoDispatchBelowAutograd():
        return fx.Interpreter(module).run(*[one.meta["val"] for one in given], enable_io_processing=False)
