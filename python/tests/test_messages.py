"""What users do wrong is told in a message."""

import pytest
import torch
from torch import fx

import graph_oracle
from graph_oracle.pytorch import capture, groups

TEXT = "x = input : f32[4]\ny = relu(x)\noutput y\n"


def of(value, *more):
    graph = fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = value
    graph.output(graph.call_function(torch.ops.aten.relu.default, (x, *more)))
    return graph


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: graph_oracle.check_pair(g, []), "after: the list is empty"),
        (lambda g: graph_oracle.check_pair(g, [g], "partition"), "pair"),
        (lambda g: graph_oracle.check_pair(TEXT, g), r"graph_oracle.Graph\(text\)"),
        (lambda g: graph_oracle.check_pair("/no/such.json", g), "/no/such.json: No such file"),
        (lambda g: graph_oracle.check_pair({"nodes": object()}, g), "no exchange JSON"),
        (lambda g: graph_oracle.check_pair(torch.nn.ReLU(), g), "ReLU is no graph"),
        (lambda g: graph_oracle.check_pair(of(torch.eye(3).to_sparse()), g), "before: .*torage"),
        (lambda g: graph_oracle.check_pair(of(torch.ones(2), torch.ones(2)), g), "Tensor, which has no form"),
        (lambda g: graph_oracle.load(None), "None is no path"),
        (lambda g: graph_oracle.rebuilt(None).__enter__(), "None is no path"),
        (lambda g: graph_oracle.rebuilt(g, "a").__enter__(), "the rank is a number"),
        (lambda g: graph_oracle.fake_world(2, 2).__enter__(), "rank 2 of 2"),
        (lambda g: graph_oracle.fake_world("2").__enter__(), "ranks go from 0"),
        (lambda g: graph_oracle.graphs(without="writes"), "a list of words"),
        (lambda g: graph_oracle.graphs(max_ranks=-1), "at least one rank"),
    ],
)
def test_what_cannot_be_judged(call, message):
    groups.leave()
    with pytest.raises(graph_oracle.CannotJudge, match=message):
        call(graph_oracle.Graph(TEXT))


def test_a_second_world():
    groups.leave()
    with graph_oracle.fake_world(2), pytest.raises(graph_oracle.CannotJudge, match="already"):
        graph_oracle.fake_world(2).__enter__()


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("refused", [], "torch.compile refuses it"),
        ("no_group", [], "--ranks N"),
        ("fails", [], "ValueError: mine"),
        ("fails", ["--ranks", "2", "--rank", "5"], "rank 5 of 2"),
    ],
)
def test_capture(tmp_path, capsys, name, arguments, message):
    groups.leave()
    file = tmp_path / "model.py"
    file.write_text(
        "import torch\n"
        "import torch.distributed as dist\n"
        "def broken(x):\n    torch._dynamo.graph_break()\n    return x + 1\n"
        "def refused():\n    torch.compile(broken, fullgraph=True)(torch.ones(2))\n"
        "def no_group():\n    dist.all_reduce(torch.ones(2))\n"
        "def fails():\n    raise ValueError('mine')\n"
    )
    from graph_oracle.pytorch.__main__ import main

    assert main(["capture", f"{file}:{name}", "-o", str(tmp_path / "out"), *arguments]) == 1
    told = capsys.readouterr().err
    assert message in told and "Traceback" not in told, told


def test_capture_of_a_file_that_cannot_be_imported(tmp_path):
    file = tmp_path / "broken.py"
    file.write_text("raise RuntimeError('at import')\n")
    with pytest.raises(SystemExit, match=r"cannot be imported: RuntimeError: at import .*broken.py:1"):
        capture.find(f"{file}:f")
