"""What `watch` saw: `Seen`, and of each pass a `Watched`."""

from __future__ import annotations

from dataclasses import dataclass

from .._oracle import CannotJudge
from ..judge import Verdict


@dataclass(frozen=True)
class Watched:
    """A pass that ran. `verdict` is None if it changed nothing, or could not be judged: `problem` says why. `seconds`:
    spent on judging it.
    """

    name: str
    kind: str
    verdict: Verdict | None = None
    seconds: float = 0.0
    problem: str = ""

    @property
    def outcome(self) -> str:
        """ "sound", "violated", "undecided", "refused", "unchanged" or "not judged"."""
        if self.verdict is not None:
            return self.verdict.verdict
        return "not judged" if self.problem else "unchanged"


class Seen:
    """`passes`: all that ran, in order. `verdicts` of those that changed something: `violated` those that found
    something, `undecided` those that could not tell (a refusal is among them). `problems`: what could not be judged,
    and why. True if passes ran and each was found sound or changed nothing.
    """

    def __init__(self) -> None:
        self.passes: list[Watched] = []
        self.verdicts: list[Verdict] = []
        self.problems: list[tuple[str, str]] = []
        # Those that ran, and that the filter left out.
        self.passed_over: list[str] = []

    def add(self, watched: Watched) -> None:
        """Notes a pass."""
        self.passes.append(watched)
        if watched.verdict is not None:
            self.verdicts.append(watched.verdict)
        if watched.problem:
            self.problems.append((watched.name, watched.problem))

    @property
    def violated(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.verdict == "violated"]

    @property
    def undecided(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if not verdict.decided]

    @property
    def wrong(self) -> list[str]:
        """The names of the passes that were found wrong."""
        return [one.name for one in self.passes if one.outcome == "violated"]

    @property
    def seconds(self) -> float:
        """Spent on judging, in all."""
        return sum(one.seconds for one in self.passes)

    def raise_if_wrong(self, *, allow_undecided: bool = True) -> Seen:
        """Raises WrongPass for the first pass that was found wrong; without `allow_undecided` also for one that could
        not be shown to be right.
        """
        if self.passed_over and not self.passes:
            raise CannotJudge(self._nothing())
        for verdict in [*self.violated, *self.undecided]:
            verdict.raise_if_wrong(allow_undecided=allow_undecided)
        return self

    def __bool__(self) -> bool:
        return bool(self.verdicts or self.passes) and all(self.verdicts) and not self.problems

    def __str__(self) -> str:
        unchanged = sum(one.outcome == "unchanged" for one in self.passes)
        count = max(len(self.passes), len(self.verdicts))
        head = f"graph-oracle watched {count} passes, {len(self.violated)} of them wrong"
        if unchanged:
            head += f", {unchanged} changed nothing"
        if self.undecided:
            head += f", {len(self.undecided)} undecided"
        if self.problems:
            head += f", {len(self.problems)} could not be judged"
        if self.seconds:
            head += f" ({self.seconds:.2f} s of judging)"
        if not count:
            head += f": {self._nothing()}"
        told = [str(verdict) for verdict in self.violated + self.undecided]
        told += [f"graph-oracle: {subject} could not be judged: {problem}" for subject, problem in self.problems]
        return "\n\n".join([head, *told])

    def _nothing(self) -> str:
        """Why no pass is here."""
        if self.passed_over:
            names = ", ".join(dict.fromkeys(self.passed_over))
            return f"none of those that ran was wanted ({names})"
        return "nothing was compiled meanwhile (what is compiled already is not compiled again)"

    def table(self) -> str:
        """A line for each pass: what was said, milliseconds of judging, kind and name."""
        return "\n".join(
            f"{one.outcome:<10}  {one.seconds * 1000:8.1f} ms  {one.kind:<9}  {one.name}" for one in self.passes
        )
