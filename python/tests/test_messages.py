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
        (lambda g: graph_oracle.check_pair(of(torch.eye(3).to_sparse()), g), "before: x holds a tensor of layout"),
        (lambda g: graph_oracle.check_pair(of(torch.ones(2), torch.ones(2)), g), "Tensor, which has no form"),
        (lambda g: graph_oracle.load(None), "None is no path"),
        (lambda g: graph_oracle.rebuilt(None).__enter__(), "None is no path"),
        (lambda g: graph_oracle.rebuilt(g, "a").__enter__(), "the rank is a number"),
        (lambda g: graph_oracle.fake_world(2, 2).__enter__(), "rank 2 of 2"),
        (lambda g: graph_oracle.fake_world("2").__enter__(), "ranks go from 0"),
        (lambda g: graph_oracle.graphs(without="writes"), "a list of words"),
        (lambda g: graph_oracle.graphs(max_ranks=-1), "at least one"),
        (lambda g: graph_oracle.check_pair(g, [g], values="bad"), "one of auto, .*, not the string 'bad'"),
        (lambda g: graph_oracle.check_case("/no/such.graph", "m:f"), "/no/such.graph: No such file"),
        (lambda g: graph_oracle.check_case(__file__, "m:f"), "names no pass"),
        (lambda g: graph_oracle.checked_passes([None]), "None among them is none"),
        (lambda g: graph_oracle.checked_passes({"a": [object()]}), "an object among them is none"),
        (lambda g: graph_oracle.campaign("rewrite", out="x", address="ray:1"), "None without a cluster"),
    ],
)
def test_what_cannot_be_judged(call, message):
    groups.leave()
    with pytest.raises(graph_oracle.CannotJudge, match=message):
        call(graph_oracle.Graph(TEXT))


def entered(manager):
    """A function that enters what another one gives."""

    def enter(**given):
        with manager(**given):
            pass

    return enter


def drawn(strategy):
    return lambda **given: strategy(**given).do_draw


# Each function that is offered, with arguments that are right; and by parameter which of WRONG it takes all the same.
WRONG = (None, 3, "", object(), [])
OFFERED = {
    "check_pair": (
        graph_oracle.check_pair,
        {"before": 0, "after": 0, "kind": "rewrite", "unrepaired": None, "subject": "", "values": "auto"},
        {"unrepaired": (None,), "subject": ("",)},
    ),
    "graph": (graph_oracle.graph, {"given": 0, "kind": "forward"}, {"kind": ("",)}),
    "load": (graph_oracle.load, {"path": "x"}, {}),
    "check_case": (
        graph_oracle.check_case,
        {"path": "/no/such", "function": "m:f", "worker": None, "kind": "rewrite"},
        {},
    ),
    "checked": (
        graph_oracle.checked,
        {"my_pass": of, "kind": "rewrite", "on_wrong": "raise", "name": "", "metadata": "now"},
        {"my_pass": (None,), "name": ("",)},
    ),
    "checked_passes": (graph_oracle.checked_passes, {"passes": [of]}, {"passes": ([],)}),
    "pass_check": (graph_oracle.pass_check, {"kind": "rewrite"}, {}),
    "fake_world": (entered(graph_oracle.fake_world), {"ranks": 2, "rank": 0}, {"ranks": (3,)}),
    "rebuilt": (entered(graph_oracle.rebuilt), {"graph": 0, "rank": 0}, {}),
    "recording": (
        entered(graph_oracle.recording),
        {"prefix": "graph", "post_grad": True, "joint": True},
        {},
    ),
    "watch": (entered(graph_oracle.watch), {"passes": None, "report": False}, {"passes": (None,)}),
    "graphs": (
        drawn(graph_oracle.graphs),
        {"kind": "rewrite", "without": (), "max_ranks": 2},
        {"without": ([],), "max_ranks": (None, 3)},
    ),
    "joint_graphs": (
        drawn(graph_oracle.joint_graphs),
        {"without": (), "max_ranks": 2},
        {"without": ([],), "max_ranks": (None, 3)},
    ),
    "campaign": (
        graph_oracle.campaign,
        # With such a cluster it never comes to a case.
        {"pass_kind": "rewrite", "out": "x", "cluster": "none"},
        {"cluster": (None,)},
    ),
}


def test_each_function_that_is_offered_is_asked():
    functions = {name for name in graph_oracle.__all__ if not isinstance(getattr(graph_oracle, name), type)}
    assert functions == set(OFFERED)


@pytest.mark.parametrize(
    ("name", "key", "wrong"),
    [
        pytest.param(name, key, wrong, id=f"{name}-{key}-{type(wrong).__name__}")
        for name, (_, right, taken) in OFFERED.items()
        for key in right
        for wrong in WRONG
        if wrong not in taken.get(key, ())
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(name, key, wrong):
    groups.leave()
    function, right, _ = OFFERED[name]
    given = {one: graph_oracle.Graph(TEXT) if value == 0 and one != "rank" else value for one, value in right.items()}
    with pytest.raises(graph_oracle.CannotJudge) as caught:
        function(**{**given, key: wrong})
    assert str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [3, "", object(), []])
@pytest.mark.parametrize(
    "key", ["python", "worker", "candidate", "address", "retries", "known", "graphs", "repro", "files", "arguments"]
)
def test_so_is_what_a_campaign_takes_besides(tmp_path, key, wrong):
    if wrong == [] and key in ("graphs", "files", "arguments") or wrong == 3 and key == "retries":
        return
    with pytest.raises(graph_oracle.CannotJudge, match=f"campaign.{key}=...|one of python"):
        graph_oracle.campaign("rewrite", out=tmp_path / "out", **{key: wrong})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("wrong", [3, "", object(), []])
def test_a_worker_s_command_is_a_string(wrong):
    with pytest.raises(graph_oracle.CannotJudge, match="worker=...|a command"):
        graph_oracle.check_case("case.graph", worker=wrong)


@pytest.mark.parametrize("wrong", [None, 3, object(), []])
def test_a_graph_is_made_of_text_or_a_path(wrong):
    with pytest.raises(graph_oracle.CannotJudge, match="takes a graph as text"):
        graph_oracle.Graph(wrong)
    with pytest.raises(graph_oracle.CannotJudge, match="takes the path of a file"):
        graph_oracle.Graph.load(wrong)


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
