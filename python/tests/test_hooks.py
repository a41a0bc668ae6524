"""`checked`: a pass that is judged wherever it runs."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import fx
from torch._dynamo.exc import BackendCompilerFailed
from torch._inductor import config, custom_graph_pass
from torch._inductor.custom_graph_pass import CustomGraphModulePass, CustomGraphPass
from torch.fx.passes import pass_manager as old_manager
from torch.fx.passes.infra import pass_manager
from torch.fx.passes.infra.pass_base import PassResult

import graph_oracle
from graph_oracle import CannotJudge, WrongPass, checked, pass_check
from graph_oracle.pytorch import versions

from . import hooked
from .hooked import Pass, copied, negated, nothing

# Not in every version of torch.
CustomPartitionerFn: Any = getattr(custom_graph_pass, "CustomPartitionerFn", object)
CustomInferenceAwareGraphPass: Any = getattr(custom_graph_pass, "CustomInferenceAwareGraphPass", None)
needs_partitioners = pytest.mark.skipif(CustomPartitionerFn is object, reason="this torch has no CustomPartitionerFn")
needs_aware = pytest.mark.skipif(
    CustomInferenceAwareGraphPass is None, reason="this torch has no CustomInferenceAwareGraphPass"
)
HOOKS = ("joint_custom_pre_pass", "joint_custom_post_pass", "post_grad_custom_pre_pass", "post_grad_custom_post_pass")


# Called by hand.


@pytest.mark.parametrize("given", [lambda m: m, lambda m: m.graph], ids=["module", "graph"])
def test_of_what_it_is_given(given: Any) -> None:
    def on(function: Any) -> Any:
        return lambda one: function(one if isinstance(one, fx.Graph) else one.graph)

    right, same = checked(on(copied)), checked(on(nothing))
    right(given(hooked.module()))
    same(given(hooked.module()))
    assert [bool(verdict) for verdict in right.verdicts] == [True]
    assert (same.verdicts, same.unchanged) == ([], 1)
    with pytest.raises(WrongPass) as caught:
        checked(on(negated), name="my_pass")(given(hooked.module()))
    assert caught.value.verdict.violated == ["rewrite/values"]
    assert "by my_pass" in str(caught.value)


def test_a_pass_may_return_another_graph_and_take_more() -> None:
    def other(gm: fx.GraphModule, example_inputs: Any, *, wrong: bool) -> fx.GraphModule:
        made = copy.deepcopy(gm)
        (negated if wrong else copied)(made.graph)
        return made

    judged = checked(other, on_wrong="collect")
    gm = hooked.module()
    assert judged(gm, (torch.empty(4),), wrong=False) is not gm
    judged(gm, (torch.empty(4),), wrong=True)
    assert [verdict.verdict for verdict in judged.verdicts] == ["sound", "violated"]


def test_what_a_pass_leaves_out_of_order_is_judged_as_sorted() -> None:
    def reversed_order(graph: fx.Graph) -> None:
        (relu,) = hooked.calls(graph, torch.ops.aten.relu.default)
        (add,) = hooked.calls(graph, torch.ops.aten.add.Tensor)
        relu.prepend(add)

    judged, gm = checked(reversed_order), hooked.module()
    judged(gm.graph)
    assert judged.verdicts[0]
    assert [node.name for node in gm.graph.nodes] == ["x", "add_tensor", "relu_default", "output"], "it is put back"


def test_options_and_kinds_are_those_of_check_pair() -> None:
    with pytest.raises(CannotJudge, match="no kind of pass 'rewriting'"):
        checked(nothing, kind="rewriting")
    with pytest.raises(CannotJudge, match="collect"):
        checked(nothing, on_wrong="ignore")
    with pytest.raises(CannotJudge, match="nonsense"):
        checked(copied, nonsense=1)(hooked.module().graph)


def careless(graph: fx.Graph) -> None:
    """Right, but for the metadata of the copy: that says that it lies where the original does."""
    copied(graph)
    for node in hooked.calls(graph, torch.ops.aten.clone.default):
        node.meta["val"] = node.args[0].meta["val"]


def test_metadata_may_be_put_in_order_later() -> None:
    with pytest.raises(WrongPass, match="rewrite/metadata"):
        checked(careless)(hooked.module().graph)
    judged = checked(careless, metadata="later")
    judged(hooked.module().graph)
    assert judged.verdicts[0].violated == ["rewrite/metadata"], "it is still told"
    with pytest.raises(WrongPass, match="rewrite/values"):
        checked(lambda graph: (careless(graph), negated(graph)), metadata="later")(hooked.module().graph)


@checked
def decorated(graph: fx.Graph) -> None:
    negated(graph)


@checked(on_wrong="collect")
def decorated_with_options(graph: fx.Graph) -> None:
    negated(graph)


def test_as_a_decorator() -> None:
    with pytest.raises(WrongPass, match="by decorated"):
        decorated(hooked.module().graph)
    decorated_with_options(hooked.module().graph)
    assert decorated_with_options.verdicts[0].violated == ["rewrite/values"]


def test_an_error_of_the_pass_is_its_own() -> None:
    def fails(graph: fx.Graph) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        checked(fails)(hooked.module())


# What is done wrong.


@pytest.mark.parametrize("given", ["sink_waits", None, 3, hooked.module()])
def test_what_is_no_pass(given: Any) -> None:
    if given is None:
        assert callable(checked(given))  # as a decorator
        return
    with pytest.raises(CannotJudge, match="takes the pass itself"):
        checked(given)


@pytest.mark.parametrize(
    ("given", "told"),
    [("graph", "the string 'graph'"), (None, "may have returned nothing"), ([], "a list of 0")],
)
def test_what_is_no_graph(given: Any, told: str) -> None:
    with pytest.raises(CannotJudge, match=told):
        checked(nothing)(given)
    with pytest.raises(CannotJudge, match="with nothing"):
        checked(nothing)()


def test_what_torch_functions_leave_unread_is_told_not_guessed() -> None:
    """A graph of torch's own functions, before they are operators."""
    gm = fx.symbolic_trace(lambda x: x.relu())

    def changed(gm: fx.GraphModule) -> None:
        next(node for node in gm.graph.nodes if node.op == "call_method").target = "neg"

    with pytest.raises(CannotJudge, match="changed cannot be judged: .*trace the model down"):
        checked(changed)(gm)
    judged = checked(changed, on_wrong="collect")
    judged(fx.symbolic_trace(lambda x: x.relu()))
    assert judged.verdicts == [] and "trace the model down" in judged.problems[0]
    checked(nothing)(gm)


def test_importing_the_package_does_not_import_torch() -> None:
    code = "import graph_oracle, sys; assert 'torch' not in sys.modules; graph_oracle.checked"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert {"checked", "checked_passes", "pass_check", "watch"} <= set(graph_oracle.__all__)


# The classes of Inductor.


def test_uuid_and_class_are_kept() -> None:
    class OnModule(CustomGraphModulePass):
        def __call__(self, gm: fx.GraphModule) -> None:
            negated(gm.graph)

        def uuid(self) -> Any:
            return "on-module"

    one, two = checked(Pass(nothing)), checked(OnModule())
    assert isinstance(one, CustomGraphPass) and one.uuid() == "hooked/nothing"
    assert isinstance(two, CustomGraphModulePass) and two.uuid() == "on-module"
    with pytest.raises(WrongPass, match="by OnModule"):
        two(hooked.module())
    assert one.ran == 0, "attributes of the pass are at hand"


@needs_aware
def test_a_pass_that_is_told_whether_it_is_inference() -> None:
    class Aware(CustomInferenceAwareGraphPass):
        def __call__(self, graph: fx.Graph, is_inference: bool) -> None:
            assert is_inference
            negated(graph)

        def uuid(self) -> Any:
            return None

    aware = checked(Aware())
    assert isinstance(aware, CustomInferenceAwareGraphPass) and aware.uuid() is None
    with pytest.raises(WrongPass, match="by Aware"):
        aware(hooked.module().graph, is_inference=True)


def test_it_can_be_pickled_for_the_keys_of_caches() -> None:
    first = checked(nothing)
    again = pickle.loads(pickle.dumps(first))
    again(hooked.module())
    assert again.unchanged == 1 and first.unchanged == 0
    assert pickle.dumps(checked(nothing)) == pickle.dumps(checked(nothing))


# Within torch.compile.


@pytest.mark.parametrize(("hook", "as_function"), [*((hook, False) for hook in HOOKS), (HOOKS[-1], True)])
def test_hooks_of_inductor(hook: str, as_function: bool) -> None:
    def made(function: Any) -> Any:
        return checked(function if as_function else Pass(function))

    for function in (nothing, copied):
        judged = made(function)
        with config.patch({hook: judged}), hooked.without_kernels():
            hooked.compiled()
        assert all(judged.verdicts)
        assert bool(judged.verdicts) == (function is copied), hook
        assert judged.unchanged or function is copied
    with config.patch({hook: made(negated)}), hooked.without_kernels():
        with pytest.raises(BackendCompilerFailed, match="rewrite/values") as caught:
            hooked.compiled()
    inner = hooked.cause(caught.value, WrongPass)
    assert isinstance(inner, WrongPass) and inner.verdict.violated == ["rewrite/values"]


def test_a_pass_that_returns_what_inductor_drops() -> None:
    def other(graph: fx.Graph) -> Any:
        return copy.deepcopy(graph)

    with config.patch(post_grad_custom_post_pass=checked(other)), hooked.without_kernels():
        with pytest.raises(BackendCompilerFailed, match="change the given graph in place"):
            hooked.compiled()


def pre_grad_wrong(graph: fx.Graph) -> None:
    for node in hooked.calls(graph, torch.relu):
        node.target = torch.neg


def test_before_autograd_what_cannot_be_read_is_told() -> None:
    same = checked(nothing)
    with config.patch(pre_grad_custom_pass=same), hooked.without_kernels():
        hooked.compiled()
    assert same.unchanged >= 1
    judged = checked(pre_grad_wrong, on_wrong="collect")
    with config.patch(pre_grad_custom_pass=judged), hooked.without_kernels():
        hooked.compiled()
    # Such graphs call methods (x.sum()), which have no schema: nothing is claimed.
    assert len(judged.problems) + len(judged.verdicts) >= 1
    assert not any(judged.verdicts)


class Partitioner(CustomPartitionerFn):
    def __init__(self, wrong: bool = False) -> None:
        self.wrong = wrong

    def __call__(self, gm: fx.GraphModule, joint_inputs: Any, **kwargs: Any) -> Any:
        from torch._functorch.partitioners import min_cut_rematerialization_partition

        forward, backward = min_cut_rematerialization_partition(gm, joint_inputs, **kwargs)
        if self.wrong:
            negated(forward.graph)
        return forward, backward

    def uuid(self) -> Any:
        return f"partitioner/{self.wrong}"


@needs_partitioners
def test_partitioners() -> None:
    judged = checked(Partitioner())
    assert isinstance(judged, CustomPartitionerFn) and judged.uuid() == "partitioner/False"
    with config.patch(custom_partitioner_fn=judged), hooked.without_kernels():
        hooked.compiled()
    assert [(verdict.pass_kind, verdict.verdict) for verdict in judged.verdicts] == [("partition", "sound")]
    with config.patch(custom_partitioner_fn=checked(Partitioner(wrong=True))), hooked.without_kernels():
        with pytest.raises(BackendCompilerFailed, match="by Partitioner is wrong: partition/"):
            hooked.compiled()


@needs_partitioners
def test_a_partitioner_that_is_a_function() -> None:
    def function(gm: fx.GraphModule, joint_inputs: Any, **kwargs: Any) -> Any:
        return Partitioner()(gm, joint_inputs, **kwargs)

    judged = checked(function, kind="partition")
    assert isinstance(judged, CustomPartitionerFn)
    assert judged.uuid() and judged.uuid() != checked(function, kind="partition").uuid()
    with config.patch(custom_partitioner_fn=judged), hooked.without_kernels():
        hooked.compiled()
    assert judged.verdicts[0]
    with pytest.raises(CannotJudge, match="returned None, where a partitioner returns"):
        checked(nothing, kind="partition")(hooked.module().graph)


def reversed_nodes(nodes: Any) -> Any:
    return list(reversed(nodes))


def returns_nothing(nodes: Any) -> None:
    pass


@pytest.mark.skipif(versions.version() <= (2, 9), reason="the scheduler's passes of this torch want a process group")
def test_passes_on_scheduler_nodes() -> None:
    from torch._inductor import comms

    from graph_oracle.pytorch import schedules

    def step(x: Any, w: Any) -> Any:
        return torch.mm(torch.relu(torch.mm(x, w)), w)

    def run(*passes: Any) -> None:
        settings = {"reorder_for_compute_comm_overlap": True, "reorder_for_compute_comm_overlap_passes": list(passes)}
        with config.patch(settings), schedules.recording(), torch.no_grad():
            torch.compile(step)(torch.randn(8, 8), torch.randn(8, 8))

    sinks, wrong = checked(comms.sink_waits), checked(reversed_nodes, on_wrong="collect")
    run(sinks, wrong)
    assert sinks.unchanged >= 1
    assert wrong.verdicts[0].violated and wrong.verdicts[0].pass_kind == "schedule"
    raising = checked(reversed_nodes)
    with torch._dynamo.config.patch(suppress_errors=True):
        run(raising)
    assert not raising.verdicts[0]
    with pytest.raises(CannotJudge, match="with a list of 1, where"):
        checked(returns_nothing)([1])


# Pass managers of FX.


def result_of(function: Any) -> Any:
    def ran(gm: fx.GraphModule) -> PassResult:
        function(gm.graph)
        return PassResult(gm, function is not nothing)

    ran.__name__ = function.__name__
    return ran


def test_passes_of_a_manager() -> None:
    first, second = result_of(copied), result_of(nothing)
    constraint = pass_manager.this_before_that_pass_constraint(first, second)
    manager = checked(pass_manager.PassManager([second, first], constraints=[constraint]))
    assert [one.name for one in manager.passes] == ["copied", "nothing"]
    manager(hooked.module())
    assert manager.passes[0].verdicts[0] and manager.passes[1].unchanged == 1
    with pytest.raises(Exception, match="running the") as caught:
        checked(pass_manager.PassManager([first, result_of(negated)]))(hooked.module())
    assert isinstance(caught.value.__cause__, WrongPass) and "by negated" in str(caught.value.__cause__)


def test_passes_of_the_older_manager() -> None:
    def in_place(function: Any) -> Any:
        return old_manager.inplace_wrapper(lambda gm: function(gm.graph))

    checked(old_manager.PassManager([in_place(copied), in_place(nothing)]))(hooked.module())
    with pytest.raises(WrongPass, match="rewrite/values"):
        checked(old_manager.PassManager([in_place(copied), in_place(negated)]))(hooked.module())
    with pytest.raises(CannotJudge, match="may have returned nothing"):
        checked(old_manager.PassManager([lambda gm: None, in_place(nothing)]))(hooked.module())


def test_as_a_check_of_a_manager() -> None:
    check = pass_check()
    right = pass_manager.PassManager([result_of(copied), result_of(nothing)], run_checks_after_each_pass=True)
    right.add_checks(check)
    right(hooked.module())
    assert len(check.verdicts) == 1 and check.verdicts[0]
    other = hooked.module()
    negated(other.graph)
    right(other)  # another run: it is not compared with what the one before left
    wrong = pass_manager.PassManager([result_of(nothing), result_of(negated)], run_checks_after_each_pass=True)
    wrong.add_checks(check)
    with pytest.raises(Exception, match="after the following passes: .'nothing'") as caught:
        wrong(hooked.module())
    assert isinstance(caught.value.__cause__, WrongPass)
    with pytest.raises(CannotJudge, match="the string 'x'"):
        check("x")  # type: ignore[arg-type]
