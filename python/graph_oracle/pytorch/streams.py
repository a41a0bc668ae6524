"""AOTAutograd's passes on streams (torch/_functorch/_aot_autograd/streams.py), as they are called on a joint graph.

`ordered_by_edges` wraps what orders streams into calls of `control_deps`, and puts the nodes in another order that all
edges allow: the pass is there so that whoever orders the graph later, by its edges, keeps streams in order.

`in_backward` makes the graph a backward: its calls stay on their streams, as autograd runs a call's gradient where it
ran the call, and what kept the streams in order is gone, as nothing of that is differentiated. Then come the passes
that put it in again.

Events get numbers, as in captured graphs, the current stream has the number 0, and each call takes as long as another:
PyTorch would make real events and ask a GPU.
"""

from __future__ import annotations

import heapq
import importlib
import itertools
import operator
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

import torch
from torch import fx

from .errors import Refused

MODULE = "torch._functorch._aot_autograd.streams"


def ordered_by_edges(function: Callable[[fx.GraphModule], Any], gm: fx.GraphModule) -> None:
    if not any(map(orders_streams, gm.graph.nodes)):
        raise Refused("nothing orders streams")
    function(gm)
    _sort_the_latest_first(gm.graph)


def in_backward(function: Callable[[fx.GraphModule], Any], gm: fx.GraphModule) -> None:
    streams = importlib.import_module(MODULE)
    if any(str(node.target).startswith("streams.synchronize_") for node in gm.graph.nodes):
        raise Refused("the host waits for a stream, which no backward does")
    for node in reversed(list(gm.graph.nodes)):
        if orders_streams(node):
            gm.graph.erase_node(node)
        elif node.op == "call_function":
            node.meta["partitioner_tag"] = "is_backward"
    for item in gm.graph.find_nodes(op="call_function", target=operator.getitem):
        # One call of autograd made both.
        item.meta["custom"] = item.args[0].meta.get("custom", {})
    events = itertools.count(1 << 20)
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(streams, "new_event", lambda: next(events)))
        stack.enter_context(mock.patch.object(streams, "get_current_stream", lambda device: 0))
        stack.enter_context(mock.patch.object(streams, "get_roofline_estimate", lambda node: 1.0))
        stack.enter_context(mock.patch.object(torch.accelerator, "is_available", lambda: True))
        function(gm)


def joined(function: Callable[[fx.GraphModule], Any], gm: fx.GraphModule) -> None:
    """The same, of a backward whose streams wait for the caller's first, and the caller's for them in the end."""

    def between(gm: fx.GraphModule) -> None:
        sides = sorted({node.meta.get("custom", {}).get("stream", 0) for node in gm.graph.nodes} - {0})
        (output,) = gm.graph.find_nodes(op="output")
        first = next(node for node in gm.graph.nodes if node.op != "placeholder")
        wait = torch.ops.streams.wait_stream.default
        importlib.import_module(MODULE).insert_backward_syncs(gm)
        for anchor, order in ((first, [(side, 0) for side in sides]), (output, [(0, side) for side in sides])):
            with gm.graph.inserting_before(anchor):
                for pair in order:
                    gm.graph.call_function(wait, pair)
        function(gm)

    in_backward(between, gm)


def orders_streams(node: fx.Node) -> bool:
    return str(node.target).startswith("streams.")


def _keeps_its_place(node: fx.Node) -> bool:
    """Draws, communication and what has an effect keep their order among themselves, whoever sorts the graph."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return False
    return node.target.namespace != "aten" or node.is_impure()


def _sort_the_latest_first(graph: fx.Graph) -> None:
    """Of the nodes whose arguments are there, the one that stood last comes first; inputs stay in front, the output at
    the end."""
    nodes = list(graph.nodes)
    place = {node: index for index, node in enumerate(nodes)}
    needs = {node: set(node.all_input_nodes) for node in nodes}
    for before, after in itertools.pairwise(filter(_keeps_its_place, nodes)):
        needs[after].add(before)
    users: dict[fx.Node, list[fx.Node]] = {node: [] for node in nodes}
    for node in nodes:
        for needed in needs[node]:
            users[needed].append(node)

    def urgency(node: fx.Node) -> tuple[int, int]:
        if node.op == "placeholder":
            return (0, place[node])
        return (2 if node.op == "output" else 1, -place[node])

    ready = [(urgency(node), place[node]) for node in nodes if not needs[node]]
    heapq.heapify(ready)
    last = graph._root
    while ready:
        node = nodes[heapq.heappop(ready)[1]]
        last.append(node)
        last = node
        for user in users[node]:
            needs[user].discard(node)
            if not needs[user]:
                heapq.heappush(ready, (urgency(user), place[user]))
