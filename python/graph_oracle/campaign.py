"""A campaign in shards, on the processors of this machine or on a Ray cluster: `graph_oracle.campaign("bucketing",
...)`.

    found = graph_oracle.campaign("bucketing", candidate="pr158663", cases=100_000, out="found", cluster="ray")
    if not found:                    # something was found, or something was not done
        print(found)

It does what `graph-oracle fuzz --shard I/N` and `graph-oracle results` do (docs/fuzzing.md), N times and once, and
begins a shard again that was killed. Called again with the same arguments it goes on with what is below `out`.

A case is judged in one shard, whatever the number of shards; so the counts are those of one process. Each shard
chooses by itself which of its violations it reduces, so that several shards may find more examples of a cause than one.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from ._oracle import CannotJudge
from .arguments import demand, demand_number, demand_text, path_of, paths_of, texts_of
from .judge import KINDS, setting
from .program import command
from .shards import Done, Plan, folder_of, run

# Shards for each processor: so many that a killed one loses little, and that none is waited for long at the end.
SHARES = 4
# Cases in a batch, the least that a shard can do, and the same with a worker (oracle/harness/campaign,
# oracle/cli/fuzz).
BATCH, WORKER_BATCH = 512, 64
CASES = 10_000
# How often a shard is begun again.
RETRIES = 3
Progress = Callable[[str], None]


@dataclass(frozen=True)
class CampaignResult:
    """What a campaign found: what `graph-oracle results --format json` says of all its shards, and which are missing.

    True only if all was done, something was judged, and nothing was found.
    """

    out: Path
    folders: list[Path]
    summary: dict[str, Any]
    text: str
    # The exit status that graph-oracle gives: 0 nothing was found, 1 something was, 2 not all was done, 3 nothing
    # judged.
    status: int
    # The shards that were not done, and why.
    lost: dict[int, str] = field(default_factory=dict)

    @property
    def cases(self) -> int:
        return int(self.summary["total"]["cases"])

    @property
    def violated(self) -> int:
        return int(self.summary["total"]["violated"])

    @property
    def findings(self) -> list[dict[str, Any]]:
        """The distinct findings, by the number of their case: "rule", "case", "report", ..."""
        return list(self.summary["total"]["found"])

    @property
    def causes(self) -> list[dict[str, Any]]:
        return list(self.summary.get("causes") or [])

    def __bool__(self) -> bool:
        return self.status == 0

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class _Given:
    """A campaign as it was asked for: the arguments of `graph-oracle fuzz`, and where they are to run."""

    rest: tuple[str, ...]
    out: Path
    cases: str
    shards: int | None
    cluster: str | None
    address: str | None
    jobs: int
    retries: int
    candidates: list[str]
    worker: str | None
    python: str | None
    known: str | None
    graphs: list[str]
    sent: list[str]
    repro: Path | None
    shown: list[str]

    @property
    def title(self) -> str:
        return " ".join(word for word in self.rest if word in (*KINDS, "memory", "all", "execute")) or "campaign"


def campaign(
    pass_kind: str,
    *,
    python: str | None = None,
    worker: str | None = None,
    candidate: str | None = None,
    cases: int = CASES,
    seed: int = 0,
    out: str | os.PathLike[str],
    shards: int | None = None,
    cluster: str | None = None,
    address: str | None = None,
    jobs: int = 1,
    retries: int = RETRIES,
    known: str | os.PathLike[str] | None = None,
    graphs: Sequence[str | os.PathLike[str]] = (),
    repro: str | os.PathLike[str] | None = None,
    files: Sequence[str | os.PathLike[str]] = (),
    arguments: Sequence[str] = (),
    progress: Progress | None = None,
    **options: object,
) -> CampaignResult:
    """Runs a campaign in shards and gives what all of them found.

    Who is judged is one of `python` ("FILE.py:FUNCTION" or "MODULE:FUNCTION"), `worker` (a command) and `candidate` (a
    name; the reference, if nothing else is given). `cluster`: None for this machine, or "ray", at `address` or where
    Ray finds one. `shards`: by default four for each processor. `jobs`: processors that one shard takes. `files`: what
    a worker's command names, for machines that do not see this one's disk. `arguments`: more of `graph-oracle fuzz`.
    `options`: of the pass, such as cap="64MiB". `progress` is told a line when a shard is done; by default the line
    goes to standard error.

    Raises CannotJudge where it cannot run at all.
    """
    demand_text("campaign(pass_kind, ...)", pass_kind, 'a kind of pass, such as "bucketing"', empty=False)
    for name, who in (("python", python), ("worker", worker), ("candidate", candidate), ("address", address)):
        if who is not None:
            demand_text(f"campaign({name}=...)", who, empty=False)
    demand(address is None or cluster is not None, "campaign(address=...)", "None without a cluster", address)
    demand_number("campaign(retries=...)", retries, 0)
    demand(progress is None or callable(progress), "campaign(progress=...)", "a function of a line", progress)
    judged = [
        (flag, value)
        for flag, value in (("--python", python), ("--worker", worker), ("--candidate", candidate))
        if value is not None
    ]
    if len(judged) > 1:
        raise CannotJudge("campaign takes one of python, worker and candidate")
    given = ["fuzz", pass_kind, *(word for pair in judged for word in pair), "--cases", str(cases), "--seed", str(seed)]
    given += ["--out", path_of("campaign(out=...)", out), "--jobs", str(jobs), "--retries", str(retries)]
    optional = [
        ("--shards", shards),
        ("--cluster", cluster),
        ("--cluster-address", address),
        ("--known", None if known is None else path_of("campaign(known=...)", known)),
        ("--repro", None if repro is None else path_of("campaign(repro=...)", repro)),
    ]
    for flag, value in optional:
        given += [flag, str(value)] if value is not None else []
    given += [word for graph in paths_of("campaign(graphs=...)", graphs) for word in ("--graph", graph)]
    given += [word for file in paths_of("campaign(files=...)", files) for word in ("--cluster-file", file)]
    given += [word for key, value in options.items() for word in ("--set", f"{key}={setting(value)}")]
    given += texts_of("campaign(arguments=...)", arguments, "a list of strings")
    return _campaign(_read(given), progress or _to_stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """`graph-oracle fuzz --cluster ray ...` comes here."""
    terminated: list[int] = []

    def terminate(signum: int, _: object) -> None:
        # Of all that is no Exception, Ray lets only this one pass unharmed.
        terminated.append(signum)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, terminate)
    try:
        given = _read(sys.argv[1:] if arguments is None else arguments)
        lost = _run(given, _to_stderr)
        folders = _folders(given.out)
        shown = subprocess.run([*command(), "results", *map(str, folders), *given.shown], check=False).returncode
        return 2 if lost else shown
    except CannotJudge as error:
        print(f"graph-oracle: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("graph-oracle: stopped; the same command goes on from here", file=sys.stderr)
        return 143 if terminated else 130


def _read(arguments: Sequence[str]) -> _Given:
    parser = _Parser(
        prog="python -m graph_oracle.campaign",
        allow_abbrev=False,
        usage="%(prog)s fuzz PASS --out DIR [options]",
        description="Runs a campaign in shards. Other options are those of `graph-oracle fuzz`.",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="where to keep what is found")
    parser.add_argument("--shards", type=_positive, metavar="N", help="how many; default: four for each processor")
    parser.add_argument("--cluster", choices=["ray"], help="run the shards there; default: on this machine")
    parser.add_argument("--cluster-address", metavar="ADDR", help="where the cluster is; default: where Ray finds one")
    parser.add_argument(
        "--cluster-file", action="append", default=[], metavar="FILE", help="send this along (repeatable)"
    )
    parser.add_argument(
        "--jobs", type=_positive, default=1, metavar="J", help="processors that a shard takes; default: 1"
    )
    parser.add_argument("--retries", type=int, default=RETRIES, metavar="N", help="how often a shard is begun again")
    parser.add_argument("--cases", default=str(CASES), metavar="N", help="how many")
    parser.add_argument("--candidate", action="append", default=[], metavar="NAME", help="who is judged")
    parser.add_argument("--worker", metavar="CMD", help="who is judged")
    parser.add_argument("--python", metavar="FILE.py:FUNCTION", help="who is judged")
    parser.add_argument("--known", metavar="FILE", help="findings that are known")
    parser.add_argument("--graph", action="append", default=[], metavar="FILE", help="a real graph (repeatable)")
    parser.add_argument("--repro", type=Path, metavar="DIR", help="write each finding as a folder there")
    for flag in ("--format", "--show", "--html"):
        parser.add_argument(flag, help="of `graph-oracle results`")
    read, rest = parser.parse_known_args(list(arguments))
    shown = [
        word for key in ("format", "show", "html") if (value := getattr(read, key)) for word in (f"--{key}", value)
    ]
    if len(read.candidate) > 1:
        raise CannotJudge("several candidates: run one campaign in shards for each")
    return _Given(
        tuple(rest),
        read.out,
        read.cases,
        read.shards,
        read.cluster,
        read.cluster_address,
        read.jobs,
        read.retries,
        read.candidate,
        read.worker,
        read.python,
        read.known,
        read.graph,
        read.cluster_file,
        read.repro,
        shown,
    )


class _Parser(argparse.ArgumentParser):
    """One whose complaints are a line, for callers in Python too."""

    def error(self, message: str) -> NoReturn:
        raise CannotJudge(message)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, not {text!r}")
    return int(text)


def _campaign(given: _Given, progress: Progress) -> CampaignResult:
    lost = _run(given, progress)
    folders = _folders(given.out)
    summary, status = _merged(folders)
    text = subprocess.run(
        [*command(), "results", *map(str, folders)], capture_output=True, text=True, check=False
    ).stdout
    return CampaignResult(given.out, folders, summary, text, 2 if lost else status, lost)


def _run(given: _Given, progress: Progress) -> dict[int, str]:
    """Runs all shards; gives those that were not done, and why."""
    given.out.mkdir(parents=True, exist_ok=True)
    ray = None
    if given.cluster is not None:
        from . import ray_cluster

        ray = ray_cluster.connect(given.address)
    processors = ray_cluster.processors(ray) if ray is not None else os.cpu_count() or 1
    plan = _plan(given, _shards(given, processors))
    wanted = range(plan.shards)
    done: Iterator[Done]
    if ray is not None:
        done = ray_cluster.run(ray, plan, wanted, given.out, given.repro, given.jobs, given.retries)
    else:
        repro = given.repro or given.out / "repro"
        done = run(plan, wanted, given.out, repro, max(1, processors // given.jobs), given.retries)
    return _watch(done, plan, given.out, progress)


def _watch(ended: Iterator[Done], plan: Plan, out: Path, progress: Progress) -> dict[int, str]:
    """Tells of each shard as it is done, with what is known by then."""
    lost: dict[int, str] = {}
    folders: list[Path] = []
    for one in ended:
        if one.answered:
            folders.append(folder_of(out, one.shard, plan.shards))
            again = f", begun {one.tries} times" if one.tries > 1 else ""
            what = f"done on {one.where} in {one.seconds:.1f} s{again}"
        elif not folders and one.status == 2:
            # The first answer is a refusal: so are the others.
            raise CannotJudge(_complaint(one.message) or "graph-oracle ended with status 2")
        else:
            lost[one.shard] = _complaint(one.message) or _ended(one.status)
            what = f"not done on {one.where}: {lost[one.shard]}"
        progress(f"shard {one.shard}/{plan.shards} {what}; {len(folders)} of {plan.shards}{_known_by_now(folders)}")
    return lost


def _known_by_now(folders: Sequence[Path]) -> str:
    if not folders:
        return ""
    summary, _ = _merged(folders)
    total = summary["total"]
    return f", {total['cases']} cases, {total['violated']} violated, {len(total['found'])} findings"


def _complaint(text: str) -> str:
    """The line in which graph-oracle says what is wrong, among what a worker may have written."""
    lines = text.strip().splitlines()
    own = [line for line in lines if line.startswith(("graph-oracle: ", "error: "))] or lines[-1:]
    return own[0].removeprefix("graph-oracle: ") if own else ""


def _ended(status: int) -> str:
    return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"


def _plan(given: _Given, shards: int) -> Plan:
    """The arguments of each shard; on a cluster, with the files that they name."""
    files: dict[str, bytes] = {}
    away = given.cluster is not None

    def sent(path: str, name: str) -> str:
        if not away:
            return path
        try:
            files[name] = Path(path).read_bytes()
        except OSError as error:
            raise CannotJudge(f"{path}: {error.strerror}") from None
        return name

    arguments = [*given.rest, "--cases", given.cases, "--jobs", str(given.jobs)]
    for name in given.candidates:
        arguments += ["--candidate", name]
    if given.worker is not None:
        arguments += ["--worker", given.worker]
    if given.python is not None:
        file, colon, function = given.python.rpartition(":")
        # A module is installed on all machines, a file is here.
        place = sent(file, Path(file).name) if file.endswith(".py") else file
        arguments += ["--python", place + colon + function]
    if given.known is not None:
        arguments += ["--known", sent(given.known, "known.jsonl")]
    for index, graph in enumerate(given.graphs):
        arguments += ["--graph", sent(graph, f"graph-{index}/{Path(graph).name}")]
    for path in given.sent:
        sent(path, path if not Path(path).is_absolute() and ".." not in Path(path).parts else Path(path).name)
    return Plan(tuple(arguments), shards, given.title, given.repro is not None, files)


def _shards(given: _Given, processors: int) -> int:
    """How many shards: as many as were begun before, or some for each processor, and none without a case."""
    begun = {int(path.name.rpartition("-")[2]) for path in _folders(given.out)}
    if given.shards is not None:
        return given.shards
    if len(begun) == 1:
        return begun.pop()
    batch = WORKER_BATCH if given.worker or given.python else BATCH
    factor = {"k": 10**3, "M": 10**6, "G": 10**9}.get(given.cases[-1:], 1)
    digits = given.cases.rstrip("kMG").replace("_", "")
    batches = -(-int(digits) * factor // batch) if digits.isdecimal() else processors * SHARES
    return max(1, min(batches, processors * SHARES // given.jobs))


def _folders(out: Path) -> list[Path]:
    """The stores of shards below a campaign's folder."""
    return sorted(path.parent for path in out.glob("shard-*-of-*/campaign.jsonl"))


def _merged(folders: Sequence[Path]) -> tuple[dict[str, Any], int]:
    """What the stores hold together, and the exit status that says so."""
    arguments = [*command(), "results", *map(str, folders), "--format", "json"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if not folders or not done.stdout:
        raise CannotJudge(_complaint(done.stderr) or "no shard was done")
    summary: dict[str, Any] = json.loads(done.stdout)[0]
    return summary, done.returncode


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class _Callable(types.ModuleType):
    """`graph_oracle.campaign` is this module once something imported it, and is to stay what one calls."""

    def __call__(self, *arguments: Any, **named: Any) -> CampaignResult:
        return campaign(*arguments, **named)


sys.modules[__name__].__class__ = _Callable

if __name__ == "__main__":
    sys.exit(main())
