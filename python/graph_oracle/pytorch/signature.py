"""How a graph is called: what its callers see, and its nodes do not say.

That is the default of an input, and the order in which PyTorch's code of the graph takes values from what it is given
and puts them into what it returns (`_PyTreeCodeGen`, of torch.export). The judge knows of neither. A pass that changes
one is not called right here; nor is it found wrong, as who calls the graph is not known.
"""

from __future__ import annotations

from typing import Any

from torch import fx

from .._oracle import CannotJudge
from . import versions

_PYTREE: Any = versions.get("torch.fx.graph._PyTreeCodeGen")


class Signature:
    """What callers see of a graph as it is now."""

    def __init__(self, graph: fx.Graph) -> None:
        self.defaults = {str(node.target): node.args for node in graph.find_nodes(op="placeholder")}
        self.tree = tree_of(graph)

    def difference(self, after: Signature) -> str:
        """What is not as it was; nothing if all is. Of inputs that are not there after, the judge speaks."""
        for name, default in self.defaults.items():
            now = after.defaults.get(name, default)
            if not _alike(default, now):
                return f"the default of the input {name} is {_told(default)} before, and {_told(now)} after"
        if not _alike(self.tree, after.tree):
            return "the pytree code of the graph takes or returns values in another structure after than before"
        return ""

    def demand_same(self, after: Signature) -> None:
        """Raises CannotJudge if the graph after is called in another way."""
        found = self.difference(after)
        if found:
            raise CannotJudge(f"{found}, and how a graph is called is not judged")


def tree_of(graph: fx.Graph) -> Any:
    """The names and structures of what the code of a graph takes and returns; None where it takes and returns what the
    nodes say."""
    code = graph._codegen
    return code.pytree_info if isinstance(code, _PYTREE) else None


def _alike(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, float):
        return bool(one.hex() == other.hex())
    return bool(one == other)


def _told(default: tuple[Any, ...]) -> str:
    return repr(default[0]) if default else "none"
