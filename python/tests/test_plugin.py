"""The pytest plugin, in runs of pytest of its own."""

import pathlib
import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

# The plugin is loaded by name: without an installed distribution there is no entry point.
_PACKAGE = pathlib.Path(__file__).resolve().parents[1]
_GRAPHS = """
import pytest
import graph_oracle as oracle

BEFORE = oracle.Graph("x = input : f32[4]\\ny = relu(x)\\nz = neg(y)\\noutput z\\n")
SAME = oracle.Graph("x = input : f32[4]\\ny = relu(x)\\nz = neg(y)\\noutput z\\n")
WRONG = oracle.Graph("x = input : f32[4]\\ny = relu(x)\\nz = neg(y)\\noutput y\\n")
"""
# As if the judge could not tell: which graphs it cannot tell is not the plugin's matter.
_UNDECIDED = """
def undecided(monkeypatch):
    verdict = oracle.judge.Verdict("rewrite", "undecided", [], {}, [], reasons=[oracle.Reason("test", "it is open")])
    monkeypatch.setattr(oracle.judge, "check_pair", lambda *args, **options: verdict)
    return verdict
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Runs pytest on a file of tests; returns its result."""
    monkeypatch.setenv("PYTHONPATH", str(_PACKAGE))

    def runs(source, *arguments):
        pytester.makepyfile(test_it=source)
        # Installed or not, it is loaded once, by name.
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        return pytester.runpytest_subprocess("-p", "graph_oracle.pytest_plugin", "-p", "no:cacheprovider", *arguments)

    return runs


def test_importing_the_plugin_imports_neither_torch_nor_the_judge():
    code = "import sys, graph_oracle.pytest_plugin\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(_PACKAGE)})


def test_a_right_pass_and_a_wrong_one(run):
    found = run(
        _GRAPHS
        + """
def test_right(graph_oracle):
    assert graph_oracle.assert_pass_ok(BEFORE, SAME, "bucketing")
    assert graph_oracle.check(BEFORE, WRONG, "bucketing").verdict == "violated"

def test_wrong(graph_oracle):
    graph_oracle.assert_pass_ok(BEFORE, WRONG, "bucketing")
"""
    )
    found.assert_outcomes(passed=1, failed=1)
    found.stdout.fnmatch_lines(["graph-oracle: bucketing is wrong: *"])
    # What is shown is the finding, not the plugin's own code.
    assert "pytest_plugin.py" not in found.stdout.str()


def test_undecided_fails_unless_it_is_allowed(run):
    found = run(
        _GRAPHS
        + _UNDECIDED
        + """
def test_fails(graph_oracle, monkeypatch):
    undecided(monkeypatch)
    graph_oracle.assert_pass_ok(BEFORE, SAME)

def test_is_allowed(graph_oracle, monkeypatch):
    undecided(monkeypatch)
    graph_oracle.assert_pass_ok(BEFORE, SAME, allow_undecided=True)

@pytest.mark.graph_oracle(allow_undecided=True)
def test_is_allowed_by_its_marker(graph_oracle, monkeypatch):
    undecided(monkeypatch)
    graph_oracle.assert_pass_ok(BEFORE, SAME)

@pytest.mark.graph_oracle(allow_undecided=True)
def test_the_argument_goes_before_the_marker(graph_oracle, monkeypatch):
    undecided(monkeypatch)
    graph_oracle.assert_pass_ok(BEFORE, SAME, allow_undecided=False)
""",
        "--strict-markers",
    )
    found.assert_outcomes(passed=2, failed=2)
    found.stdout.fnmatch_lines(["*it is open*", "*allow_undecided=True lets this pass*"])


def test_refused_fails_even_where_undecided_is_allowed(run):
    found = run(
        _GRAPHS
        + """
@pytest.mark.graph_oracle(allow_undecided=True)
def test_refused(graph_oracle, monkeypatch):
    verdict = oracle.judge.Verdict("rewrite", "refused", [], {}, [], reasons=[oracle.Reason("test", "no such thing")])
    monkeypatch.setattr(oracle.judge, "check_pair", lambda *args, **options: verdict)
    graph_oracle.assert_pass_ok(BEFORE, SAME)
"""
    )
    found.assert_outcomes(failed=1)


def test_a_marker_that_says_what_nobody_knows(run):
    found = run(
        _GRAPHS
        + """
@pytest.mark.graph_oracle(allow_undecidde=True)
def test_it(graph_oracle):
    pass
"""
    )
    assert "not allow_undecidde" in found.stdout.str() + found.stderr.str()
    assert found.ret != 0


_SNAPSHOTS = (
    _GRAPHS
    + """
def test_graph(graph_oracle):
    graph_oracle.snapshot(BEFORE, "graph")

def test_verdict(graph_oracle):
    graph_oracle.snapshot(graph_oracle.check(BEFORE, WRONG, "bucketing"), "verdict")
"""
)


def test_snapshots(run, pytester):
    folder = pytester.path / "snapshots"
    missing = run(_SNAPSHOTS)
    missing.assert_outcomes(failed=2)
    missing.stdout.fnmatch_lines(["*there is no snapshot*graph.txt; run pytest --graph-oracle-update to write it*"])
    assert not folder.exists()

    run(_SNAPSHOTS, "--graph-oracle-update").assert_outcomes(passed=2)
    assert "relu(" in (folder / "graph.txt").read_text()
    assert "is wrong" in (folder / "verdict.txt").read_text()

    run(_SNAPSHOTS).assert_outcomes(passed=2)

    kept = (folder / "graph.txt").read_text()
    (folder / "graph.txt").write_text(kept.replace("relu", "gelu"))
    changed = run(_SNAPSHOTS)
    changed.assert_outcomes(passed=1, failed=1)
    changed.stdout.fnmatch_lines(["*graph is not as in its snapshot*", "--- snapshots/graph.txt", "-*gelu*", "+*relu*"])
    assert "gelu" in (folder / "graph.txt").read_text()


def test_a_snapshot_stays_in_its_folder(run, pytester):
    found = run(
        _GRAPHS
        + """
@pytest.mark.parametrize("name", ["../out", "a/b", "", ".hidden", "a\\x1b"])
def test_it(graph_oracle, name):
    graph_oracle.snapshot(BEFORE, name)
""",
        "--graph-oracle-update",
    )
    found.assert_outcomes(failed=5)
    found.stdout.fnmatch_lines(["*is no name of a snapshot*"])
    assert not list(pytester.path.rglob("*.txt"))


_COMPILES = """
import pytest
import torch
import torch._dynamo.backends.debugging  # before the partitioner is replaced, which it takes over

def step(x, y):
    return (torch.sin(x) * y).sum()

def compiled():
    torch._dynamo.reset()
    x, y = (torch.randn(4, requires_grad=True) for _ in range(2))
    torch.compile(step, backend="aot_eager_decomp_partition")(x, y).backward()

@pytest.fixture
def wrong_partitioner(monkeypatch):
    '''As if the partitioner's forward gave twice what it should.'''
    from torch._functorch import partitioners

    original = partitioners.min_cut_rematerialization_partition

    def wrong(joint, *args, **kwargs):
        forward, backward = original(joint, *args, **kwargs)
        for node in forward.graph.nodes:
            if node.target is torch.ops.aten.sin.default:
                node.target = torch.ops.aten.cos.default
        return forward, backward

    import sys
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.") and vars(module).get("min_cut_rematerialization_partition") is original:
            monkeypatch.setattr(module, "min_cut_rematerialization_partition", wrong)
"""


def test_watch(run):
    source = (
        _COMPILES
        + """
def test_right():
    compiled()

def test_wrong(wrong_partitioner):
    compiled()

@pytest.mark.graph_oracle(watch=False)
def test_left_out(wrong_partitioner):
    compiled()

def test_fails_by_itself(wrong_partitioner):
    compiled()
    assert not "by itself"
"""
    )
    found = run(source, "--graph-oracle=watch")
    found.assert_outcomes(passed=2, failed=2)
    found.stdout.fnmatch_lines(["graph-oracle watched * passes of torch.compile: 1 not found sound"])
    found.stdout.fnmatch_lines(["*partition*is wrong*"])
    found.stdout.fnmatch_lines(["*by itself*", "*graph-oracle*", "*is wrong*"])
    run(source, "-k", "not itself").assert_outcomes(passed=3, deselected=1)


def test_watch_by_the_marker_alone(run):
    found = run(
        _COMPILES
        + """
@pytest.mark.graph_oracle(watch=True)
def test_wrong(wrong_partitioner):
    compiled()
"""
    )
    found.assert_outcomes(failed=1)


def test_no_way_out_of_a_test_hides_a_wrong_pass(run):
    found = run(
        _COMPILES
        + """
import unittest

def test_skips(wrong_partitioner):
    compiled()
    pytest.skip("not today")

def test_xfails(wrong_partitioner):
    compiled()
    pytest.xfail("not yet")

def test_raises_skip(wrong_partitioner):
    compiled()
    raise unittest.SkipTest("not today")

class Tests(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def partitioner(self, wrong_partitioner):
        pass

    def test_skips(self):
        compiled()
        self.skipTest("not today")

    def test_fails(self):
        compiled()
        self.fail("by itself")

def test_skips_a_right_one():
    compiled()
    pytest.skip("nothing was wrong")

@pytest.mark.xfail
def test_is_known(wrong_partitioner):
    compiled()
""",
        "--graph-oracle=watch",
    )
    found.assert_outcomes(failed=5, skipped=1, xfailed=1)
    # In CI pytest tells all of it once more in its summary.
    told = found.stdout.str().split("short test summary info")[0]
    assert told.count("partition by wrong is wrong") == 5, told


def test_an_exit_comes_after_the_report_of_a_wrong_pass(run):
    found = run(
        _COMPILES
        + """
def test_exits(wrong_partitioner):
    compiled()
    pytest.exit("enough")

def test_does_not_run():
    pass
""",
        "--graph-oracle=watch",
    )
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(["*partition*is wrong*", "*enough*"])


def test_skipping_hides_nothing_undecided_unless_that_is_allowed(run):
    found = run(
        _GRAPHS
        + """
from graph_oracle.pytorch import watch
from graph_oracle.pytorch.seen import Seen, Watched

@pytest.fixture(autouse=True)
def one_undecided(monkeypatch):
    import contextlib
    verdict = oracle.judge.Verdict("rewrite", "undecided", [], {}, [], reasons=[oracle.Reason("test", "it is open")])

    @contextlib.contextmanager
    def watched(report):
        seen = Seen()
        seen.add(Watched("mine", "rewrite", verdict))
        yield seen

    monkeypatch.setattr(watch, "watch", watched)

def test_fails():
    pytest.skip("not today")

@pytest.mark.graph_oracle(allow_undecided=True)
def test_is_skipped():
    pytest.skip("not today")
""",
        "--graph-oracle=watch",
    )
    found.assert_outcomes(failed=1, skipped=1)
    found.stdout.fnmatch_lines(["*it is open*", "*not today*"])


def test_watch_without_torch(run, pytester):
    pytester.mkpydir("torch").joinpath("__init__.py").write_text("raise ModuleNotFoundError('none', name='torch')")
    found = run("def test_it():\n    pass\n", "--graph-oracle=watch")
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(["*there is no torch in this Python*"])
