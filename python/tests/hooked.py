"""Passes on small graphs, right and wrong, for the tests of hooks and of watching."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch._inductor.custom_graph_pass import CustomGraphPass

aten = torch.ops.aten


def module(value: Any = None) -> fx.GraphModule:
    """relu(x) + x, with metadata."""
    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(aten.relu.default, (x,))
    b = graph.call_function(aten.add.Tensor, (a, x))
    graph.output((b,))
    for node in (x, a, b):
        node.meta["val"] = torch.empty(4) if value is None else value
    return fx.GraphModule(torch.nn.Module(), graph)


def nothing(graph: fx.Graph) -> None:
    """Changes nothing."""


def copied(graph: fx.Graph) -> None:
    """Adds a copy of what each relu gives, which is the same."""
    for node in calls(graph, aten.relu.default):
        with graph.inserting_after(node):
            copy = graph.call_function(aten.clone.default, (node,))
        copy.meta["val"] = node.meta["val"].clone()
        node.replace_all_uses_with(copy, delete_user_cb=lambda user: user.target is aten.add.Tensor)


def negated(graph: fx.Graph) -> None:
    """Makes each relu a negation: wrong."""
    for node in calls(graph, aten.relu.default):
        node.target = aten.neg.default


def calls(graph: fx.Graph, target: Any) -> list[fx.Node]:
    return [node for node in graph.nodes if node.op == "call_function" and node.target is target]


class Pass(CustomGraphPass):
    """A pass as Inductor wants it."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.ran = 0

    def __call__(self, graph: fx.Graph) -> None:
        self.ran += 1
        self.function(graph)

    def uuid(self) -> Any:
        return f"hooked/{self.function.__name__}"


class Stopped(Exception):
    """All is done to the graphs; kernels are not wanted."""


@contextlib.contextmanager
def without_kernels() -> Iterator[None]:
    """A torch.compile that does all to the graph of the forward, and to the list of its nodes, and stops there."""
    from unittest import mock

    from torch._inductor.scheduler import Scheduler

    def stopped(self: Any) -> None:
        raise Stopped("all is done")

    torch._dynamo.reset()
    settings = {"fx_graph_cache": False}
    with mock.patch.object(Scheduler, "codegen", stopped), torch._inductor.config.patch(settings):
        with torch._functorch.config.patch(enable_autograd_cache=False):
            yield
    torch._dynamo.reset()


def step(x: torch.Tensor) -> torch.Tensor:
    return (torch.relu(x) + x).sum()


def compiled(function: Any = step) -> None:
    """Compiles a training step."""
    try:
        torch.compile(function)(torch.randn(4, 4, requires_grad=True))
    except Exception as error:
        if not isinstance(cause(error, Stopped), Stopped):
            raise


def cause(error: Any, kind: type[Exception]) -> Any:
    """The error of a kind that another one is about, as torch wraps them."""
    while error is not None and not isinstance(error, kind):
        error = getattr(error, "inner_exception", None) or error.__cause__ or error.__context__
    return error
