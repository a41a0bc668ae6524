"""`watch` over the passes of running compilations."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import types
from typing import Any

import pytest
import torch
from torch import fx
from torch._inductor import config, custom_graph_pass
from torch.fx.passes.graph_transform_observer import GraphTransformObserver

import graph_oracle
from graph_oracle import CannotJudge, WrongPass
from graph_oracle.pytorch import versions
from graph_oracle.pytorch import watch as watching
from graph_oracle.pytorch.watch import watch

from . import hooked
from .hooked import Pass, copied, negated, nothing

# Not in every version of torch.
CustomPartitionerFn: Any = getattr(custom_graph_pass, "CustomPartitionerFn", object)
needs_partitioners = pytest.mark.skipif(CustomPartitionerFn is object, reason="this torch has no CustomPartitionerFn")

needs_bucketing = pytest.mark.skipif(
    not versions.have("torch._inductor.fx_passes.bucketing.bucket_all_gather"), reason="this torch has no bucketing"
)


def patched() -> list[Any]:
    """What a watch replaces."""
    names = ("__enter__", "__exit__", "apply_graph_pass", "apply_gm_pass")
    from torch._functorch import config as functorch
    from torch._inductor import comms, compile_fx, memory, pattern_matcher
    from torch._inductor.fx_passes import bucketing, post_grad

    return [
        *(vars(GraphTransformObserver)[name] for name in names),
        compile_fx.min_cut_rematerialization_partition,
        pattern_matcher.stable_topological_sort,
        post_grad.stable_topological_sort,
        bucketing.bucket_all_gather,
        memory.reorder_for_peak_memory,
        comms.sink_waits,
        comms.reorder_compute_and_comm_for_overlap,
        compile_fx.compile_fx,
        compile_fx.partition_fn,
        config.custom_partitioner_fn,
        functorch.enable_autograd_cache,
        config.fx_graph_cache,
    ]


def observed(function: Any, gm: Any, name: str = "mine", subsystem: str = "mine") -> None:
    GraphTransformObserver(gm, name, subsystem).apply_graph_pass(function)


@pytest.mark.skipif(versions.version() <= (2, 11), reason="a setting of this torch takes one pass, and no list of them")
def test_a_wrong_pass_of_a_compilation_is_named() -> None:
    passes = [Pass(nothing), negated, copied]
    with watch(report=False) as seen, config.patch(post_grad_custom_post_pass=passes), hooked.without_kernels():
        hooked.compiled()
    assert seen.wrong == ["post_grad_passes.post_grad_custom_post_pass: negated"]
    assert [verdict.violated for verdict in seen.violated] == [["rewrite/values"]]
    assert seen.problems == [], str(seen)
    outcomes = {one.name: one.outcome for one in seen.passes}
    assert outcomes["post_grad_passes.post_grad_custom_post_pass: Pass"] == "unchanged"
    assert outcomes["post_grad_passes.post_grad_custom_post_pass: copied"] == "unchanged", "no relu was left"
    assert outcomes["min_cut_rematerialization_partition"] == "sound"
    assert {"joint_graph_passes", "post_grad_passes", "pre_grad_passes"} <= {name.split(".")[0] for name in outcomes}
    assert "reorder_for_peak_memory" in outcomes
    assert not seen and all(one.seconds < 60 for one in seen.passes)
    with pytest.raises(WrongPass, match="negated is wrong"):
        seen.raise_if_wrong()
    assert "violated" in seen.table() and "1 of them wrong" in str(seen)


def test_nothing_right_is_convicted() -> None:
    def step(x: Any, w: Any) -> Any:
        y = torch.nn.functional.dropout(torch.nn.functional.softmax(x @ w, -1), 0.5)
        return torch.cat([y.view(-1), (x * 2 + 0).t().reshape(-1)]).sum()

    with watch(report=False) as seen, hooked.without_kernels():
        hooked.compiled(lambda x: step(x, x * 2))
    assert seen.violated == [] and seen.problems == [], str(seen)
    assert any(verdict.pass_kind == "rewrite" for verdict in seen.verdicts)
    seen.raise_if_wrong()


def test_the_record_of_a_view_is_not_that_of_a_sum() -> None:
    """docs/findings/remove-no-ops-writes-metadata-over-its-input, in a storage."""
    with watch(report=False) as seen, hooked.without_kernels():
        hooked.compiled(lambda x: (x.t() + 0).sin().sum())
    (wrong,) = seen.violated
    assert [finding.rule for finding in wrong.findings] == ["rewrite/metadata"], str(seen)
    assert wrong.subject == "by joint_graph_passes.constant_fold_uniform_value", str(seen)


def test_what_is_allowed_is_allowed_to_one_watch() -> None:
    def regrouped(graph: fx.Graph) -> None:
        first = hooked.calls(graph, torch.ops.aten.add.Tensor)[0]
        last = hooked.calls(graph, torch.ops.aten.add.Tensor)[1]
        (x, y), (_, z) = first.args, last.args
        first.args, last.args = (y, z), (x, first)

    def sums() -> fx.GraphModule:
        graph = fx.Graph()
        x, y, z = (graph.placeholder(name) for name in "xyz")
        add = torch.ops.aten.add.Tensor
        graph.output((graph.call_function(add, (graph.call_function(add, (x, y)), z)),))
        for node in graph.nodes:
            node.meta["val"] = torch.empty(4, device="meta")
        return fx.GraphModule(torch.nn.Module(), graph)

    with watch(report=False) as strict, watch(report=False, allow="reassociation") as loose:
        observed(regrouped, sums())
    assert [one.outcome for one in strict.passes] != ["sound"]
    assert [one.outcome for one in loose.passes] == ["sound"], str(loose)
    with pytest.raises(CannotJudge, match='nothing is called "everything"'):
        with watch(allow=["everything"]):
            pass


_SHARDED = """
import torch, graph_oracle
from torch.distributed.device_mesh import init_device_mesh
from tests import hooked

with graph_oracle.fake_world(4), graph_oracle.watch(report=False) as seen, hooked.without_kernels():
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    gather = torch.distributed._functional_collectives.all_gather_tensor_autograd
    hooked.compiled(lambda x: gather(x, 0, mesh.get_group("dp")).relu().sum())
assert seen.verdicts and not seen.problems and not seen.violated, str(seen)
"""


def test_meshes_are_read_while_a_compiler_is_at_work() -> None:
    # A process of its own: others have groups already.
    subprocess.run([sys.executable, "-c", _SHARDED], check=True, timeout=200)


def test_constants_and_effect_tokens_are_read_while_a_compiler_is_at_work() -> None:
    def step(x: Any) -> Any:
        return torch.linalg.inv(x * torch.tensor([1.0, 2.0, 4.0, 8.0]) + torch.eye(4)).sum()

    with watch(report=False) as seen, hooked.without_kernels():
        hooked.compiled(step)
    assert seen.verdicts and seen.problems == [] and seen.violated == [], str(seen)


def test_passes_are_picked_by_name() -> None:
    for patterns, names in (
        ("m*", ["mine.mine", "mine.mine_too"]),
        (["*.mine"], ["mine.mine"]),
        ("nothing_such", []),
        (["mine_too"], ["mine.mine_too"]),
    ):
        with watch(patterns, report=False) as seen:
            observed(copied, hooked.module())
            observed(copied, hooked.module(), "mine_too")
        assert [one.name for one in seen.passes] == names
    with watch(["nothing_such", "mine"], report=False) as seen:
        observed(copied, hooked.module(), "other")
    assert not seen and "none of those that ran was wanted (mine.other)" in str(seen)
    with pytest.raises(CannotJudge, match="none of those that ran was wanted"):
        seen.raise_if_wrong()
    with pytest.raises(CannotJudge, match="names of passes"):
        with watch([copied]):  # type: ignore[list-item]
            pass


def test_what_is_within_a_pass_is_part_of_it() -> None:
    def outer(graph: fx.Graph) -> None:
        observed(negated, graph.owning_module, "there")
        for node in hooked.calls(graph, torch.ops.aten.neg.default):
            node.target = torch.ops.aten.relu.default

    def marked(graph: fx.Graph) -> None:
        outer(graph)
        copied(graph)

    with watch(report=False) as seen:
        observed(marked, hooked.module(), "whole")
    assert [(one.name, one.outcome) for one in seen.passes] == [("mine.whole", "sound")]
    with watch("there", report=False) as seen:
        observed(marked, hooked.module(), "whole")
    assert [(one.name, one.outcome) for one in seen.passes] == [("mine.there", "violated")]


def test_what_cannot_be_read_is_told_and_only_if_it_changed() -> None:
    def other_method(graph: fx.Graph) -> None:
        next(node for node in graph.nodes if node.op == "call_method").target = "neg"

    gm = fx.symbolic_trace(lambda x: x.relu())
    with watch(report=False) as seen:
        observed(nothing, gm, "first")
        observed(other_method, gm, "second")
    assert [one.outcome for one in seen.passes] == ["unchanged", "not judged"]
    ((name, problem),) = seen.problems
    assert name == "mine.second" and "trace the model down" in problem
    assert not seen and seen.violated == []


@needs_bucketing
def test_everything_is_put_back() -> None:
    before = patched()
    with watch(report=False):
        assert all(a is not b for a, b in zip(before[:13], patched()[:13]))
    assert patched() == before
    with contextlib.suppress(KeyError), watch(report=False):
        raise KeyError
    assert patched() == before and watching._WATCHES == []

    def fails(graph: fx.Graph) -> None:
        raise KeyError("mine")

    with watch(report=False) as seen:
        for function in (fails, copied):
            with contextlib.suppress(KeyError):
                observed(function, hooked.module())
    assert [one.outcome for one in seen.passes] == ["sound"], "a pass that failed is none that was judged"


def test_a_module_that_is_imported_meanwhile_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._functorch import partitioners

    late: Any = types.ModuleType("torch._imported_late")
    before = partitioners.default_partition
    with watch(report=False):
        late.default_partition = partitioners.default_partition
        monkeypatch.setitem(sys.modules, late.__name__, late)
    assert late.default_partition is before


def test_what_was_seen_before_an_error_is_kept_and_printed(capsys: Any) -> None:
    def fails(graph: fx.Graph) -> None:
        negated(graph)
        raise KeyError("mine")

    before = patched()
    for error in (KeyError, KeyboardInterrupt, pytest.skip.Exception):
        with pytest.raises(error):
            with watch() as seen:
                observed(negated, hooked.module())
                with contextlib.suppress(KeyError):
                    observed(fails, hooked.module(), "fails")
                raise error("by itself")
        assert seen.wrong == ["mine.mine"], "a pass that failed is none that was judged"
        assert "mine.mine is wrong: rewrite/values" in capsys.readouterr().err
        assert patched() == before and watching._WATCHES == []


@needs_bucketing
def test_watches_within_one_another_and_in_threads() -> None:
    before = patched()
    first, second = watch(report=False), watch("no*", report=False)
    one = first.__enter__()
    two = second.__enter__()
    observed(negated, hooked.module(), "north")
    first.__exit__(None, None, None)
    observed(negated, hooked.module(), "north")
    observed(negated, hooked.module(), "south")
    second.__exit__(None, None, None)
    observed(negated, hooked.module(), "north")
    assert (one.wrong, two.wrong) == (["mine.north"], ["mine.north"] * 2)
    assert patched() == before

    def work(number: int) -> None:
        for turn in range(5):
            with watch(f"thread_{number}", report=False) as seen:
                observed(negated if number % 2 else copied, hooked.module(), f"thread_{number}")
            found[number, turn] = [one.outcome for one in seen.passes]

    found: dict[tuple[int, int], list[str]] = {}
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert all(outcome == ["violated" if number % 2 else "sound"] for (number, _), outcome in found.items()), found
    assert patched() == before


class Partitioner(CustomPartitionerFn):
    def __call__(self, gm: fx.GraphModule, joint_inputs: Any, **kwargs: Any) -> Any:
        from torch._functorch.partitioners import default_partition

        forward, backward = default_partition(
            gm,
            joint_inputs,
            **{
                key: value
                for key, value in kwargs.items()
                if key in ("num_fwd_outputs", "static_lifetime_input_indices")
            },
        )
        negated(forward.graph)
        return forward, backward

    def uuid(self) -> Any:
        return "wrong"


@needs_partitioners
def test_a_custom_partitioner_is_named() -> None:
    with config.patch(custom_partitioner_fn=Partitioner()), watch(report=False) as seen, hooked.without_kernels():
        hooked.compiled()
    assert "Partitioner" in seen.wrong
    assert {verdict.pass_kind for verdict in seen.violated} == {"partition"}


def reversed_nodes(nodes: Any) -> Any:
    return list(reversed(nodes))


@pytest.mark.skipif(versions.version() <= (2, 9), reason="the scheduler's passes of this torch want a process group")
def test_passes_on_scheduler_nodes_are_named() -> None:
    def step(x: Any, w: Any) -> Any:
        return torch.mm(torch.relu(torch.mm(x, w)), w)

    settings = {
        "reorder_for_compute_comm_overlap": True,
        "reorder_for_compute_comm_overlap_passes": ["sink_waits", reversed_nodes, "raise_comms"],
    }
    with config.patch(settings), watch(report=False) as seen, hooked.without_kernels():
        hooked.compiled(lambda x: step(x, x * 2))
    assert seen.wrong == ["reversed_nodes"], str(seen)
    assert {"sink_waits", "raise_comms"} <= {one.name for one in seen.passes}
    assert config.reorder_for_compute_comm_overlap_passes != settings["reorder_for_compute_comm_overlap_passes"]


def test_the_report(capsys: Any) -> None:
    with graph_oracle.watch():
        pass
    assert "watched 0 passes" in (told := capsys.readouterr().err) and "nothing was compiled meanwhile" in told
    with watch():
        observed(negated, hooked.module())
    told = capsys.readouterr().err
    assert "watched 1 passes, 1 of them wrong" in told and "mine.mine is wrong: rewrite/values" in told
