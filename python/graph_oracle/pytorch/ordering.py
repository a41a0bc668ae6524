"""Ordering edges in an FX graph: PyTorch's own carrier of them, `control_deps`, and back.

An FX node has arguments and nothing else. Where Inductor wants one node behind another that it does not read (draws in
program order, what the overlap scheduler chose), `preserve_node_ordering` of
torch/_inductor/fx_passes/control_dependencies.py puts the node into a call of `control_deps`: what must come before it,
a subgraph of that one operator, and its arguments. So a graph with ordering edges is rebuilt by this very function, and
passes honour such an edge exactly as far as they honour a call of `control_deps`: its arguments are edges to every
pass, and the operator inside is hidden from those that look for it by its target.

    carry(rebuilt)             the edges of the document, once its nodes are there
    found = carried(node)      the operator that such a call stands for; None for any other node

Not carried, and refused: edges before inputs, attributes and the output, which no call can stand for.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from torch.fx import node as fx_node
from torch.utils._ordered_set import OrderedSet

from . import versions
from .errors import Refused

if TYPE_CHECKING:
    from .rebuild import Rebuilt

_CONTROL_DEPS = versions.get("torch._inductor.fx_passes.control_dependencies.control_deps")
_PRESERVE = versions.get("torch._inductor.fx_passes.control_dependencies.preserve_node_ordering")
AVAILABLE = _CONTROL_DEPS is not None and _PRESERVE is not None


class Carried:
    """What a call of `control_deps` stands for: the operator, its arguments in the outer graph, and what comes
    before."""

    def __init__(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], before: list[fx_node.Node]) -> None:
        self.target, self.args, self.kwargs, self.before = target, args, kwargs, before


def carry(rebuilt: Rebuilt) -> None:
    """Puts each node of the document that has ordering edges into a call of `control_deps`."""
    wanted = {}
    for entry in rebuilt.document["nodes"]:
        if not entry.get("after"):
            continue
        node = rebuilt.nodes[entry["name"]]
        if node.op != "call_function":
            raise Refused(f"{entry['name']} is no call and has ordering edges, which PyTorch has no form for")
        before = [rebuilt.nodes.get(name) for name in entry["after"]]
        if None in before:
            raise Refused(f"{entry['name']} has an ordering edge from a node that does not exist")
        wanted[node] = before
    if not wanted:
        return
    if not AVAILABLE:
        raise Refused("the graph has ordering edges, for which this torch has no control_deps")
    names = {node.name: rebuilt.names[node.name] for node in wanted}
    _PRESERVE(rebuilt.graph, {node: OrderedSet(before) for node, before in wanted.items()})
    # The nodes were replaced, under the same names.
    for node in rebuilt.graph.nodes:
        if node.name in names:
            rebuilt.nodes[names[node.name]] = node


def is_carrying(target: object) -> bool:
    return AVAILABLE and target is _CONTROL_DEPS


def is_carrier(node: fx_node.Node) -> bool:
    return node.op == "call_function" and is_carrying(node.target)


def carried(node: fx_node.Node) -> Carried | None:
    """What a call of `control_deps` on one operator stands for; None for another node."""
    if not is_carrier(node) or node.kwargs or len(node.args) < 2:
        return None
    given: tuple[Any, ...] = node.args
    before, attribute, *arguments = given
    module = operator.attrgetter(attribute.target)(node.graph.owning_module)
    calls = [inner for inner in module.graph.nodes if inner.op == "call_function"]
    inputs = [inner for inner in module.graph.nodes if inner.op == "placeholder"]
    if len(calls) != 1 or len(inputs) != len(arguments) or len(module.graph.nodes) != len(inputs) + 2:
        return None
    # What the sub-graph returns is what the call gives.
    if [inner.args for inner in module.graph.nodes if inner.op == "output"] != [(calls[0],)]:
        return None
    outer = dict(zip(inputs, arguments))

    def replaced(value: fx_node.Node) -> Any:
        return outer[value]

    call = calls[0]
    args, kwargs = fx_node.map_arg(call.args, replaced), fx_node.map_arg(call.kwargs, replaced)
    return Carried(call.target, args, kwargs, [one for one in before if isinstance(one, fx_node.Node)])


def is_body(node: fx_node.Node) -> bool:
    """Whether a node is but the subgraph of such a call."""
    return node.op == "get_attr" and bool(node.users) and all(carried(user) is not None for user in node.users)
