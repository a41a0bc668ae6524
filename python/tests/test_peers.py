"""Passes of PyTorch as functions: each way of calling one does its work on a small graph, and puts settings back."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
import torch

from graph_oracle.pytorch import errors, function, groups, peers, rebuild

from . import graphs

REF = graphs.ref


def unary(name: str, source: str, target: str, *more: Any, shape: list[int], **out: Any) -> dict[str, Any]:
    entry: dict[str, Any] = graphs.call(name, f"aten.{target}", [REF(source), *more], graphs.tensor(shape, **out))
    return entry


def reduced(name: str, source: str, shape: list[int]) -> list[dict[str, Any]]:
    """A gradient as DDP reduces it: divided, summed over the ranks, waited for."""
    target = "_c10d_functional.all_reduce.default"
    return [
        unary(f"{name}_div", source, "div.Tensor", 2, shape=shape),
        graphs.call(f"{name}_sum", target, [REF(f"{name}_div"), "sum", "dp"], graphs.tensor(shape)),
        graphs.wait(name, f"{name}_sum", shape),
    ]


# By pass, a graph on which it has work to do. One for each way of calling passes.
WORK: dict[str, list[dict[str, Any]]] = {
    # on_graph, and into_module
    "eliminate_dead_code": [
        graphs.placeholder("x", [4]),
        unary("dead", "x", "relu.default", shape=[4]),
        unary("r", "x", "neg.default", shape=[4]),
        graphs.output("r"),
    ],
    "fx_graph_cse": [
        graphs.placeholder("x", [4]),
        unary("a", "x", "relu.default", shape=[4]),
        unary("b", "x", "relu.default", shape=[4]),
        graphs.call("r", "aten.add.Tensor", [REF("a"), REF("b")], graphs.tensor([4])),
        graphs.output("r"),
    ],
    # on_module
    "view_to_reshape": [
        graphs.placeholder("x", [4]),
        unary("v", "x", "view.default", [2, 2], shape=[2, 2]),
        unary("r", "v", "neg.default", shape=[2, 2]),
        graphs.output("r"),
    ],
    "constant_fold_uniform_value": [
        graphs.placeholder("x", [4]),
        graphs.call("one", "aten.full.default", [[4], 1.0], graphs.tensor([4]), kwargs={"dtype": {"dtype": "float32"}}),
        graphs.call("m", "aten.mul.Tensor", [REF("x"), REF("one")], graphs.tensor([4])),
        unary("r", "m", "neg.default", shape=[4]),
        graphs.output("r"),
    ],
    # patterns_of_joint_graph
    "early_patterns": [
        graphs.placeholder("x", [2, 3]),
        unary("p", "x", "permute.default", [1, 0], shape=[3, 2], stride=[1, 3]),
        unary("q", "p", "permute.default", [1, 0], shape=[2, 3]),
        unary("r", "q", "neg.default", shape=[2, 3]),
        graphs.output("r"),
    ],
    # of_post_grad
    "remove_noop_ops": [
        graphs.placeholder("x", [4]),
        unary("c", "x", "clone.default", shape=[4]),
        unary("r", "c", "neg.default", shape=[4]),
        graphs.output("r"),
    ],
    # patterns_of_post_grad
    "post_grad_pass_pattern_2": [
        graphs.placeholder("b", [3]),
        graphs.placeholder("x", [2, 4]),
        graphs.placeholder("y", [4, 3]),
        graphs.call("m", "aten.mm.default", [REF("x"), REF("y")], graphs.tensor([2, 3])),
        graphs.call("a", "aten.add.Tensor", [REF("m"), REF("b")], graphs.tensor([2, 3])),
        graphs.output("a"),
    ],
    # fused_by_group
    "group_batch_fusion_passes": [
        graphs.placeholder("x", [2, 3]),
        graphs.placeholder("y", [2, 3]),
        unary("a", "x", "tanh.default", shape=[2, 3]),
        unary("b", "y", "tanh.default", shape=[2, 3]),
        graphs.call("r", "aten.mul.Tensor", [REF("a"), REF("b")], graphs.tensor([2, 3])),
        graphs.output("r"),
    ],
    # with_updater
    "reinplace_inplaceable_ops": [
        graphs.placeholder("x", [4]),
        graphs.placeholder("i", [2], dtype="int64"),
        graphs.placeholder("v", [2]),
        unary("c", "x", "neg.default", shape=[4]),
        graphs.call("r", "aten.index_put.default", [REF("c"), [REF("i")], REF("v")], graphs.tensor([4])),
        graphs.output("r"),
    ],
    # sorted_after
    "bucket_all_gather": [
        graphs.placeholder("x", [4]),
        graphs.placeholder("y", [4]),
        graphs.gather("gx", "x", 2, "dp", [8]),
        graphs.gather("gy", "y", 2, "dp", [8]),
        graphs.wait("wx", "gx", [8]),
        graphs.wait("wy", "gy", [8]),
        graphs.output("wx", "wy"),
    ],
    # fused_for_ddp
    "fuse_ddp_communication": [
        graphs.placeholder("x", [4]),
        graphs.placeholder("y", [4]),
        *reduced("a", "x", [4]),
        *reduced("b", "y", [4]),
        graphs.output("a", "b"),
    ],
    # with fallbacks in place of symmetric memory
    "replace_collectives_with_low_contention": [
        graphs.placeholder("x", [4]),
        graphs.gather("g", "x", 2, "dp", [8]),
        graphs.wait("w", "g", [8]),
        graphs.output("w"),
    ],
    # in_training
    "post_grad_passes": [
        graphs.placeholder("x", [4]),
        unary("v", "x", "view.default", [2, 2], shape=[2, 2]),
        unary("c", "v", "clone.default", shape=[2, 2]),
        unary("r", "c", "neg.default", shape=[2, 2]),
        graphs.output("r"),
    ],
}


def rebuilt(nodes: list[dict[str, Any]]) -> Any:
    return rebuild.rebuild(graphs.document(copy.deepcopy(nodes)), 0)


def run(name: str, nodes: list[dict[str, Any]]) -> tuple[str, str]:
    """The graph before and after a pass, which is found and called as `--python` does."""
    given = rebuilt(nodes)
    before = str(given.graph)
    loaded = function.load(f"graph_oracle.pytorch.peers:{name}")
    try:
        with torch._inductor.virtualized.V.set_fake_mode(given.mode):
            after = function.changed(given, loaded.call(given.module))
        return before, str(after)
    finally:
        groups.leave()


def settings() -> dict[str, Any]:
    return {key: value for key, value in torch._inductor.config.get_config_copy().items() if not callable(value)}


@pytest.mark.skipif(torch.__version__ < "2.15", reason="the passes of this torch are called in another way")
@pytest.mark.parametrize("name", WORK)
def test_a_pass_does_its_work_and_puts_settings_back(name: str) -> None:
    before = settings()
    old, new = run(name, WORK[name])
    assert old != new
    assert settings() == before


@pytest.mark.skipif(torch.__version__ < "2.15", reason="the passes of this torch are called in another way")
def test_passes_run_in_turn_on_what_the_ones_before_leave() -> None:
    nodes = WORK["fx_graph_cse"]
    _, merged = run("fx_graph_cse", nodes)
    assert run("eliminate_dead_code+fx_graph_cse+view_to_reshape", nodes) == run("fx_graph_cse", nodes)
    assert run("eliminate_dead_code+view_to_reshape", nodes)[1] != merged
    with pytest.raises(function.BadFunction, match="has no function eliminate_dead_code[+]nothing"):
        function.load("graph_oracle.pytorch.peers:eliminate_dead_code+nothing")


def test_a_node_called_none_is_an_input_of_a_function() -> None:
    given = rebuilt([graphs.placeholder("None", [4]), unary("r", "None", "neg.default", shape=[4]), graphs.output("r")])
    given.module.recompile()
    assert "def forward(self, None_" in given.module.code
    assert [entry["name"] for entry in given.export()["nodes"]] == ["None", "r", "output"]


def test_settings_are_put_back_if_the_pass_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(function: Any, gm: Any) -> None:
        assert torch._inductor.config.b2b_gemm_pass
        raise ValueError("no")

    peer = peers.Peer("torch.fx.Graph.eliminate_dead_code", failing, {"b2b_gemm_pass": True})
    monkeypatch.setitem(peers.PEERS, "failing", peer)
    before = settings()
    with pytest.raises(ValueError, match="^no$"):
        run("failing", WORK["fx_graph_cse"])
    assert settings() == before


@pytest.mark.parametrize("name", peers.PEERS)
def test_each_pass_is_there_and_a_function_can_be_loaded(name: str) -> None:
    loaded = function.load(f"graph_oracle.pytorch.peers:{name}")
    assert not loaded.takes_graph and not loaded.cuts
    with contextlib.suppress(errors.Refused) if torch.__version__ < "2.15" else contextlib.nullcontext():
        assert peers.found(peers.PEERS[name].path) is not None


def test_a_graph_that_writes_is_refused() -> None:
    nodes = [
        graphs.placeholder("x", [4]),
        unary("c", "x", "neg.default", shape=[4]),
        unary("r", "c", "relu_.default", shape=[4]),
        unary("s", "r", "neg.default", shape=[4]),
        graphs.output("s"),
    ]
    with pytest.raises(errors.Refused, match="aten::relu_ writes in place"):
        run("remove_noop_ops", nodes)


def test_unknown_passes_are_named() -> None:
    with pytest.raises(function.BadFunction, match="has no function nothing"):
        function.load("graph_oracle.pytorch.peers:nothing")
    with pytest.raises(errors.Refused, match="this torch has no torch.fx.nothing"):
        peers.found("torch.fx.nothing")
