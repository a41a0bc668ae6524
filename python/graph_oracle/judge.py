"""What graph-oracle says of a pass: `check_pair(before, after, pass_kind)`.

    verdict = check_pair(before, after, "bucketing")
    if not verdict:                  # violated, undecided or refused
        print(verdict)

The command is found through the environment variable GRAPH_ORACLE, or in PATH.
"""

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field

KINDS = ("rewrite", "bucketing", "repair", "partition", "schedule")
# Exit statuses that come with a report: sound, violated, undecided or refused.
STATUSES = (0, 1, 3)


class NoOracle(RuntimeError):
    """The command graph-oracle is missing, or cannot judge what it was given."""


@dataclass(frozen=True)
class Finding:
    """A violation: the rule, what happened, and the nodes with their places before and after."""

    rule: str
    severity: str
    title: str
    nodes: list = field(default_factory=list)
    facts: list = field(default_factory=list)
    expected: str = ""
    observed: str = ""
    follows: int = 0

    def __str__(self):
        lines = [f"{self.rule}: {self.title}"]
        places = []
        for node in self.nodes:
            known = [f"#{node[when]} {when}" for when in ("before", "after") if node.get(when) is not None]
            places.append(f"{node['name']} ({', '.join(known)})")
        if places:
            lines.append("  where:   " + ", ".join(places))
        lines += [("  let:     " if i == 0 else "           ") + fact for i, fact in enumerate(self.facts)]
        # A side that stands alone contradicts the title.
        if self.expected and self.observed:
            lines.append(f"  then:    {self.expected}")
        if self.expected or self.observed:
            lines.append(f"  however: {self.observed or self.expected}")
        if self.follows:
            lines.append(f"  ({self.follows} more follow from this)")
        return "\n".join(lines)


@dataclass(frozen=True)
class Reason:
    """Why a verdict is "undecided" or "refused": a code (docs/report.md), and a line for people."""

    code: str
    message: str

    def __str__(self):
        return f"{self.message} [{self.code}]"


@dataclass(frozen=True)
class Verdict:
    """What was found: `verdict` is "sound", "violated", "undecided" or "refused".

    True only if it is sound. An undecided verdict is neither: nothing wrong was found, and nothing was shown to be right.
    """

    pass_kind: str
    verdict: str
    findings: list
    rules: dict
    notes: list
    subject: str = ""
    reasons: list = field(default_factory=list)

    def __bool__(self):
        return self.verdict == "sound"

    @property
    def decided(self):
        return self.verdict in ("sound", "violated")

    @property
    def violated(self):
        """The violated rules, the most fundamental first."""
        return list(dict.fromkeys(finding.rule for finding in self.findings))

    def __str__(self):
        held = sum(status == "holds" for status, _ in self.rules.values())
        subject = f" {self.subject}" if self.subject else ""
        if self.verdict == "violated":
            count = f"{len(self.findings)} finding{'s' if len(self.findings) != 1 else ''}"
            head = f"graph-oracle: {self.pass_kind}{subject} is wrong: {', '.join(self.violated)} ({count})"
            shown = [str(finding) for finding in self.findings[:5]]
            if len(self.findings) > 5:
                shown.append(f"... and {len(self.findings) - 5} more")
            return "\n\n".join([head, *shown])
        head = f"graph-oracle: {self.pass_kind}{subject} is {self.verdict} ({held} rules hold)"
        return "\n".join([head, *(f"  {reason}" for reason in self.reasons)])


def command():
    """Where graph-oracle is."""
    named = os.environ.get("GRAPH_ORACLE")
    found = shutil.which(named) if named else shutil.which("graph-oracle")
    if found is None:
        where = f"GRAPH_ORACLE={named} is no program" if named else "it is not in PATH and GRAPH_ORACLE is not set"
        raise NoOracle(f"graph-oracle is missing: {where} (build it with `cargo build --release`)")
    return found


def check_pair(before, after, kind="rewrite", *, unrepaired=None, subject="", **options):
    """Judges what a pass made of a graph.

    `before`, `after`: each a GraphModule, a Graph, an exchange document (dict) or a path to one; for "partition" `after`
    is the pair of forward and backward. `unrepaired`: for "bucketing", the graph before its sort. `options`: what is
    promised (cap="64MiB", promises=["cap"], ...); those that only say how the result was made are refused
    (docs/rules.md). Returns a Verdict; raises NoOracle where there is none.
    """
    if kind not in KINDS:
        raise ValueError(f"there is no kind of pass {kind!r}; there are {', '.join(KINDS)}")
    graphs = [before, *(after if kind == "partition" else [after])]
    graph_kinds = ["joint", "forward", "backward"] if kind == "partition" else ["forward", "forward"]
    program = command()
    with tempfile.TemporaryDirectory(prefix="graph-oracle-") as folder:
        arguments = [program, "check", kind]
        for index, (graph, graph_kind) in enumerate(zip(graphs, graph_kinds)):
            arguments.append(_path(graph, os.path.join(folder, f"{index}.json"), graph_kind))
        if unrepaired is not None:
            arguments += ["--unrepaired", _path(unrepaired, os.path.join(folder, "unrepaired.json"), "forward")]
        for key, value in options.items():
            arguments += ["--set", f"{key}={_setting(value)}"]
        done = subprocess.run([*arguments, "--format", "json"], capture_output=True, text=True)
    if done.returncode not in STATUSES or not done.stdout:
        line = (done.stderr or done.stdout).strip().splitlines()
        raise NoOracle(line[0] if line else f"graph-oracle ended with status {done.returncode}")
    return read(json.loads(done.stdout), kind, subject)


def read(report, pass_kind, subject=""):
    """A Verdict from a report in JSON."""
    findings = [
        Finding(
            rule=one["rule"], severity=one["severity"], title=one["title"], nodes=one.get("nodes") or [],
            facts=one.get("facts") or [], expected=one.get("expected") or "", observed=one.get("observed") or "",
            follows=len(one.get("consequences") or []),
        )
        for one in report.get("findings") or []
    ]
    rules = {one["id"]: (one["status"], one.get("why", "")) for one in report.get("rules") or []}
    reasons = [Reason(one["code"], one["message"]) for one in report.get("reasons") or []]
    return Verdict(pass_kind, report["verdict"], findings, rules, report.get("notes") or [], subject, reasons)


def _path(graph, path, kind):
    if isinstance(graph, (str, os.PathLike)):
        return os.fspath(graph)
    from .pytorch.document import document, write

    write(path, graph if isinstance(graph, dict) else document(graph, kind=kind))
    return path


def _setting(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(str, value)) + "]"
    return str(value)
