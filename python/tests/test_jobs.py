"""Jobs of clusters, run here as their schedulers would run them: each script once for each index, srun stood in for.

They need graph-oracle (GRAPH_ORACLE or PATH); what looks at YAML needs PyYAML, and for its schema kubernetes-validate.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from graph_oracle.campaign import campaign
from graph_oracle.jobs import Jobs, kubernetes, main, slurm
from graph_oracle.program import command
from graph_oracle.shards import read_folder

SHARDS = 3
# What a shell, YAML and Kubernetes could all read as something of their own.
ODD = 'exec {program} worker --candidate memory-stale-last-use # it\'s "odd": $HOME $(HOME) $$ \\ é {{x}}'


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    """An environment whose PATH has graph-oracle and a stand-in for srun."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "graph-oracle").write_text(f'#!/bin/sh\nexec {shlex.join(command())} "$@"\n')
    (folder / "graph-oracle").chmod(0o755)
    (folder / "srun").write_text('#!/bin/sh\nexec "$@"\n')
    (folder / "srun").chmod(0o755)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def jobs(out: Path) -> Jobs:
    worker = ODD.format(program=shlex.join(command()))
    return Jobs(("memory", "--worker", worker, "--cases", "192"), SHARDS, str(out), image="image:1", claim="disk")


def expected(folder: Path) -> dict[str, bytes]:
    campaign(
        "memory", worker=ODD.format(program=shlex.join(command())), cases=192, shards=SHARDS, out=folder, progress=print
    )
    return read_folder(folder)


def comment(text: str, word: str) -> str:
    """The command in the comment at the top of a file."""
    line = next(line for line in text.splitlines() if line.startswith("#     ") and word in line)
    return line.removeprefix("#     ").split("    (")[0]


def test_the_script_of_slurm_runs_each_shard(tmp_path: Path, programs: dict[str, str]) -> None:
    out = tmp_path / "it's here"
    script = slurm(jobs(out))
    assert f"--array=0-{SHARDS - 1}\n" in script
    for index in range(SHARDS):
        done = subprocess.run(
            ["bash"],
            input=script,
            text=True,
            capture_output=True,
            check=False,
            env={**programs, "SLURM_ARRAY_TASK_ID": str(index)},
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert read_folder(out) == expected(tmp_path / "expected")
    shown = subprocess.run(
        ["bash", "-c", comment(script, "graph-oracle results")],
        env=programs,
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 1 and "192 cases" in shown.stdout and "partial" not in shown.stdout


def test_what_cannot_run_fails_the_job(tmp_path: Path, programs: dict[str, str]) -> None:
    script = slurm(Jobs(("memory", "--candidate", "nobody"), 1, str(tmp_path)))
    done = subprocess.run(
        ["bash"],
        input=script,
        text=True,
        capture_output=True,
        check=False,
        env={**programs, "SLURM_ARRAY_TASK_ID": "0"},
    )
    assert done.returncode == 2


def test_the_job_of_kubernetes_runs_each_shard(tmp_path: Path, programs: dict[str, str]) -> None:
    yaml: Any = pytest.importorskip("yaml", reason="PyYAML is not installed")
    out = tmp_path / "found"
    text = kubernetes(jobs(out))
    job = yaml.safe_load(text)
    spec = job["spec"]
    assert (spec["completionMode"], spec["completions"]) == ("Indexed", SHARDS)
    container = spec["template"]["spec"]["containers"][0]
    for index in range(SHARDS):
        arguments = [expand(word) for word in container["command"]]
        done = subprocess.run(
            arguments, env={**programs, "JOB_COMPLETION_INDEX": str(index)}, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert read_folder(out) == expected(tmp_path / "expected")
    words = shlex.split(comment(text, "kubectl run"))
    pod = json.loads(next(word for word in words if word.startswith("--overrides=")).removeprefix("--overrides="))
    shown = subprocess.run(
        pod["spec"]["containers"][0]["command"], env=programs, capture_output=True, text=True, check=False
    )
    assert shown.returncode == 1 and "192 cases" in shown.stdout


def expand(word: str) -> str:
    """What Kubernetes makes of a word of a command: `$$` is a dollar sign, and a variable that it does not know
    stays."""
    assert "$(HOME)" not in word.replace("$$", "")
    return word.replace("$$", "$")


def test_the_job_keeps_to_the_schema_of_kubernetes() -> None:
    yaml: Any = pytest.importorskip("yaml", reason="PyYAML is not installed")
    schema: Any = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    text = kubernetes(jobs(Path("/found")))
    job = yaml.safe_load(text)
    schema.validate(job, "1.30", strict=True)
    words = shlex.split(comment(text, "kubectl run"))
    pod = json.loads(next(word for word in words if word.startswith("--overrides=")).removeprefix("--overrides="))
    schema.validate({"apiVersion": "v1", "kind": "Pod", **pod}, "1.30", strict=True)
    with pytest.raises(schema.ValidationError):
        schema.validate({**job, "spec": {**job["spec"], "completionsMode": "Indexed"}}, "1.30", strict=True)


def test_the_command_line(capsys: Any) -> None:
    assert main(["slurm", "bucketing", "--shards", "8", "--jobs", "2", "--cases", "1M", "--set", "cap=64MiB"]) == 0
    script = capsys.readouterr().out
    assert "srun graph-oracle fuzz bucketing --cases 1M --set cap=64MiB --jobs 2 --shard" in script
    assert "--cpus-per-task=2\n" in script
    refused = {
        "--shard": ["slurm", "memory", "--shards", "2", "--shard", "0/2"],
        "--image": ["kubernetes", "memory", "--shards", "2"],
        "--out": ["kubernetes", "memory", "--shards", "2", "--image", "i", "--out", "here"],
        "control character": ["slurm", "memory", "--shards", "2", "--worker", "a\nb"],
        "at least 1": ["slurm", "memory", "--shards", "0"],
    }
    for why, arguments in refused.items():
        assert main(arguments) == 2
        said = capsys.readouterr()
        assert why in said.err and not said.out and said.err.count("\n") == 1
