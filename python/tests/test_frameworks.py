"""Passes of other frameworks as functions: each that can run here does its work on a small graph."""

from __future__ import annotations

import copy
import importlib.util
from typing import Any

import pytest
import torch

from graph_oracle.pytorch import errors, frameworks, function, groups, rebuild
from graph_oracle.pytorch.frameworks.called import Cut

from . import graphs

REF = graphs.ref


def unary(name: str, source: str, target: str, *more: Any, shape: list[int], **out: Any) -> dict[str, Any]:
    entry: dict[str, Any] = graphs.call(name, f"aten.{target}", [REF(source), *more], graphs.tensor(shape, **out))
    return entry


def chain(first: str, last: str, count: int) -> list[dict[str, Any]]:
    """Nodes one after the other, the last of which is called `last`."""
    names = [f"{last}_{index}" for index in range(count - 1)] + [last]
    return [unary(name, source, "neg.default", shape=[4]) for source, name in zip([first, *names], names, strict=False)]


# A forward of layers.0, layers.1 and lm_head, and a backward, whose end reads what each layer made.
MODEL = [
    graphs.placeholder("x", [4]),
    unary("a", "x", "relu.default", shape=[4]),
    unary("h", "a", "relu.default", shape=[4]),
    *chain("h", "b", 3),
    *chain("b", "c", 3),
    graphs.call("d", "aten.mul.Tensor", [REF("c"), REF("h")], graphs.tensor([4])),
    graphs.call("e", "aten.mul.Tensor", [REF("d"), REF("a")], graphs.tensor([4])),
    graphs.output("b", "e"),
]
# A parameter that is gathered twice.
GATHERED = [
    graphs.placeholder("p", [4]),
    graphs.placeholder("x", [8]),
    graphs.gather("g0", "p", 2, "dp", [8]),
    graphs.wait("w0", "g0", [8]),
    graphs.call("a", "aten.mul.Tensor", [REF("w0"), REF("x")], graphs.tensor([8])),
    graphs.gather("g1", "p", 2, "dp", [8]),
    graphs.wait("w1", "g1", [8]),
    graphs.call("r", "aten.add.Tensor", [REF("a"), REF("w1")], graphs.tensor([8])),
    graphs.output("r"),
]
DENSE = [
    graphs.placeholder("w", [4]),
    graphs.placeholder("x", [4]),
    graphs.call("m", "aten.mul.Tensor", [REF("x"), REF("w")], graphs.tensor([4])),
    unary("s", "m", "sin.default", shape=[4]),
    unary("r", "s", "neg.default", shape=[4]),
    graphs.output("s", "r"),
]
# By pass, a graph on which it has work to do.
WORK: dict[str, list[dict[str, Any]]] = {
    "titan_eliminate_dead_code": [
        graphs.placeholder("x", [4]),
        unary("dead", "x", "relu.default", shape=[4]),
        unary("r", "x", "neg.default", shape=[4]),
        graphs.output("r"),
    ],
    "titan_canonicalize_graph": [
        graphs.placeholder("x", [4]),
        unary("v", "x", "view.default", [4], shape=[4]),
        unary("r", "v", "neg.default", shape=[4]),
        graphs.output("r"),
    ],
    "titan_deduplicate_fsdp_unshard_chains": GATHERED,
    "titan_selective_activation_remat": MODEL,
    "titan_cpu_offload": MODEL,
    "deepspeed_zero3_gather": DENSE,
    "deepspeed_zero3_schedule": DENSE,
    "deepspeed_zero3_prefetch": DENSE,
    "deepspeed_zero1_reduce": DENSE,
    "deepspeed_offload_activation": DENSE,
    "deepspeed_reload_activation": DENSE,
}


def framework_of(name: str) -> str:
    return {"titan": "torchtitan"}.get(name.partition("_")[0], name.partition("_")[0])


def needs(name: str) -> None:
    if importlib.util.find_spec(framework_of(name)) is None:
        pytest.skip(f"{framework_of(name)} is not installed")


def rebuilt(nodes: list[dict[str, Any]]) -> Any:
    return rebuild.rebuild(graphs.document(copy.deepcopy(nodes)), 0)


def run(name: str, nodes: list[dict[str, Any]]) -> tuple[Any, Any]:
    """The graph before, as text, and after a pass, which is found and called as `--python` does."""
    given = rebuilt(nodes)
    before = str(given.graph)
    loaded = function.load(f"graph_oracle.pytorch.frameworks:{name}")
    try:
        with torch._inductor.virtualized.V.set_fake_mode(given.mode):
            return before, function.changed(given, loaded.call(given.module))
    finally:
        groups.leave()


@pytest.mark.parametrize("name", WORK)
def test_a_pass_does_its_work_in_operators_that_the_judge_knows(name: str) -> None:
    needs(name)
    try:
        before, after = run(name, WORK[name])
    except errors.Refused as refused:
        pytest.skip(refused.reason)
    if name not in ("deepspeed_zero1_reduce",):
        assert before != str(after)
    targets = [str(node.target) for node in after.nodes if node.op == "call_function"]
    assert not [target for target in targets if target.startswith(("ao.", "dc."))]
    after.lint()


@pytest.mark.parametrize("name", frameworks.PASSES)
def test_a_missing_framework_is_refused(name: str) -> None:
    if importlib.util.find_spec(framework_of(name)) is not None:
        pytest.skip(f"{framework_of(name)} is installed")
    nodes = graphs.joint()["nodes"] if isinstance(frameworks.PASSES[name], Cut) else DENSE
    given = rebuilt(nodes)
    try:
        with pytest.raises(errors.Refused, match=f"{framework_of(name)}.* cannot be imported"):
            if isinstance(frameworks.PASSES[name], Cut):
                frameworks.PASSES[name](given.module, (), num_fwd_outputs=1)
            else:
                frameworks.PASSES[name](given.module)
    finally:
        groups.leave()


@pytest.mark.parametrize("name", frameworks.PASSES)
def test_a_function_can_be_loaded(name: str) -> None:
    loaded = function.load(f"graph_oracle.pytorch.frameworks:{name}")
    assert not loaded.takes_graph
    assert loaded.cuts == isinstance(frameworks.PASSES[name], Cut)


def test_a_parameter_is_overwritten_where_it_is_given_back() -> None:
    needs("deepspeed")
    _, after = run("deepspeed_zero3_gather", DENSE)
    names = [str(node.target) for node in after.nodes if node.op == "call_function"]
    assert names.count("aten.fill_.Scalar") == 2
    assert names.index("aten.mul.Tensor") < names.index("aten.fill_.Scalar")


def test_unknown_passes_are_named() -> None:
    with pytest.raises(function.BadFunction, match="has no function nothing"):
        function.load("graph_oracle.pytorch.frameworks:nothing")
