"""A function of the user's own as the pass: what it is given, what it may return, and what becomes of its mistakes."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest
import torch

from graph_oracle import check_case
from graph_oracle.program import command
from graph_oracle.pytorch import function, repro, worker

from . import graphs

RELU = torch.ops.aten.relu.default

SOURCE = """
import torch
from torch import fx

RELU = torch.ops.aten.relu.default

def drop(graph):
    for node in list(graph.nodes):
        if node.target is RELU:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)

def annotated(g: "fx.Graph") -> None:
    drop(g)

def on_module(gm):
    print("noise on standard output")
    drop(gm.graph)
    return gm

def view(gm):
    # A copy becomes a view: the same values, in the memory of the input.
    for node in gm.graph.find_nodes(op="call_function", target=torch.ops.aten.clone.default):
        node.target, node.args = torch.ops.aten.view.default, (node.args[0], [4])

def copied(gm):
    import copy
    gm = copy.deepcopy(gm)
    drop(gm.graph)
    return gm.graph

def counts(gm):
    return 3

def text(gm):
    return "done"

def raises(gm):
    helper()

def helper():
    raise KeyError("no such key")

def leaves(gm):
    import sys
    sys.exit("bye")

def foreign(gm):
    node = fx.Graph().placeholder("elsewhere")
    gm.graph.output_node().args = ((node,),)

def method(gm):
    output = gm.graph.output_node()
    with gm.graph.inserting_before(output):
        gm.graph.call_method("neg", (output.args[0][0],))

def options(gm, *, size: int = 1, deep=False, names=()):
    raise ValueError(f"{size!r} {deep!r} {names!r}")

def needs(gm, cap):
    pass

class Pass:
    def __call__(self, graph: fx.Graph):
        drop(graph)

instance = Pass()

def cut(joint_module, joint_inputs, *, num_fwd_outputs, **kwargs):
    from torch._functorch.partitioners import default_partition
    primals, tangents = joint_inputs
    assert [t.shape for t in primals + tangents] == [(4,), (4,)]
    return default_partition(joint_module, joint_inputs, num_fwd_outputs=num_fwd_outputs, **kwargs)

def cut_nothing(joint_module, joint_inputs, *, num_fwd_outputs):
    pass
"""


class Silent:
    def send(self, message: dict[str, Any]) -> None:
        pass


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("function") / "mypass.py"
    file.write_text(SOURCE)
    return str(file)


def relu() -> dict[str, Any]:
    nodes = [
        graphs.placeholder("x", [4]),
        graphs.call("r", "aten.relu.default", [graphs.ref("x")], graphs.tensor([4])),
        graphs.output("r"),
    ]
    return graphs.document(nodes, ranks=2)


def served(path: str, name: str, only: str | None = None) -> worker.Worker:
    found = function.load(f"{path}:{name}")
    return worker.Worker(Silent(), function.passes(found, only), torch.__version__ + found.digest, function=found)


def ask(
    path: str, name: str, kind: str = "rewrite", document: dict[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    message = {"type": "run", "id": 1, "pass": kind, "options": options, "rank": 0, "graph": document or relu()}
    answer: dict[str, Any] = served(path, name).answer(json.dumps(message))
    return answer


@pytest.mark.parametrize("name", ["drop", "annotated", "on_module", "copied", "instance"])
def test_a_graph_or_a_module_is_changed_or_returned(path: str, name: str) -> None:
    answer = ask(path, name)
    assert answer["type"] == "outcome", answer
    assert [node["name"] for node in answer["repaired"]["nodes"]] == ["x", "output"]
    assert answer["repaired"]["nodes"][1]["args"] == [[{"ref": "x"}]]


def test_a_count_is_no_graph(path: str) -> None:
    assert len(ask(path, "counts")["repaired"]["nodes"]) == 3


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("text", "TypeError", "it returned a str; a pass changes the graph"),
        ("raises", "KeyError", "no such key"),
        ("leaves", "RuntimeError", "ends the process: sys.exit('bye')"),
        ("foreign", "ValueError", "which is not in the graph that it left"),
        ("method", "ValueError", "a call_method"),
    ],
)
def test_mistakes_are_findings(path: str, name: str, kind: str, said: str) -> None:
    answer = ask(path, name)
    assert (answer["type"], answer["error"]) == ("error", kind), answer
    assert said in answer["message"]


def test_a_traceback_is_of_the_users_code(path: str) -> None:
    frames = [line for line in ask(path, "raises")["traceback"].splitlines() if line.startswith("  File")]
    assert len(frames) == 2 and all("mypass.py" in frame for frame in frames), frames


def test_options_go_to_parameters_as_their_type_says(path: str) -> None:
    answer = ask(path, "options", size="12", deep="yes", cap="64MiB", names=["a", "b"])
    assert answer["message"] == "12 True ['a', 'b']"
    assert ask(path, "options", size="many")["reason"] == "option size=many is no number"
    assert ask(path, "needs")["reason"] == "mypass.py:needs needs cap: give --set cap=VALUE"
    assert ask(path, "needs", cap="1")["type"] == "outcome"


def test_a_partitioner_is_called_as_aot_autograd_calls_it(path: str) -> None:
    answer = ask(path, "cut", "partition", graphs.joint())
    assert answer["type"] == "outcome", answer
    assert "tangents_1" in [node["name"] for node in answer["backward"]["nodes"]]
    assert "num_fwd_outputs" not in answer["forward"]
    assert "it returned None; a partitioner returns" in ask(path, "cut_nothing", "partition", graphs.joint())["message"]


def test_the_hello_says_who_it_is_and_what_it_can_be(path: str) -> None:
    greeting = {"protocol": worker.PROTOCOL}
    hello = served(path, "options").hello(greeting)
    assert hello["name"] == "mypass.py:options" and hello["version"].startswith(torch.__version__ + "+")
    assert list(hello["passes"]) == ["rewrite", "bucketing", "repair", "schedule"]
    assert not any("promises" in offered for offered in hello["passes"].values())
    assert hello["passes"]["rewrite"]["options"] == {"size": [], "deep": [], "names": []}
    assert list(served(path, "cut").hello(greeting)["passes"]) == ["partition"]
    assert list(served(path, "drop", "schedule").hello(greeting)["passes"]) == ["schedule"]


@pytest.mark.parametrize(
    ("spec", "only", "said"),
    [
        ("{}:nothing", None, "has no function nothing; it has drop, annotated"),
        ("{}:Pass", None, "is a class"),
        ("{}:RELU.tags", None, "cannot be called"),
        ("{}x.py:f", None, "there is no file"),
        ("no_such_module:f", None, "cannot be imported: ModuleNotFoundError"),
        ("{}:drop", "partition", "what does a partition takes f(joint_module"),
        ("{}:drop", "memory", "a function is no memory"),
        ("drop", None, "is not FILE.py:FUNCTION"),
    ],
)
def test_what_is_no_pass_is_told(path: str, spec: str, only: str | None, said: str) -> None:
    with pytest.raises(function.BadFunction, match="(?s)" + said.replace("(", r"\(")):
        function.passes(function.load(spec.format(path)), only)


def test_a_file_that_does_not_run_is_one_line_and_status_2(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("x = 1\nx.y\n")
    command = [sys.executable, "-m", "graph_oracle.pytorch", "worker", "--function", f"{file}:f"]
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[1])}
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL
    )
    assert (done.returncode, done.stdout) == (2, "")
    said = f"graph-oracle: {file} cannot be imported: AttributeError: 'int' object has no attribute 'y' (line 2)"
    assert done.stderr.strip().splitlines()[-1] == said


@pytest.mark.parametrize(
    ("name", "kind", "status"),
    [
        ("drop", "rewrite", 1),
        ("drop", "bucketing", 1),
        ("counts", "rewrite", 0),
        ("text", "rewrite", 1),
        ("raises", "schedule", 1),
        ("cut", "partition", 0),
        ("cut_nothing", "partition", 1),
    ],
)
def test_a_script_shows_it_in_plain_torch(path: str, tmp_path: pathlib.Path, name: str, kind: str, status: int) -> None:
    document = graphs.joint() if kind == "partition" else relu()
    written = repro.write(document, kind, {}, 0, "rewrite/values", "it drops", function.load(f"{path}:{name}"))
    assert "graph_oracle" not in written and len(written.splitlines()) <= 60
    script = tmp_path / "repro.py"
    script.write_text(written)
    (tmp_path / "replay.py").write_text(repro.tools())
    done = subprocess.run([sys.executable, str(script)], check=False, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == status, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "kind", "rule", "status", "said"),
    [
        (
            "view",
            "rewrite",
            "rewrite/aliases",
            0,
            "nothing fails that this looks at; rewrite/aliases may be broken all the same",
        ),
        ("view", "rewrite", "rewrite/values", 0, "the failure does not show"),
        ("drop", "rewrite", "rewrite/aliases", 1, "FAILS: value 0 of rank 0"),
        (
            "drop",
            "repair",
            "rewrite/values",
            0,
            "nothing fails that this looks at; rewrite/values may be broken all the same",
        ),
        ("raises", "rewrite", "rewrite/metadata", 1, "FAILS: the pass raises KeyError"),
    ],
)
def test_a_script_claims_nothing_of_what_it_does_not_look_at(
    path: str, tmp_path: pathlib.Path, name: str, kind: str, rule: str, status: int, said: str
) -> None:
    document = relu()
    if name == "view":
        document["nodes"][1]["target"] = "aten.clone.default"
    written = repro.write(document, kind, {}, 0, rule, "", function.load(f"{path}:{name}"))
    about = f"{rule} says more than that: it may be broken where the status is 0."
    assert (about in written) == (not (rule == "rewrite/values" and kind == "rewrite"))
    script = tmp_path / "repro.py"
    script.write_text(written)
    (tmp_path / "replay.py").write_text(repro.tools())
    done = subprocess.run([sys.executable, str(script)], check=False, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stdout and ("does not show" in done.stdout) == ("does not show" in said)


def test_a_kept_finding_fails_until_the_pass_is_mended(tmp_path: pathlib.Path) -> None:
    """`graph-oracle keep` writes a test that calls `check_case`."""
    mine, case = tmp_path / "mypass.py", tmp_path / "drops.graph"
    mine.write_text(SOURCE)
    case.write_text("pass rewrite\nx = input : f32[4]\nr = relu(x) : f32[4]\noutput r\n")
    kept = [*command(), "keep", str(case), str(tmp_path / "tests"), "--python", f"{mine}:drop"]
    subprocess.run(kept, check=True, capture_output=True)
    test = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "tests" / "test_drops.py")]
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[1])}
    today = subprocess.run(test, check=False, capture_output=True, text=True, env=environment)
    assert today.returncode == 1 and "drops.graph is wrong" in today.stdout, today.stdout
    mine.write_text(SOURCE.replace("if node.target is RELU:", "if False:"))
    mended = subprocess.run(test, check=False, capture_output=True, text=True, env=environment)
    assert mended.returncode == 0, mended.stdout


def test_a_case_is_checked_by_one_of_two() -> None:
    with pytest.raises(ValueError, match="a function, or else worker=CMD"):
        check_case("case.graph")
