"""The table of what the package leans on in torch, against the torch that is installed; how others are refused."""

import ast
import pathlib
import subprocess
import sys

import pytest
import torch

from graph_oracle.pytorch import versions

_PACKAGE = pathlib.Path(versions.__file__).resolve().parent
# Objects of the classes whose rows are of instances.
_OBJECTS = {
    "torch.fx.experimental.symbolic_shapes.ShapeEnv": lambda: versions.get(
        "torch.fx.experimental.symbolic_shapes.ShapeEnv"
    )(),
    "torch.fx.graph.Graph": torch.fx.Graph,
}


@pytest.mark.skipif(
    not versions.FIRST <= (versions.version() or (0, 0)) <= versions.LAST,
    reason=f"the table does not tell {torch.__version__}",
)
@pytest.mark.parametrize("row", versions.ROWS, ids=lambda row: row.path)
def test_a_row_is_there_exactly_when_the_table_says_so(row):
    there = versions.have(row.path)
    if row.of_instance:
        owner, _, name = row.path.rpartition(".")
        there = hasattr(_OBJECTS[owner](), name)
    assert there == (row.first <= versions.version() <= row.last), f"{row.path} in torch {torch.__version__}"


def test_no_row_stands_twice():
    paths = [row.path for row in versions.ROWS]
    assert sorted(paths) == sorted(set(paths))
    for row in versions.ROWS:
        assert versions.FIRST <= row.first <= row.last <= versions.LAST, row.path


def test_what_is_not_in_the_table_is_not_answered():
    with pytest.raises(KeyError, match="not in the table"):
        versions.have("torch.nn.Module")


def _private(module):
    parts = module.split(".")
    is_private = any(part.startswith("_") for part in parts[1:])
    return parts[0] == "torch" and is_private and not module.startswith("torch.ops")


@pytest.mark.parametrize("path", sorted(_PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(_PACKAGE)))
def test_imports_of_private_modules_have_a_row(path):
    """What is imported from a private module of torch is in the table, or a module of which the table has names."""
    known = {row.path for row in versions.ROWS}
    modules = {row.path.rpartition(".")[0] for row in versions.ROWS} | known
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and _private(node.module):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                assert name in known or name in modules, f"{path.name}:{node.lineno}: {name} has no row"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _private(alias.name):
                    assert alias.name in modules, f"{path.name}:{node.lineno}: {alias.name} has no row"


@pytest.mark.parametrize(
    ("text", "version"),
    [("2.15.0+cpu", (2, 15)), ("2.8.0", (2, 8)), ("2.16.0.dev20261001", (2, 16)), ("3", None), ("x.y", None)],
)
def test_versions_are_read(text, version):
    assert versions.parsed(text) == version


@pytest.mark.parametrize(
    ("version", "accepted"), [("2.7.1", False), ("2.8.0", True), ("2.15.1", True), ("2.16.0", False)]
)
def test_other_versions_are_refused_in_one_line(monkeypatch, version, accepted):
    monkeypatch.setattr(torch, "__version__", version)
    monkeypatch.delenv("GRAPH_ORACLE_ANY_TORCH", raising=False)
    line = versions.missing()
    assert (line is None) == accepted
    if not accepted:
        assert version in line and "\n" not in line
        monkeypatch.setenv("GRAPH_ORACLE_ANY_TORCH", "1")
        assert versions.missing() is None


def test_importing_the_table_does_not_import_torch():
    code = "import sys, graph_oracle.pytorch.versions; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(_PACKAGE.parents[1])})
