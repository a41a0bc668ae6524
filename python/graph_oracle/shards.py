"""The shards of a campaign, run as processes of this machine.

A shard is `graph-oracle fuzz PASS --shard I/N --out DIR`. Which cases are its own, and what it finds in them, depends
on nothing but the campaign's arguments. One that was killed is begun again in its folder and goes on there. This holds
for a shard on a desk, in a Ray task and in a job of a cluster alike: all of them run it by `run`.

It does not know of any cluster, and needs nothing but Python.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from .program import command

# What a shard may end with that is an answer: nothing found, something found, nothing judged (few cases, for example).
ANSWERS = (0, 1, 3)
# graph-oracle was asked to stop by SIGINT or SIGTERM: what is done is kept.
STOPPED = (130, 143)
# The store's file of lines. It is written last, so that what it counts is there.
STORE = "campaign.jsonl"

# Starts a command that ends when its parent does, however that ended: else a killed worker of Ray would leave its shard
# running. Only Linux has this; elsewhere the shard runs to its end.
_LEASH = """
import ctypes, os, sys
parent = int(sys.argv[1])
try:
    ctypes.CDLL(None).prctl(1, 15)
except (AttributeError, OSError, TypeError):
    pass
if os.getppid() != parent:
    sys.exit(143)
os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class Plan:
    """A campaign, as each of its shards is told of it."""

    # Arguments of graph-oracle, `fuzz` and the pass among them, without what is the shard's own.
    arguments: tuple[str, ...]
    shards: int
    title: str
    # Whether findings are written as folders too (`--repro`).
    repro: bool = False
    # Files that the arguments name, by the names that they have there: for machines that do not share a disk.
    files: Mapping[str, bytes] = field(default_factory=dict)

    def name(self, shard: int) -> str:
        """What a shard is called, for people."""
        return f"{self.title}, shard {shard}/{self.shards}"

    def command(self, shard: int, out: Path, repro: Path) -> list[str]:
        """The command that runs a shard on this machine."""
        own = ["--shard", f"{shard}/{self.shards}", "--out", str(out), "--format", "json"]
        return [*command(), *self.arguments, *own, *(["--repro", str(repro)] if self.repro else [])]


@dataclass(frozen=True)
class Done:
    """A shard that came to its end."""

    shard: int
    # The exit status of graph-oracle; negative: the signal that ended it.
    status: int
    message: str
    where: str
    seconds: float
    # How often it was begun.
    tries: int = 1
    # Its folders by relative path, where it ran on a disk that its asker does not see.
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def answered(self) -> bool:
        return self.status in ANSWERS


@dataclass
class _Running:
    shard: int
    process: subprocess.Popen[bytes]
    complaints: IO[bytes]
    started: float
    tries: int


def folder_of(out: Path, shard: int, shards: int) -> Path:
    """Where a shard's store is below the campaign's folder."""
    return out / f"shard-{shard}-of-{shards}"


def run(plan: Plan, wanted: Sequence[int], out: Path, repro: Path, at_once: int, retries: int) -> Iterator[Done]:
    """Runs shards, `at_once` at a time, and gives each when it is done; one that was killed is begun again.

    Leaving the loop early stops those that run; their folders keep what they did.
    """
    waiting = deque((shard, 1) for shard in wanted)
    running: list[_Running] = []
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(_start(plan, *waiting.popleft(), out, repro))
            ended = [one for one in running if one.process.poll() is not None]
            for one in ended:
                running.remove(one)
                done = _done(one)
                if (done.status < 0 or done.status in STOPPED) and one.tries <= retries:
                    waiting.appendleft((one.shard, one.tries + 1))
                else:
                    yield done
            if not ended:
                time.sleep(0.02)
    finally:
        _stop(running)


def _start(plan: Plan, shard: int, tries: int, out: Path, repro: Path) -> _Running:
    arguments = plan.command(shard, folder_of(out, shard, plan.shards), repro)
    complaints = tempfile.TemporaryFile()  # noqa: SIM115  it is open as long as the process
    # `python` in a worker's command is to be the Python that runs here.
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _LEASH, str(os.getpid()), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=complaints,
        cwd=out if plan.files else None,
        env={**os.environ, "PATH": path},
    )
    return _Running(shard, process, complaints, time.monotonic(), tries)


def _done(one: _Running) -> Done:
    one.complaints.seek(0)
    message = one.complaints.read().decode(errors="replace").strip()
    one.complaints.close()
    seconds = time.monotonic() - one.started
    return Done(one.shard, one.process.returncode, message[-20_000:], socket.gethostname(), seconds, one.tries)


def _stop(running: Sequence[_Running]) -> None:
    for one in running:
        one.process.terminate()
    for one in running:
        try:
            one.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            one.process.kill()
            one.process.wait()
        one.complaints.close()


def run_away_from_home(plan: Plan, shard: int, store: Mapping[str, bytes], retries: int) -> Done:
    """Runs a shard in a folder of its own, which is sent home as bytes. `store`: what home has of it already."""
    with tempfile.TemporaryDirectory(prefix="graph-oracle-") as scratch:
        out = Path(scratch)
        write_folder(out, plan.files)
        write_folder(folder_of(out, shard, plan.shards), store)
        done = next(run(plan, [shard], out, out / "repro", 1, retries))
        kept = {f"store/{name}": data for name, data in read_folder(folder_of(out, shard, plan.shards)).items()}
        kept |= {f"repro/{name}": data for name, data in read_folder(out / "repro").items()}
        return Done(shard, done.status, done.message, done.where, done.seconds, done.tries, kept)


def bring_home(done: Done, shards: int, out: Path, repro: Path | None) -> None:
    """Writes what a shard sent."""
    parts: dict[str, dict[str, bytes]] = {"store": {}, "repro": {}}
    for name, data in done.files.items():
        part, _, rest = name.partition("/")
        parts[part][rest] = data
    if repro is not None:
        write_folder(repro, parts["repro"])
    write_folder(folder_of(out, done.shard, shards), parts["store"])


def read_folder(folder: Path) -> dict[str, bytes]:
    """The files below a folder, by relative path; none where there is no folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files below a folder, each whole or not at all, the store's lines last."""
    for name in sorted(files, key=lambda name: name == STORE):
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{name}: leads out of {folder}")
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_bytes(files[name])
        os.replace(part, path)
