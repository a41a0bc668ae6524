"""Graphs of torch.fx as graphs of the oracle's own: the reader (python/src/fx.rs) with what it asks about torch."""

from __future__ import annotations

import torch
from torch import fx

from .. import _oracle
from .knowledge import Knowledge


class Reader:
    """Reads graphs; what several of them share, such as fake tensors, is read once."""

    def __init__(self) -> None:
        self._reader = _oracle.Reader(fx.Node, torch.Tensor)
        # One for all: of what is not read again, nothing is asked again.
        self._knowledge = Knowledge()

    def read(self, given: fx.GraphModule | fx.Graph, kind: str = "forward", name: str = "graph") -> _oracle.Graph:
        """The graph of a GraphModule or Graph, as this rank sees it."""
        graph = given if isinstance(given, fx.Graph) else given.graph
        owner = graph.owning_module if isinstance(given, fx.Graph) else given
        return self._reader.read(graph, owner, self._knowledge, name, kind)
