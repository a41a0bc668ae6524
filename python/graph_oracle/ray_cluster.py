"""The shards of a campaign as Ray tasks.

Each shard is one task. Ray begins a task again, on another machine if need be, when its worker process or its machine
went away; a shard gives the same whenever and wherever it runs, so nothing is lost but the time. What a shard found
comes back as bytes: the machines need no disk in common. They need this package.

Ray is imported here and nowhere else.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ._oracle import CannotJudge
from .shards import Done, Plan, bring_home, folder_of, read_folder, run_away_from_home

MISSING = "ray is missing in this Python: pip install 'graph-oracle[ray]'"
# Tasks that are handed to Ray at a time, for each shard that can run: what waits there cost memory, and little else.
AHEAD = 2


def connect(address: str | None) -> Any:
    """Ray, connected to a cluster: the one named, or the one that is there, or a new one of this machine."""
    try:
        import ray
    except ImportError:
        raise CannotJudge(MISSING) from None
    if not ray.is_initialized():
        # Without Ray's usage report there is no wait for a network that many clusters lack.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        _reach(address)
        # Ray takes SIGTERM for itself, and ends this process without a word.
        is_main = threading.current_thread() is threading.main_thread()
        before = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise CannotJudge(f"no Ray cluster at {address or 'this machine'}: {_line(error)}") from None
        if is_main:
            signal.signal(signal.SIGTERM, before)
    return ray


def _reach(address: str | None) -> None:
    """Asks in a moment whether somebody is there; Ray would ask for minutes, and then end this process."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except OSError as error:
        raise CannotJudge(f"no Ray cluster at {address}: {error.strerror or error}") from None


def processors(ray: Any) -> int:
    """How many processors the cluster has now."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _task(plan: Plan, shard: int, store: dict[str, bytes], retries: int) -> Done:
    import ray

    done = run_away_from_home(plan, shard, store, retries)
    address = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
    return replace(done, where=str(address))


def run(
    ray: Any, plan: Plan, wanted: Sequence[int], out: Path, repro: Path | None, jobs: int, retries: int
) -> Iterator[Done]:
    """Runs shards on the cluster; each is written below `out` when it is done, and then given."""
    task = ray.remote(num_cpus=jobs, max_retries=retries, scheduling_strategy="SPREAD")(_task)
    shared = ray.put(plan)
    waiting = list(reversed(wanted))
    running: dict[Any, int] = {}
    try:
        while waiting or running:
            while waiting and len(running) < AHEAD * max(1, processors(ray) // max(1, jobs)):
                shard = waiting.pop()
                store = read_folder(folder_of(out, shard, plan.shards))
                running[task.options(name=plan.name(shard)).remote(shared, shard, store, retries)] = shard
            ready, _ = ray.wait(list(running), num_returns=1, timeout=1)
            for one in ready:
                done = _get(ray, one, running.pop(one))
                bring_home(done, plan.shards, out, repro)
                yield done
    finally:
        for one in running:
            ray.cancel(one)


def _get(ray: Any, one: Any, shard: int) -> Done:
    """What a task gave; a task that Ray gave up is a shard that was not done."""
    try:
        done: Done = ray.get(one)
        return done
    except ray.exceptions.RayTaskError as error:
        raise CannotJudge(f"shard {shard}: {_line(getattr(error, 'cause', None) or error)}") from None
    except ray.exceptions.RayError as error:
        return Done(shard, -9, f"{type(error).__name__}: {_line(error)}", "ray", 0.0)


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
