"""A graph of torch.fx at one moment: what it was, to be judged against what a pass makes of it.

Passes change graphs in place, so the state before must be taken before. `State` holds two things: marks, by which it is
told at little cost whether anything changed since, and the graph as the oracle reads it. What cannot be read is not an
error here: `problem` says why, and it is told only where the pass changed something.

A state between two passes may be out of order (some leave that to a sort that follows). It is read as that sort would
leave it; `unrepaired` is then the graph as it stood.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import fx

from .. import judge
from .._oracle import CannotJudge, Graph
from .signature import tree_of
from .targets import attribute


def graph_of(given: fx.GraphModule | fx.Graph) -> fx.Graph:
    """The graph of a module, or the graph itself."""
    return given if isinstance(given, fx.Graph) else given.graph


class State:
    """`graph` as it was when the state was taken; None where it could not be read, and `problem` says why."""

    def __init__(self, given: fx.GraphModule | fx.Graph, kind: str = "forward") -> None:
        self.source = graph_of(given)
        self.marks = _marks(self.source)
        self.graph: Graph | None = None
        self.unrepaired: Graph | None = None
        self.problem = ""
        try:
            self._read(given, kind)
        except CannotJudge as error:
            self.problem = str(error)
        except Exception as error:  # torch's own, for graphs that are half made
            self.problem = f"{type(error).__name__}: {error}"

    def _read(self, given: fx.GraphModule | fx.Graph, kind: str) -> None:
        if in_order(self.source):
            self.graph = judge.graph(given, kind)
            return
        self.unrepaired = judge.graph(given, kind)
        with in_order_for_now(self.source):
            self.graph = judge.graph(given, kind)

    def known(self) -> Graph:
        """The graph. Raises CannotJudge if it could not be read."""
        if self.graph is None:
            raise CannotJudge(self.problem)
        return self.graph

    def same(self, other: State) -> bool:
        """Whether both are of one graph in which nothing changed in between."""
        return self.source is other.source and _equal(self.marks, other.marks)

    def still(self, given: fx.GraphModule | fx.Graph) -> bool:
        """Whether nothing changed in the graph since."""
        graph = graph_of(given)
        return graph is self.source and _equal(self.marks, _marks(graph))


def _marks(graph: fx.Graph) -> list[Any]:
    """What changes if the graph does, compared by identity: torch replaces arguments, it does not change them."""
    marks: list[Any] = [tree_of(graph)]
    owner = graph.owning_module
    for node in graph.nodes:
        marks += (node, node.target, node.args, node.kwargs, node.meta.get("val"))
        if node.op == "get_attr" and owner is not None:
            value = attribute(owner, str(node.target))
            marks.append(value)
            if isinstance(value, fx.GraphModule):
                marks += _marks(value.graph)
    return marks


def _equal(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other))


def in_order(graph: fx.Graph) -> bool:
    """Whether each node comes after those that it reads."""
    seen: set[fx.Node] = set()
    for node in graph.nodes:
        if not seen.issuperset(node.all_input_nodes):
            return False
        seen.add(node)
    return True


@contextmanager
def in_order_for_now(graph: fx.Graph) -> Iterator[None]:
    """The graph sorted as PyTorch does it, and put back afterwards."""
    from torch._inductor import pattern_matcher

    sort: Any = pattern_matcher.stable_topological_sort
    order = list(graph.nodes)
    try:
        getattr(sort, "__wrapped__", sort)(graph)
        yield
    finally:
        for node in order:
            graph._root.prepend(node)
