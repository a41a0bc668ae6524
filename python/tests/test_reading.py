"""What is read of a graph of torch: what two graphs share, what only looks alike, and what has no form."""

from __future__ import annotations

import json
import operator
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import fx
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

import graph_oracle
from graph_oracle import CannotJudge, check_pair
from graph_oracle.pytorch import groups, ordering, read, rebuild

from . import graphs, hooked
from .hooked import aten

# Tensors that torch cannot describe.


def nested(layout: torch.layout) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)


HELD = {
    "nested": (lambda: nested(torch.strided), "a nested tensor"),
    "jagged": (lambda: nested(torch.jagged), "a nested tensor"),
    "coo": (lambda: torch.eye(3).to_sparse(), "a tensor of layout torch.sparse_coo"),
    "csr": (lambda: torch.eye(3).to_sparse_csr(), "a tensor of layout torch.sparse_csr"),
    "fake": (lambda: FakeTensorMode().from_tensor(torch.eye(3).to_sparse()), "a tensor of layout torch.sparse_coo"),
    "list": (lambda: [torch.ones(2), torch.eye(3).to_sparse()], "a tensor of layout torch.sparse_coo"),
    "uninitialized": (torch.nn.UninitializedParameter, "a UninitializedParameter without sizes"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("key", ["val", "example_value"])
@pytest.mark.parametrize("held", HELD)
def test_a_tensor_that_has_no_form_is_told_with_its_node(held: str, key: str) -> None:
    made, said = HELD[held]
    module = hooked.module()
    (node,) = hooked.calls(module.graph, aten.relu.default)
    del node.meta["val"]
    node.meta[key] = made()
    with pytest.raises(CannotJudge, match=f"^before: {node.name} holds {said}"):
        check_pair(module, hooked.module())
    with pytest.raises(CannotJudge, match=f"^{node.name} holds {said}"):
        graph_oracle.graph(module)


def test_so_is_an_attribute_and_what_is_in_a_body() -> None:
    module = with_attribute(torch.eye(3).to_sparse())
    with pytest.raises(CannotJudge, match="^after: c holds a tensor of layout"):
        check_pair(hooked.module(), module)
    inner = hooked.module()
    (relu,) = hooked.calls(inner.graph, aten.relu.default)
    relu.meta["val"] = torch.eye(3).to_sparse()
    with pytest.raises(CannotJudge, match="relu_default holds a tensor of layout"):
        graph_oracle.graph(with_attribute(inner))


@pytest.mark.filterwarnings("ignore")
def test_other_things_without_a_form_are_told_with_their_node() -> None:
    jagged: Any = nested(torch.jagged)
    for value, argument, said in (
        (jagged.shape[1], None, "a size of a nested tensor"),
        (torch.empty(2, dtype=torch.bits8), None, "bits8 is a type of elements"),
        (torch.empty(4), torch.ones(2), "an argument is a Tensor"),
        (torch.empty(4), jagged.shape[1], "a size of a nested tensor"),
    ):
        module = hooked.module()
        (add,) = hooked.calls(module.graph, aten.add.Tensor)
        add.meta["val"] = value
        if argument is not None:
            add.args = (add.args[0], argument)
        with pytest.raises(CannotJudge, match=f"^add_tensor: .*{said}"):
            graph_oracle.graph(module)


# What looks alike.


def with_attribute(value: Any) -> fx.GraphModule:
    """relu(x) + x, and c, an attribute."""
    module = hooked.module()
    root = torch.nn.Module()
    root.c = value
    (add,) = hooked.calls(module.graph, aten.add.Tensor)
    with module.graph.inserting_before(add):
        c = module.graph.create_node("get_attr", "c")
        add.args = (add.args[0], module.graph.call_function(aten.mul.Tensor, (c, add.args[1])))
    return fx.GraphModule(root, module.graph)


def test_constants_of_one_name_are_told_apart_by_their_values() -> None:
    one = with_attribute(torch.ones(4))
    assert check_pair(one, with_attribute(torch.ones(4)))
    assert check_pair(one, with_attribute(torch.nn.Parameter(torch.ones(4)))).verdict != "violated"
    for other in (torch.tensor([1.0, 1.0, 1.0, 2.0]), -torch.ones(4), torch.ones(4).double()):
        assert not check_pair(one, with_attribute(other)), other
    with FakeTensorMode():
        unknown = [with_attribute(torch.ones(4)) for _ in range(2)]
    assert check_pair(*unknown), "without values they count as those of their name"


def calling(function: Callable[..., Any]) -> fx.GraphModule:
    module = hooked.module()
    (relu,) = hooked.calls(module.graph, aten.relu.default)
    relu.target = function
    return module


def test_functions_of_one_name_are_told_apart() -> None:
    def first() -> Callable[..., Any]:
        def mine(x: Any) -> Any:
            return x

        return mine

    one, other = first(), first()
    assert check_pair(calling(operator.neg), calling(operator.neg))
    assert check_pair(calling(one), calling(one))
    assert not check_pair(calling(one), calling(other))


# Ordering edges and bodies.


def ordered(inner: Callable[[fx.Graph, fx.Node], Any]) -> fx.GraphModule:
    """neg(x), and after it, by control_deps, what `inner` makes of x."""
    body = fx.Graph()
    body.output(inner(body, body.placeholder("a")))
    root = torch.nn.Module()
    root.body = fx.GraphModule(torch.nn.Module(), body)
    graph = fx.Graph()
    x = graph.placeholder("x")
    neg = graph.call_function(aten.neg.default, (x,))
    held = graph.create_node("get_attr", "body")
    call = graph.call_function(ordering._CONTROL_DEPS, ((neg,), held, x))
    graph.output((neg, call))
    for node in [*body.nodes, *graph.nodes]:
        if node.op in ("placeholder", "call_function"):
            node.meta["val"] = torch.empty(4)
    return fx.GraphModule(root, graph)


@pytest.mark.skipif(not ordering.AVAILABLE, reason="this torch has no control_deps")
def test_the_body_of_an_ordering_edge_is_read() -> None:
    def relu(graph: fx.Graph, a: fx.Node) -> Any:
        return graph.call_function(aten.relu.default, (a,))

    def sin(graph: fx.Graph, a: fx.Node) -> Any:
        return graph.call_function(aten.sin.default, (a,))

    def twice(graph: fx.Graph, a: fx.Node) -> Any:
        return relu(graph, relu(graph, a))

    def drops(graph: fx.Graph, a: fx.Node) -> Any:
        relu(graph, a)
        return a

    assert '"after":["neg_default"]' in graph_oracle.graph(ordered(relu)).json()
    for body in (relu, twice, drops):
        assert check_pair(ordered(body), ordered(body)).verdict != "violated", body.__name__
    for other in (sin, drops):
        assert not check_pair(ordered(relu), ordered(other)), other.__name__
    assert not check_pair(ordered(twice), ordered(drops))


# Nodes and graphs that are not where they should be.


def test_a_node_of_another_graph_is_an_argument() -> None:
    for other in (hooked.module(), None):
        module = hooked.module()
        (add,) = hooked.calls(module.graph, aten.add.Tensor)
        (relu,) = hooked.calls(module.graph if other is None else other.graph, aten.relu.default)
        if other is None:
            # It was of this one.
            add.args = (add.args[1], add.args[1])
            module.graph.erase_node(relu)
        add.args = (relu, relu)
        assert "a node that is not in this graph" in graph_oracle.graph(module).json()
        verdict = check_pair(hooked.module(), module)
        assert verdict.verdict == "violated" and "no graph has a node relu_default" in str(verdict)


def test_one_graph_is_not_two() -> None:
    module = hooked.module()
    for before, after in (
        (module, module),
        (module, module.graph),
        (module.graph, module),
        (module, [module]),
        (module, [hooked.module(), module]),
    ):
        with pytest.raises(CannotJudge, match="before and after are one graph"):
            check_pair(before, after)
    with pytest.raises(CannotJudge, match="one graph"):
        check_pair(module, (module, hooked.module()), "partition")


def test_a_list_has_a_graph_for_each_rank() -> None:
    before = graphs.two_gathers()
    assert check_pair(before, [before, before], "bucketing").verdict != "violated"
    for count in (1, 3):
        with pytest.raises(CannotJudge, match=f"the list has {count} graphs, and there are 2 ranks"):
            check_pair(before, [before] * count, "bucketing")


# What two graphs share.


def test_symbols_are_known_in_both_graphs_that_share_them() -> None:
    dynamic: Any = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC, DimDynamic.STATIC])
    mode = FakeTensorMode(shape_env=ShapeEnv())
    value = mode.from_tensor(torch.empty(6, 4), symbolic_context=dynamic, source=ConstantSource("x"))
    one, other = hooked.module(value), hooked.module(value)
    reader = read.Reader()
    symbols = [json.loads(reader.read(given).json())["symbols"] for given in (one, other)]
    assert symbols[0] == symbols[1] and len(symbols[0]) >= 1
    assert check_pair(one, other)


# Process groups.


def refused() -> graph_oracle.Graph:
    document = graphs.two_gathers()
    document["nodes"].insert(2, graphs.call("a", "mylib.no_such.default", [graphs.ref("x")], graphs.tensor([2])))
    document["num_nodes"] += 1
    return graph_oracle.Graph(json.dumps(document))


def test_a_refusal_leaves_no_process_group_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    groups.leave()
    for rank, said in ((0, "mylib.no_such"), (5, "rank 5 is not one of the 2 ranks")):
        with pytest.raises(CannotJudge, match=said):
            with graph_oracle.rebuilt(refused(), rank):
                pass
        assert not dist.is_initialized() and not groups.are_ours()

    def fails(self: Any) -> None:
        assert dist.is_initialized()
        raise RuntimeError("by itself")

    monkeypatch.setattr(rebuild._Builder, "build", fails)
    with pytest.raises(RuntimeError, match="by itself"):
        with graph_oracle.rebuilt(graph_oracle.Graph(json.dumps(graphs.two_gathers()))):
            pass
    assert not dist.is_initialized() and not groups.are_ours()


def test_a_graph_that_uses_no_group_needs_no_world() -> None:
    groups.leave()
    document = graphs.document(
        [
            graphs.placeholder("x", [4]),
            graphs.call("y", "aten.relu.default", [graphs.ref("x")], graphs.tensor([4])),
            graphs.output("y"),
        ]
    )
    del document["world"]
    # As recorded graphs have it: the group of the process, without its ranks.
    for listed in ({}, {"0": {"size": 8, "rank": 0}}):
        given = graph_oracle.Graph(json.dumps({**document, "groups": listed}))
        with graph_oracle.rebuilt(given) as module:
            assert dist.get_world_size() == 1
            assert check_pair(given, module)
    used = graphs.two_gathers()
    del used["world"]
    with pytest.raises(CannotJudge, match="does not say how many ranks"):
        with graph_oracle.rebuilt(graph_oracle.Graph(json.dumps(used))):
            pass
    assert not dist.is_initialized()


# Results of torch.export.


class Model(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.relu(x) + 1


def test_a_program_of_torch_export() -> None:
    program = torch.export.export(Model(), (torch.ones(4),))
    assert check_pair(program.graph_module, torch.export.export(Model(), (torch.ones(4),)).graph_module)
    with pytest.raises(CannotJudge, match="of an ExportedProgram its graph_module"):
        graph_oracle.graph(program)  # type: ignore[arg-type]
    module: Any = program.module()
    if any(node.op == "call_module" for node in module.graph.nodes):
        with pytest.raises(
            CannotJudge, match="give its graph_module instead of module.., or module.check_guards=False"
        ):
            graph_oracle.graph(module)
        unguarded: Any = [program.module(check_guards=False) for _ in range(2)]
        assert check_pair(*unguarded)


def test_a_stranger_stays_a_stranger() -> None:
    """Only what cannot be meant is refused: an error of ours is not hidden."""
    graph: Any = fx.Graph()
    graph.output(())
    assert len(read.Reader().read(graph)) == 1
    broken: Any = types.SimpleNamespace(nodes=[object()], owning_module=None)
    with pytest.raises(AttributeError):
        read.Reader().read(types.SimpleNamespace(graph=broken))  # type: ignore[arg-type]


def test_a_list_that_holds_itself_is_told():
    endless = []
    endless.append(endless)
    graph = fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = endless
    graph.output(x)
    with pytest.raises(graph_oracle.CannotJudge, match="lists inside each other"):
        graph_oracle.graph(graph)
