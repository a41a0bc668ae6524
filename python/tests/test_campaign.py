"""Campaigns in shards: on this machine, and on a Ray cluster of three processes on it (one that only leads, and two
nodes).

They need no torch. Those on a cluster are skipped where Ray is not installed.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import graph_oracle
from graph_oracle import CannotJudge
from graph_oracle.campaign import CampaignResult, _plan, _read, _shards, campaign, main
from graph_oracle.program import command
from graph_oracle.shards import read_folder, write_folder

CASES = 256
SHARDS = 4


def worker(marker: Path | None = None) -> str:
    """The command of a worker that is wrong in a few cases. With a marker, the first that starts writes its process
    number there and waits, so that whoever wants to can end it in the middle of a shard."""
    serve = f"{shlex.join(command())} worker --candidate memory-stale-last-use"
    if marker is None:
        return serve
    mark = shlex.quote(str(marker))
    return f"if mkdir {mark} 2>&-; then echo $$ >{mark}/part; mv {mark}/part {mark}/pid; sleep 30; fi; exec {serve}"


def run(out: Path, marker: Path | None = None, **named: Any) -> CampaignResult:
    named = {"cases": CASES, "shards": SHARDS, "progress": print, **named}
    return campaign("memory", worker=worker(marker), out=out, **named)


def alone(out: Path, *arguments: str, of: str = worker()) -> None:
    """One process of graph-oracle, without shards unless some are asked for."""
    given = ["fuzz", "memory", "--worker", of, "--cases", str(CASES), "--out", str(out), *arguments]
    done = subprocess.run([*command(), *given], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1, 3), done.stderr


def in_turn(out: Path, of: str = worker()) -> dict[str, bytes]:
    """All shards one after another, as files."""
    for shard in range(SHARDS):
        alone(out / f"shard-{shard}-of-{SHARDS}", "--shard", f"{shard}/{SHARDS}", of=of)
    return read_folder(out)


def ancestors(pid: int) -> list[int]:
    line = []
    while pid > 1:
        line.append(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return line


def name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def meanwhile(marker: Path, act: Callable[[list[int]], None]) -> threading.Thread:
    """Waits until a worker has marked that it runs; then `act` gets its process number and those of its ancestors."""

    def wait() -> None:
        end = time.monotonic() + 60
        while not (marker / "pid").exists() and time.monotonic() < end:
            time.sleep(0.05)
        act(ancestors(int((marker / "pid").read_text())))

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def is_gone(pid: int) -> bool:
    """Whether a process has ended, or does within some seconds."""
    end = time.monotonic() + 15
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


# On this machine.


def test_shards_find_what_one_process_finds(tmp_path: Path) -> None:
    told: list[str] = []
    found = run(tmp_path / "shards", progress=told.append)
    alone(tmp_path / "one")
    one = subprocess.run(
        [*command(), "results", str(tmp_path / "one"), "--format", "json"], capture_output=True, check=False
    )
    assert found.findings and found.summary["missing_shards"] is None
    expected = json.loads(one.stdout)[0]["total"]
    for key in ("cases", "violated", "useful", "rules", "first_violation", "found"):
        assert found.summary["total"][key] == expected[key], key
    assert (found.status, bool(found), found.lost) == (1, False, {})
    assert len(told) == SHARDS and told[-1].endswith(
        f"{CASES} cases, {found.violated} violated, {len(found.findings)} findings"
    )
    assert f"{CASES} cases" in str(found)


def test_a_killed_process_goes_on(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    killer = meanwhile(marker, lambda line: os.kill(line[1], signal.SIGKILL))
    told: list[str] = []
    run(tmp_path / "out", marker, progress=told.append)
    killer.join()
    assert any("begun 2 times" in line for line in told), told
    assert read_folder(tmp_path / "out") == in_turn(tmp_path / "turn", worker(marker))


def test_no_shard_outlives_a_killed_campaign(tmp_path: Path) -> None:
    marker, killed = tmp_path / "marker", []

    def kill(line: list[int]) -> None:
        killed.append(line[1])
        os.kill(line[2], signal.SIGKILL)

    killer = meanwhile(marker, kill)
    given = ["fuzz", "memory", "--worker", worker(marker), "--cases", str(CASES), "--out", str(tmp_path / "out")]
    subprocess.run([sys.executable, "-m", "graph_oracle.campaign", *given], capture_output=True, check=False)
    killer.join()
    assert is_gone(killed[0])


def test_a_second_run_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    before = run(out, cases=128, shards=2)
    assert before.cases == 128
    # As many shards as there are.
    assert run(out, shards=None).cases == CASES
    assert len(list(out.glob("shard-*"))) == 2
    assert run(out, shards=None).summary == run(out, shards=None).summary


def test_nothing_found_is_true(tmp_path: Path) -> None:
    found = campaign("rewrite", cases=64, out=tmp_path, arguments=["--values", "off"], progress=print)
    assert found and found.status == 0 and not found.findings


def test_what_cannot_run_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CannotJudge, match="nobody"):
        campaign("bucketing", candidate="nobody", out=tmp_path)
    with pytest.raises(ValueError, match="one of"):
        campaign("bucketing", candidate="a", worker="b", out=tmp_path)
    for wrong in ({"shards": 0}, {"cluster": "dask"}, {"jobs": 0}):
        with pytest.raises(CannotJudge, match="argument --"):
            run(tmp_path, **wrong)
    # The module is imported by now, and has the name of what is offered.
    assert callable(graph_oracle.campaign)
    with pytest.raises(CannotJudge, match="several"):
        _read(["fuzz", "bucketing", "--candidate", "a", "--candidate", "b", "--out", "x"])


def test_without_ray_it_says_what_to_install(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["fuzz", "memory", "--cluster", "ray", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "graph-oracle: ray is missing in this Python: pip install 'graph-oracle[ray]'\n"


def test_there_is_no_shard_without_a_case(tmp_path: Path) -> None:
    def shards(*arguments: str) -> int:
        return _shards(_read(["fuzz", "memory", "--out", str(tmp_path), *arguments]), 2)

    assert shards("--cases", "1M") == 8 and shards("--cases", "1M", "--jobs", "2") == 4
    assert shards("--cases", "1025") == 3 and shards("--cases", "3") == 1
    assert shards("--cases", "65", "--worker", "w") == 2 and shards("--shards", "7") == 7


def test_a_function_is_served_by_a_worker(tmp_path: Path) -> None:
    (tmp_path / "my pass.py").write_text("f = None\n")

    def arguments(*given: str) -> tuple[tuple[str, ...], set[str]]:
        plan = _plan(_read(["fuzz", "memory", "--out", str(tmp_path), *given]), 1)
        return plan.arguments, set(plan.files)

    here = str(tmp_path / "my pass.py")
    assert arguments("--python", f"{here}:f")[0][-2:] == ("--python", f"{here}:f")
    words, files = arguments("--python", f"{here}:f", "--cluster", "ray")
    assert (words[-1], files) == ("my pass.py:f", {"my pass.py"})
    assert arguments("--python", "mine.passes:f", "--cluster", "ray")[0][-1] == "mine.passes:f"


def test_files_do_not_leave_their_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="leads out"):
        write_folder(tmp_path / "in", {"../x": b""})


# On a cluster.


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    pytest.importorskip("ray", reason="ray is not installed: pip install ray")
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    yield cluster
    import ray

    ray.shutdown()  # type: ignore[no-untyped-call]
    cluster.shutdown()


def test_ray_finds_the_same_to_the_byte(cluster: Any, tmp_path: Path) -> None:
    told: list[str] = []
    found = run(
        tmp_path / "out", cluster="ray", address=cluster.address, progress=told.append, repro=tmp_path / "repro"
    )
    assert len(told) == SHARDS and not found.lost
    assert read_folder(tmp_path / "out") == in_turn(tmp_path / "turn")
    assert len(list((tmp_path / "repro").iterdir())) == sum(len(_found(folder)) for folder in found.folders)


def _found(folder: Path) -> list[Path]:
    return list(folder.glob("*.graph"))


def test_a_killed_worker_of_ray_loses_nothing(cluster: Any, tmp_path: Path) -> None:
    marker, killed = tmp_path / "marker", []

    def kill(line: list[int]) -> None:
        # The worker of graph-oracle, graph-oracle, the worker of Ray, ...
        assert name_of(line[2]).startswith("ray::"), [name_of(pid) for pid in line]
        killed.extend(line[:3])
        os.kill(line[2], signal.SIGKILL)

    killer = meanwhile(marker, kill)
    found = run(tmp_path / "out", marker, cluster="ray", address=cluster.address)
    killer.join()
    assert len(killed) == 3 and not found.lost
    assert read_folder(tmp_path / "out") == in_turn(tmp_path / "turn", worker(marker))
    # Nobody goes on with a shard that nobody waits for.
    assert is_gone(killed[1])


def test_a_lost_node_loses_nothing(cluster: Any, tmp_path: Path) -> None:
    marker, lost = tmp_path / "marker", []

    def remove(line: list[int]) -> None:
        of = [node for node in cluster.worker_nodes if node.all_processes["raylet"][0].process.pid in line]
        cluster.remove_node(of[0], allow_graceful=False)
        lost.append(of[0])

    killer = meanwhile(marker, remove)
    found = run(tmp_path / "out", marker, cluster="ray", address=cluster.address)
    killer.join()
    assert len(lost) == 1 and len(cluster.worker_nodes) == 1 and not found.lost
    assert read_folder(tmp_path / "out") == in_turn(tmp_path / "turn", worker(marker))


def test_what_cannot_run_on_ray_is_one_line(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(CannotJudge, match="nobody"):
        campaign("bucketing", candidate="nobody", cluster="ray", address=cluster.address, out=tmp_path)
    # A file that a worker's command names is sent; one that is not there is told before anything runs.
    with pytest.raises(CannotJudge, match="no such|No such"):
        run(tmp_path, cluster="ray", address=cluster.address, graphs=[tmp_path / "missing.graph"])


def test_files_travel(cluster: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("serve.sh").write_text(f"exec {worker()}\n")
    found = campaign(
        "memory",
        worker="sh ./serve.sh",
        cases=64,
        shards=1,
        out="out",
        cluster="ray",
        address=cluster.address,
        files=["serve.sh"],
        progress=print,
    )
    assert found.cases == 64 and not found.lost


def test_nobody_at_an_address(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install ray")
    if ray.is_initialized():
        ray.shutdown()
    with pytest.raises(CannotJudge, match="no Ray cluster at 127.0.0.1:1"):
        run(tmp_path, cluster="ray", address="127.0.0.1:1")
