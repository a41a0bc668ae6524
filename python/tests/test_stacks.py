"""`checked_passes` on the passes of other stacks.

What is real is taken from the folders of GRAPH_ORACLE_STACKS (unpacked wheels of torchtitan and vLLM, a source tree of
DeepSpeed, and what they import), which nothing else needs. Without them, the tests of the interfaces as the sources
state them still run.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import fx
from torch._inductor.custom_graph_pass import CustomGraphPass

from graph_oracle import CannotJudge, WrongPass, checked_passes

from . import hooked
from .hooked import Pass, copied, negated, nothing


@pytest.fixture
def real() -> Iterator[Any]:
    """Imports a module of a stack; skips where it is not there."""
    folders = [folder for folder in os.environ.get("GRAPH_ORACLE_STACKS", "").split(":") if folder]
    sys.path[:0] = folders

    def module(name: str) -> Any:
        try:
            return importlib.import_module(name)
        except ImportError as error:
            pytest.skip(f"{name} is not at hand (set GRAPH_ORACLE_STACKS): {error}")

    yield module
    for folder in folders:
        sys.path.remove(folder)


def titan(function: Any) -> Any:
    """A pass as torchtitan has them."""

    def ran(gm: fx.GraphModule, example_inputs: Any, *, flag: bool = False) -> fx.GraphModule:
        function(gm.graph)
        return gm

    ran.__name__ = function.__name__
    return functools.partial(ran, flag=True)


def applied(gm: Any, passes: list[Any]) -> Any:
    """apply_graph_passes of torchtitan 0.3.0, experiments/graph_trainer/passes.py: its loop, and how it names a
    pass."""
    for one in passes:
        assert one.func.__name__ if isinstance(one, functools.partial) else one.__name__
        gm = one(gm, [])
        assert isinstance(gm, fx.GraphModule)
    return gm


def test_a_list_as_torchtitan_has_it() -> None:
    passes = checked_passes([titan(copied), titan(nothing)])
    applied(hooked.module(), passes)
    assert passes[0].verdicts[0] and passes[1].unchanged == 1
    with pytest.raises(WrongPass, match="by negated is wrong: rewrite/values"):
        applied(hooked.module(), checked_passes([titan(copied), titan(negated)]))


def test_real_passes_of_torchtitan(real: Any) -> None:
    module = real("torchtitan.experiments.graph_trainer.remove_noop_passes")
    from torch.fx.experimental.proxy_tensor import make_fx

    def step(x: Any) -> Any:
        return torch.relu(x.detach().view(4, 4).t().t()[0:4].view(16)).view(4, 4)

    gm = make_fx(step, tracing_mode="fake")(torch.randn(4, 4))
    passes = checked_passes(
        [
            module.remove_detach_pass,
            module.remove_identity_view_pass,
            module.remove_b2b_transpose_pass,
            module.remove_identity_slice_pass,
            module.canonicalize_graph_pass,
            module.eliminate_dead_code_pass,
        ]
    )
    count = len(gm.graph.nodes)
    applied(gm, passes)
    assert len(gm.graph.nodes) < count
    assert sum(len(one.verdicts) for one in passes) >= 2
    assert all(verdict for one in passes for verdict in one.verdicts)


def deep(function: Any) -> Any:
    """A pass as DeepCompile has them (deepspeed 0.19.8, compile/backend.py): it may return None for nothing done."""

    def ran(
        gm: Any, graph_id: int, graph_order: Any, profiling: Any, inputs: Any, budget: float, manager: Any, bwd: bool
    ) -> Any:
        if function is nothing:
            return None
        function(gm.graph)
        return gm

    ran.__name__ = function.__name__
    return ran


def test_a_schedule_and_a_registry_as_deepspeed_has_them() -> None:
    schedule = checked_passes([(0, [deep(copied)]), (5, [deep(copied), deep(nothing)])])
    assert [step for step, _ in schedule] == [0, 5]
    rest: tuple[Any, ...] = (0, [], {}, lambda: (), 0.0, {}, False)
    for _, passes in schedule:
        for one in passes:
            one(hooked.module(), *rest)
    assert schedule[1][1][1].unchanged == 1
    registry = checked_passes({"z3": deep(negated)})
    with pytest.raises(WrongPass, match="by negated"):
        registry["z3"](hooked.module(), *rest)


def test_the_real_registry_of_deepspeed(real: Any) -> None:
    backend = real("deepspeed.compile.backend")
    backend.register_compile_pass("graph_oracle_test", deep(negated))
    wrapped = checked_passes(backend.opt_passes)
    assert set(wrapped) == set(backend.opt_passes)
    with pytest.raises(WrongPass, match="by negated"):
        wrapped["graph_oracle_test"](hooked.module(), 0, [], {}, lambda: (), 0.0, {}, False)
    del backend.opt_passes["graph_oracle_test"]


class Manager(CustomGraphPass):
    """PostGradPassManager of vLLM 0.33.0, compilation/passes/pass_manager.py: what it holds, and in which order it
    runs."""

    def __init__(self, passes: list[Any], last: Any) -> None:
        self.passes, self.fix_functionalization, self.pass_config = passes, last, object()

    def __call__(self, graph: fx.Graph) -> None:
        for one in [*self.passes, self.fix_functionalization]:
            one(graph)

    def uuid(self) -> Any:
        return "/".join(one.uuid() for one in [*self.passes, self.fix_functionalization])


def test_a_manager_as_vllm_has_it() -> None:
    manager = Manager([Pass(copied)], Pass(nothing))
    before = manager.uuid()
    assert checked_passes(manager) is manager
    manager(hooked.module().graph)
    assert manager.passes[0].verdicts[0] and manager.fix_functionalization.unchanged == 1
    assert manager.uuid() == before
    checked_passes(manager)
    assert type(manager.passes[0].wrapped) is Pass, "not wrapped twice"
    with pytest.raises(WrongPass, match="by Pass"):
        checked_passes(Manager([], Pass(negated)))(hooked.module().graph)


def test_real_passes_of_vllm(real: Any) -> None:
    module = real("vllm.compilation.passes.inductor_pass")
    right, wrong = checked_passes([module.CallableInductorPass(copied), module.CallableInductorPass(negated)])
    # The real manager takes passes of its class only.
    assert isinstance(right, module.InductorPass) and right.uuid() == module.InductorPass.hash_source(copied)
    assert right.is_applicable_for_range(None)
    right(hooked.module().graph)
    assert right.verdicts[0]
    with pytest.raises(WrongPass, match="rewrite/values"):
        wrong(hooked.module().graph)


@pytest.mark.parametrize("given", ["sink_waits", ["z3"], 3])
def test_what_is_no_list_of_passes(given: Any) -> None:
    with pytest.raises(CannotJudge, match="checked_passes takes"):
        checked_passes(given)
