"""What graph-oracle says of a pass: `check_pair(before, after)`.

    verdict = check_pair(before, after)          # any rewrite; or "bucketing", "repair", "partition", "schedule"
    if not verdict:                              # violated, undecided or refused
        print(verdict)
    verdict.raise_if_wrong()

Graphs are `torch.fx` GraphModules or Graphs, `graph_oracle.Graph`, paths of files, or exchange JSON as a dict. They are
judged in this process. torch is imported only where a graph of torch is given.
"""

from __future__ import annotations

import html
import json
import os
import sys
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ._oracle import CannotJudge as CannotJudge
from ._oracle import Graph, Pair
from .arguments import demand_one_of, demand_text, described

if TYPE_CHECKING:
    from torch import fx

    from .pytorch.signature import Signature

    GraphLike: TypeAlias = fx.GraphModule | fx.Graph | Graph | str | os.PathLike[str] | dict[str, Any]

Kind: TypeAlias = Literal["rewrite", "bucketing", "repair", "partition", "schedule"]
KINDS = ("rewrite", "bucketing", "repair", "partition", "schedule")
Values: TypeAlias = Literal["auto", "symbolic", "execute", "agree", "off"]
VALUES = ("auto", "symbolic", "execute", "agree", "off")
# What is to be given of a result of torch.export.
_EXPORTED = "; of an ExportedProgram its graph_module"
# Nodes of graphs that are drawn in a notebook: a page of larger ones would weigh megabytes.
_DRAWN = 2000


class WrongPass(AssertionError):
    """A pass was found wrong, or could not be shown to be right. `verdict` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict

    def __reduce__(self) -> tuple[type[WrongPass], tuple[Verdict]]:
        return WrongPass, (self.verdict,)


@dataclass(frozen=True)
class Finding:
    """A violation: the rule, what happened, and the nodes with their places before and after."""

    rule: str
    severity: str
    title: str
    nodes: list[dict[str, Any]] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    expected: str = ""
    observed: str = ""
    follows: int = 0

    def __str__(self) -> str:
        lines = [f"{self.rule}: {self.title}"]
        places = []
        for node in self.nodes:
            known = [f"#{node[when]} {when}" for when in ("before", "after") if node.get(when) is not None]
            places.append(f"{node['name']} ({', '.join(known)})" if known else str(node["name"]))
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

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]"


@dataclass(frozen=True)
class Verdict:
    """What was found: `verdict` is "sound", "violated", "undecided" or "refused".

    True only if it is sound. An undecided verdict is neither: nothing wrong was found, and nothing was shown to be
    right. `rules` says of each rule whether it holds, and where it was not checked, why. In a notebook it shows itself
    as a page.
    """

    pass_kind: str
    verdict: str
    findings: list[Finding]
    rules: dict[str, tuple[str, str]]
    notes: list[str]
    subject: str = ""
    reasons: list[Reason] = field(default_factory=list)
    _pair: Pair | None = field(default=None, repr=False, compare=False)
    _nodes: int = field(default=0, repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.verdict == "sound"

    def __getstate__(self) -> dict[str, Any]:
        # A copy, or what goes to another process, has no graphs.
        return {**self.__dict__, "_pair": None}

    @property
    def decided(self) -> bool:
        """Whether it is sound or violated."""
        return self.verdict in ("sound", "violated")

    @property
    def violated(self) -> list[str]:
        """The violated rules, the most fundamental first."""
        return list(dict.fromkeys(finding.rule for finding in self.findings))

    def raise_if_wrong(self, *, allow_undecided: bool = False) -> Verdict:
        """Raises WrongPass unless it is sound; with `allow_undecided`, only if a rule is violated or the pass
        refused."""
        if self or (allow_undecided and self.verdict == "undecided"):
            return self
        raise WrongPass(self)

    def page(self) -> str:
        """The report as a page for a browser: the findings, and the graphs before and after, side by side."""
        if self._pair is None:
            raise CannotJudge("the graphs of this verdict are not at hand")
        return self._pair.page()

    def _repr_html_(self) -> str:
        if self._pair is None or self._nodes > _DRAWN:
            return f"<pre>{html.escape(str(self))}</pre>"
        return (
            f'<iframe srcdoc="{html.escape(self.page())}" style="width: 100%; height: 40em; border: 1px solid #ccc" '
            f'sandbox="allow-scripts" title="graph-oracle"></iframe>'
        )

    def __str__(self) -> str:
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


def check_pair(
    before: GraphLike,
    after: GraphLike | Sequence[GraphLike],
    kind: Kind = "rewrite",
    *,
    unrepaired: GraphLike | None = None,
    subject: str = "",
    values: Values = "auto",
    **options: Any,
) -> Verdict:
    """Judges what a pass made of a graph.

    `after`: the graph after it; of an implementation that bakes the rank in, the list of all ranks' graphs; for
    "partition" the pair of forward and backward. `unrepaired`: for "bucketing", the graph before its sort. `values`:
    how values are compared. `options`: what is allowed or promised (cap="64MiB", allow=["reassociation"], ...); those
    that only say how the result was made are refused (docs/rules.md).

    Raises CannotJudge where what was given cannot be judged: no graph, a cycle, an option that nobody knows; and where
    the graphs are called in different ways (defaults of inputs, pytree code), unless something is wrong besides.
    """
    demand_kind(kind)
    demand_text("check_pair(subject=...)", subject)
    demand_one_of("check_pair(values=...)", values, VALUES)
    several = isinstance(after, Iterable) and not isinstance(after, str) and not _is_graph(after)
    results = list(after) if several else [after]  # type: ignore[arg-type]
    if several and not results:
        raise CannotJudge("after: the list is empty, and what no graph says cannot be judged")
    if kind == "partition" and (not results or len(results) % 2):
        raise CannotJudge("of a partition, `after` is the pair (forward, backward)")
    if any(_source(one) is not None and _source(one) is _source(before) for one in results):
        raise CannotJudge("before and after are one graph: copy it before the pass (copy.deepcopy(module))")
    is_partition = kind == "partition"
    reader = _Reader()
    first = reader.graph(before, "before", "joint" if is_partition else "forward")
    second = [
        reader.graph(
            one,
            f"after, graph {number}" if several else "after",
            ("forward", "backward")[number % 2] if is_partition else "forward",
        )
        for number, one in enumerate(results)
    ]
    if several and not is_partition and first.ranks is not None and len(second) != first.ranks:
        raise CannotJudge(
            f"after: the list has {len(second)} graphs, and there are {first.ranks} ranks; give that of each, or one "
            "graph, no list, for all"
        )
    third = None if unrepaired is None else reader.graph(unrepaired, "unrepaired", "forward")
    arguments = [kind, "--values", values]
    for key, value in options.items():
        arguments += ["--set", f"{key}={setting(value)}"]
    pair = Pair(first, second, arguments, third)
    verdict = read(pair.judge(), kind, subject, pair, len(first) + sum(map(len, second)))
    called = _SIGNATURES.get(first)
    for one in second:
        now = _SIGNATURES.get(one)
        if called is not None and now is not None and not is_partition and verdict.verdict != "violated":
            called.demand_same(now)
    return verdict


# How the graphs of torch are called that the graphs here were read from.
_SIGNATURES: weakref.WeakKeyDictionary[Graph, Signature] = weakref.WeakKeyDictionary()


def read(
    report: dict[str, Any], pass_kind: str, subject: str = "", pair: Pair | None = None, nodes: int = 0
) -> Verdict:
    """A Verdict from a report, as `--format json` prints it."""
    findings = [
        Finding(
            rule=one["rule"],
            severity=one["severity"],
            title=one["title"],
            nodes=one.get("nodes") or [],
            facts=one.get("facts") or [],
            expected=one.get("expected") or "",
            observed=one.get("observed") or "",
            follows=len(one.get("consequences") or []),
        )
        for one in report.get("findings") or []
    ]
    rules = {one["id"]: (one["status"], one.get("why", "")) for one in report.get("rules") or []}
    reasons = [Reason(one["code"], one["message"]) for one in report.get("reasons") or []]
    return Verdict(
        pass_kind, report["verdict"], findings, rules, report.get("notes") or [], subject, reasons, pair, nodes
    )


def load(path: str | os.PathLike[str]) -> Graph:
    """A graph from a file: exchange JSON (may be gzip), a text case, or a graph as PyTorch prints it."""
    found = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(found, str) or not found:
        raise CannotJudge(f"{described(path)} is no path of a file")
    return Graph.load(found)


def graph(given: GraphLike, kind: str = "forward") -> Graph:
    """A graph of the oracle's own, of a GraphModule or Graph of torch, or a path."""
    demand_text("graph(kind=...)", kind)
    return _Reader().graph(given, "", kind)


def demand_kind(kind: object) -> None:
    """Raises CannotJudge if it is no kind of pass."""
    if kind not in KINDS:
        raise CannotJudge(f"there is no kind of pass {kind!r}; there are {', '.join(KINDS)}")


def _is_graph(given: object) -> bool:
    return isinstance(given, (Graph, str, os.PathLike, dict)) or _source(given) is not None


def _source(given: object) -> fx.Graph | None:
    """The graph of torch that is given, itself or in a module."""
    # A graph of torch exists only where torch was imported.
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    found = given.graph if isinstance(given, torch.fx.GraphModule) else given
    return found if isinstance(found, torch.fx.Graph) else None


class _Reader:
    """Reads the graphs of one call: what those of torch share is read once."""

    def __init__(self) -> None:
        self._reader: Any = None

    def graph(self, given: object, what: str, kind: str) -> Graph:
        """The graph that is given as `what`: "before", ..., or nothing where it stands alone."""
        what = f"{what}: " if what else ""
        if isinstance(given, Graph):
            return given
        if isinstance(given, str) and "\n" in given:
            raise CannotJudge(f"{what}that is a text and not the path of a file; graph_oracle.Graph(text) reads it")
        if isinstance(given, (str, os.PathLike)):
            return load(given)
        if isinstance(given, dict):
            return Graph(_json(given, what))
        source = _source(given)
        if source is None:
            raise CannotJudge(
                f"{what}{described(given)} is no graph; give a torch.fx GraphModule or Graph, a graph_oracle.Graph, "
                f"or the path of a file{_EXPORTED if type(given).__name__ == 'ExportedProgram' else ''}"
            )
        from .pytorch.read import Reader
        from .pytorch.signature import Signature

        self._reader = self._reader or Reader()
        try:
            found: Graph = self._reader.read(given, kind)
        except CannotJudge as error:
            raise CannotJudge(f"{what}{error}") from error
        _SIGNATURES[found] = Signature(source)
        return found


def _json(given: dict[str, Any], what: str) -> str:
    try:
        return json.dumps(given)
    except (TypeError, ValueError, RecursionError) as error:
        raise CannotJudge(f"{what}the dict is no exchange JSON: {error}") from None


def setting(value: object) -> str:
    """A value of an option, as the command line takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(str, value)) + "]"
    return str(value)
