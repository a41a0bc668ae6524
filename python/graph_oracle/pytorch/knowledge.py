"""What the reader of graphs asks about torch (python/src/fx.rs): names, facts, sizes, process groups, ordering edges.

The reader walks a `torch.fx.Graph` itself; what is seldom, or takes knowledge of torch, it asks here. One object serves
the graphs of one pair: it remembers the symbols that it met.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import weakref
from functools import cache
from typing import Any

import torch
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

from .._oracle import CannotJudge
from . import ordering, targets
from .document import groups_named, symbol_facts, symbol_names
from .export import CONSTANTS, guards_of


@cache
def _facts(target: Any) -> str:
    return json.dumps(targets.facts(target), separators=(",", ":"))


# Which function: by the order in which they were met, as long as they live.
_FUNCTIONS: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_COUNT = itertools.count(1)
# Elements of an attribute whose values are looked at: of more, the values count as those of its name.
_LOOKED_AT = 1 << 24


def _which(target: Any) -> str:
    """What tells a function from another of its name: nothing where its module has it under that name."""
    if isinstance(target, (torch._ops.OpOverload, torch._ops.HigherOrderOperator, str)):
        return ""
    module = sys.modules.get(getattr(target, "__module__", None) or "")
    if module is None or getattr(module, getattr(target, "__name__", ""), None) is target:
        return ""
    try:
        return str(_FUNCTIONS.setdefault(target, next(_COUNT)))
    except TypeError:
        return str(id(target))


def _has_values(value: torch.Tensor) -> bool:
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided:
        return False
    return value.device.type != "meta" and not value.is_quantized and 0 < value.numel() <= _LOOKED_AT


class Knowledge:
    """Answers for the graphs of one pair."""

    def __init__(self) -> None:
        self._symbols: dict[str, tuple[str, int | None, str, str, bool]] = {}
        self._shapes: Any = None

    def target(self, target: Any) -> tuple[str, str, bool, str]:
        """The name of a target, its schema facts as JSON, whether a call of it may stand for another operator, and
        what tells it from another function of its name."""
        return targets.name_of(target), _facts(target), ordering.is_carrying(target), _which(target)

    def mark(self, value: Any) -> str:
        """What tells an attribute from another of its name: a digest of its values, empty where they are not there."""
        if not isinstance(value, torch.Tensor) or not _has_values(value):
            return ""
        # A compiler that is at work takes every tensor for a fake one.
        with _disable_current_modes():
            plain = value.detach().cpu().contiguous().reshape(-1)
            return hashlib.sha1(plain.view(torch.uint8).numpy().tobytes()).hexdigest()

    def carried(self, node: fx.Node) -> ordering.Carried | None:
        """The operator that a call stands for, with what must come before it."""
        return ordering.carried(node)

    def is_body(self, node: fx.Node) -> bool:
        """Whether a node is but the sub-graph of such a call."""
        return ordering.is_body(node)

    def attribute(self, owner: Any, node: fx.Node) -> Any:
        """The attribute that a node gets."""
        return targets.attribute(owner, str(node.target))

    def body(self, value: Any) -> fx.Graph | None:
        """The graph of an attribute that is a module."""
        return value.graph if isinstance(value, fx.GraphModule) else None

    def constant(self, value: Any) -> tuple[str, str, int | None]:
        """An argument that only torch knows: its kind, its text, and the hint of a symbolic number."""
        for kind, name in CONSTANTS:
            if isinstance(value, kind):
                return name, str(value).removeprefix("torch."), None
        if isinstance(value, torch.SymInt):
            return self.size(value)
        if isinstance(value, int):
            return "int", "", int(value)
        if callable(value):
            return "fn", targets.name_of(value), None
        raise CannotJudge(f"an argument is a {type(value).__name__}, which has no form in the oracle's graphs")

    def size(self, value: Any) -> tuple[str, str, int | None]:
        """A size: `("int", "", n)`, or `("sym", expression, hint)`."""
        if not isinstance(value, torch.SymInt):
            return "int", "", int(value)
        if not hasattr(value.node, "expr"):
            raise CannotJudge(f"{value} is a size of a nested tensor, which has no form in the oracle's graphs")
        if value.node.expr.is_Integer:
            return "int", "", int(value.node.expr)
        hint = value.node.hint
        return "sym", self._expression(value), hint if type(hint) is int else None

    def _expression(self, value: Any) -> str:
        """A symbolic value as text, its symbols noted."""
        self._shapes = value.node.shape_env
        for symbol, facts in symbol_facts(value):
            self._symbols.setdefault(symbol, facts)
        return str(value.node.expr.xreplace(symbol_names(value.node.shape_env)))

    def result(self, value: Any) -> tuple[str, str, int | None]:
        """A result that is no tensor."""
        if isinstance(value, torch.SymInt):
            return self.size(value)
        if isinstance(value, torch.SymBool):
            return "symbool", self._expression(value), None
        return "other", type(value).__name__, None

    def json(self, value: Any) -> str | None:
        """A tag as JSON; None for what has no such form."""
        try:
            return json.dumps(value, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError):
            return None

    def world(self, names: list[str]) -> tuple[int | None, list[tuple[str, int, int | None, list[list[int]]]]]:
        """How many ranks there are, and the process groups among the names, with their ranks."""
        if not torch.distributed.is_available() or not torch.distributed.is_initialized():
            return None, []
        groups = [(name, one["size"], one["rank"], one["ranks"]) for name, one in groups_named(names).items()]
        return torch.distributed.get_world_size(), groups

    def symbols(self) -> list[tuple[str, int | None, str, str, bool]]:
        """The symbols of all sizes that were asked about: name, hint, range, whether it is unbacked."""
        return list(self._symbols.values())

    def guards(self) -> list[str]:
        """What holds of these symbols."""
        return list(guards_of(self._shapes, symbol_names(self._shapes), self._symbols))
