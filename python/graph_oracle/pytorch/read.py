"""Graphs of torch.fx as graphs of the oracle's own: the reader (python/src/fx.rs) with what it asks about torch.

What a graph holds that has no form there is told with the node that holds it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import fx

from .. import _oracle
from .._oracle import CannotJudge
from .knowledge import Knowledge
from .targets import attribute

# What ExportedProgram.module() puts before the graph.
_GUARDS = "_guards_fn"


class Reader:
    """Reads graphs; what several of them share, such as fake tensors, is read once."""

    def __init__(self) -> None:
        self._reader = _new()
        # One for all: of what is not read again, nothing is asked again.
        self._knowledge = Knowledge()

    def read(self, given: fx.GraphModule | fx.Graph, kind: str = "forward", name: str = "graph") -> _oracle.Graph:
        """The graph of a GraphModule or Graph, as this rank sees it."""
        graph = given if isinstance(given, fx.Graph) else given.graph
        owner = graph.owning_module if isinstance(given, fx.Graph) else given
        try:
            return self._reader.read(graph, owner, self._knowledge, name, kind)
        except Exception as error:
            # Looked for only now, so that a graph that can be read costs nothing more.
            node = _unread(graph, owner)
            if node is None:
                raise
            if node.op == "call_module" and node.target == _GUARDS:
                raise CannotJudge(
                    f"{node.name} checks the inputs of a program of torch.export: give its graph_module instead of "
                    "module(), or module(check_guards=False)"
                ) from error
            held = _indescribable(_held(node, owner))
            if held:
                raise CannotJudge(f"{node.name} holds {held}, which no graph of the oracle can hold") from error
            # A TypeError: what stands there is no name, or no mapping, where torch itself has one.
            if isinstance(error, (CannotJudge, TypeError)) and not str(error).startswith(node.name):
                raise CannotJudge(f"{node.name}: {error}") from error
            raise


def _new() -> _oracle.Reader:
    return _oracle.Reader(fx.Node, torch.Tensor)


def _unread(graph: fx.Graph, owner: Any) -> fx.Node | None:
    """The first node that cannot be read on its own either."""
    for node in graph.nodes:
        alone: Any = SimpleNamespace(nodes=[node])
        try:
            _new().read(alone, owner, Knowledge(), "graph", "")
        except Exception:
            body = _held(node, owner)
            return (_unread(body.graph, body) if isinstance(body, fx.GraphModule) else None) or node
    return None


def _held(node: fx.Node, owner: Any) -> Any:
    """What a node holds: its metadata, or of an attribute the attribute itself."""
    recorded = node.meta.get("val", node.meta.get("example_value"))
    return attribute(owner, str(node.target)) if node.op == "get_attr" and recorded is None else recorded


def _indescribable(value: Any, depth: int = 100) -> str:
    """The tensor among the values that has no sizes, strides and storage, in words; nothing where all have them.
    Lists may hold themselves: so deep no reader looks."""
    if isinstance(value, (list, tuple)):
        return next(filter(None, (_indescribable(one, depth - 1) for one in value if depth)), "")
    if not isinstance(value, torch.Tensor):
        return ""
    if value.is_nested:
        return "a nested tensor"
    if value.layout is not torch.strided:
        return f"a tensor of layout {value.layout}"
    try:
        value.untyped_storage().nbytes(), value.shape, value.stride(), value.storage_offset()
    except Exception:
        return f"a {type(value).__name__} without sizes, strides and storage"
    return ""
