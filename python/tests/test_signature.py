"""What callers see of a graph and its nodes do not say: defaults of inputs, and the pytree code."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import fx

from graph_oracle import CannotJudge, WrongPass, check_pair, checked, watch
from graph_oracle.pytorch.states import State

from . import hooked
from .test_watch import observed


def exported() -> fx.GraphModule:
    """relu(x) and x, returned by name."""

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return {"a": torch.relu(x), "b": x + 1}

    module: Any = torch.export.export(Model(), (torch.ones(4),)).module(check_guards=False)
    return module  # type: ignore[no-any-return]


def with_default(value: Any = 2.0) -> fx.GraphModule:
    module = hooked.module()
    with module.graph.inserting_before(hooked.calls(module.graph, torch.ops.aten.relu.default)[0]):
        y = module.graph.create_node("placeholder", "y", (value,))
    y.meta["val"] = torch.empty(4)
    return module


def other_default(graph: fx.Graph) -> None:
    next(node for node in graph.nodes if node.name == "y").args = (3.0,)


def no_default(graph: fx.Graph) -> None:
    next(node for node in graph.nodes if node.name == "y").args = ()


def other_structure(graph: fx.Graph) -> None:
    code: Any = graph._codegen
    _, out = torch.utils._pytree.tree_flatten({"a": 1, "c": 2})
    code.pytree_info = code.pytree_info._replace(out_spec=out)


def plain(graph: fx.Graph) -> None:
    graph.set_codegen(fx.graph.CodeGen())


CHANGES = [(with_default, other_default), (with_default, no_default), (exported, other_structure), (exported, plain)]


@pytest.mark.parametrize(("made", "change"), CHANGES)
def test_what_is_called_otherwise_is_not_called_right(
    made: Callable[[], fx.GraphModule], change: Callable[[fx.Graph], None]
) -> None:
    before, after = made(), made()
    assert check_pair(before, after) and check_pair(before, copy.deepcopy(before)), "nothing was changed"
    change(after.graph)
    said = "default of the input y" if made is with_default else "another structure"
    for first, second in ((before, after), (after, before)):
        with pytest.raises(CannotJudge, match=f"{said}.*how a graph is called is not judged"):
            check_pair(first, second)
    with pytest.raises(CannotJudge, match=said):
        check_pair(before, after.graph)
    with pytest.raises(CannotJudge, match=f"{change.__name__} cannot be judged: .*{said}"):
        checked(change)(made().graph)
    with watch(report=False) as seen:
        observed(change, made())
    assert not seen and [one.outcome for one in seen.passes] == ["not judged"] and said in seen.problems[0][1]


def test_a_wrong_pass_stays_wrong() -> None:
    def both(graph: fx.Graph) -> None:
        hooked.negated(graph)
        other_default(graph)

    with pytest.raises(WrongPass, match="rewrite/values"):
        checked(both)(with_default().graph)


@pytest.mark.parametrize("value", [float("nan"), (1, [2.0]), {"a": None}, "x"])
def test_equal_defaults_are_one(value: Any) -> None:
    assert check_pair(with_default(value), with_default(copy.deepcopy(value)))


def test_a_change_of_the_code_alone_is_a_change() -> None:
    module = exported()
    state = State(module)
    assert state.still(module)
    other_structure(module.graph)
    assert not state.still(module)
