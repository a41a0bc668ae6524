"""pytest: the fixture `graph_oracle`, and every torch.compile of a test judged.

    def test_my_pass(graph_oracle):
        before = graph_oracle.graph(module)
        my_pass(module)
        graph_oracle.assert_pass_ok(before, module, "bucketing")
        graph_oracle.snapshot(module, "after_my_pass")      # compared with snapshots/after_my_pass.txt

    pytest --graph-oracle=watch        a test fails in which a pass of torch.compile was wrong or undecided
    pytest --graph-oracle-update       writes the snapshots

An undecided verdict fails a test unless the test allows it: `allow_undecided=True`, or for all of the test
`@pytest.mark.graph_oracle(allow_undecided=True)`. `@pytest.mark.graph_oracle(watch=True)` watches one test without the
option, `watch=False` leaves one out. A test that was watched and then skips itself, calls `pytest.xfail` or ends the
run has failed all the same; what the marker `xfail` says still holds.

Neither torch nor the judge is imported before a test asks for them: pytest loads this module in every run.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ._oracle import Graph
    from .judge import GraphLike, Kind, Verdict
    from .pytorch.watch import Seen

_UPDATE = "--graph-oracle-update"
_SETTINGS = ("allow_undecided", "watch")
_TOLD = pytest.StashKey[str]()
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")


class Oracle:
    """What the fixture gives: the judge, for one test."""

    def __init__(self, folder: Path = Path(), update: bool = False, allow_undecided: bool = False) -> None:
        self._folder, self._update, self._allow_undecided = folder, update, allow_undecided

    def graph(self, given: GraphLike, kind: str = "forward") -> Graph:
        """The graph as it is now: what a pass then does to the module does not change it."""
        from . import judge

        return judge.graph(given, kind)

    def check(
        self, before: GraphLike, after: GraphLike | Sequence[GraphLike], kind: Kind = "rewrite", **options: Any
    ) -> Verdict:
        """The Verdict, whatever it is. The options are those of `graph_oracle.check_pair`."""
        from . import judge

        return judge.check_pair(before, after, kind, **options)

    def assert_pass_ok(
        self,
        before: GraphLike,
        after: GraphLike | Sequence[GraphLike],
        kind: Kind = "rewrite",
        *,
        allow_undecided: bool | None = None,
        **options: Any,
    ) -> Verdict:
        """Fails with what was found, and where the verdict is undecided unless that is allowed; else the Verdict."""
        __tracebackhide__ = True
        verdict = self.check(before, after, kind, **options)
        allowed = self._allow_undecided if allow_undecided is None else allow_undecided
        if not _passes(verdict, allowed):
            pytest.fail(_harmless(str(verdict)) + _hint([verdict]), pytrace=False)
        return verdict

    def snapshot(self, given: Verdict | GraphLike, name: str) -> None:
        """Compares the text of a verdict or a graph with `snapshots/NAME.txt` next to the test."""
        __tracebackhide__ = True
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            pytest.fail(
                f"graph-oracle: {name!r} is no name of a snapshot: letters, digits, '_', '-' and '.' make one",
                pytrace=False,
            )
        path = self._folder / "snapshots" / f"{name}.txt"
        text = _text(given)
        if self._update:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            return
        how = f"run pytest {_UPDATE} to write it, and look at what it wrote"
        if not path.exists():
            pytest.fail(f"graph-oracle: there is no snapshot {path}; {how}", pytrace=False)
        kept = path.read_text(encoding="utf-8")
        if kept != text:
            # Lines, whatever they hold: only "\n" ends one.
            lines = difflib.unified_diff(
                kept.split("\n"), text.split("\n"), f"snapshots/{name}.txt", "now", lineterm=""
            )
            shown = "\n".join(lines)
            pytest.fail(f"graph-oracle: {name} is not as in its snapshot; {how}\n{shown}", pytrace=False)


def _text(given: Verdict | GraphLike) -> str:
    from . import judge

    shown = str(given) if isinstance(given, judge.Verdict) else judge.graph(given).text()
    return _harmless(shown.rstrip("\n")) + "\n"


def _harmless(text: str) -> str:
    """The text without what a terminal would obey: names in graphs may hold anything."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def _passes(verdict: Verdict, allow_undecided: bool) -> bool:
    return bool(verdict) or (allow_undecided and verdict.verdict == "undecided")


def _hint(failed: Sequence[Verdict]) -> str:
    if any(verdict.verdict != "undecided" for verdict in failed):
        return ""
    return "\n\nNothing wrong was found, and nothing was shown to be right; allow_undecided=True lets this pass."


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("graph-oracle", "graph-oracle: judges graph passes")
    group.addoption(
        "--graph-oracle",
        choices=("off", "watch"),
        default="off",
        help="watch: judge the passes of each torch.compile of each test; wrong or undecided ones fail the test",
    )
    group.addoption(_UPDATE, action="store_true", help="write the snapshots of graph_oracle.snapshot")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "graph_oracle(allow_undecided=False, watch=None): let undecided verdicts pass; watch (or leave out) the passes "
        "of torch.compile in this test, whatever --graph-oracle says",
    )


def _setting(item: pytest.Item, name: str) -> bool | None:
    """What the nearest marker says that says anything of it."""
    for marker in item.iter_markers("graph_oracle"):
        unknown = [key for key in marker.kwargs if key not in _SETTINGS]
        if marker.args or unknown:
            what = unknown[0] if unknown else f"{marker.args[0]!r}"
            raise pytest.UsageError(f"graph-oracle: the marker graph_oracle knows {', '.join(_SETTINGS)}, not {what}")
        if name in marker.kwargs:
            return bool(marker.kwargs[name])
    return None


@pytest.fixture
def graph_oracle(request: pytest.FixtureRequest) -> Oracle:
    """Judges graph passes: `check`, `assert_pass_ok`, `snapshot`, `graph`."""
    item: pytest.Item = request.node
    update = bool(request.config.getoption(_UPDATE))
    return Oracle(item.path.parent, update, bool(_setting(item, "allow_undecided")))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """The test itself runs watched: not its fixtures, whose compilations may be another test's too."""
    wanted = _setting(item, "watch")
    if wanted is None:
        wanted = item.config.getoption("--graph-oracle") == "watch"
    if not wanted:
        yield
        return
    with _watched(item, bool(_setting(item, "allow_undecided"))):
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that ends early, be it as skipped, hides nothing of what was found until then."""
    report = yield
    told = item.stash.get(_TOLD, "") if call.when == "call" else ""
    if not told or told in str(report.longrepr or ""):
        return report
    # What the marker xfail says was known before.
    ended = call.excinfo
    is_by_marker = hasattr(report, "wasxfail") and not (ended and isinstance(ended.value, pytest.xfail.Exception))
    if report.skipped and not is_by_marker:
        how = f"\n\nThe test then ended as skipped: {ended.value}" if ended else ""
        report.outcome, report.longrepr = "failed", told + how
        report.__dict__.pop("wasxfail", None)
    else:
        # The test's own failure goes first; what was found may be its cause.
        report.sections.append(("graph-oracle", told))
    return report


@contextmanager
def _watched(item: pytest.Item, allow_undecided: bool) -> Iterator[None]:
    """Fails where a pass that ran inside was wrong, undecided or could not be judged."""
    item.stash[_TOLD] = ""
    from .pytorch.versions import missing

    if line := missing():
        pytest.fail(f"{line} (the passes of this test are to be watched)", pytrace=False)
    from .pytorch.watch import watch

    with watch(report=False) as seen:
        try:
            yield
        except pytest.exit.Exception as ended:
            # That would end all without a report of this test: the end comes after it.
            if not _told(seen, allow_undecided):
                raise
            item.session.shouldstop = str(ended)
        finally:
            item.stash[_TOLD] = _told(seen, allow_undecided)
    if item.stash[_TOLD]:
        pytest.fail(item.stash[_TOLD], pytrace=False)


def _told(seen: Seen, allow_undecided: bool) -> str:
    """What is to be said of the passes that were not found sound; nothing if all were."""
    failed = [verdict for verdict in seen.verdicts if not _passes(verdict, allow_undecided)]
    problems = [f"graph-oracle: {subject} could not be judged: {problem}" for subject, problem in seen.problems]
    if not failed and not problems:
        return ""
    passes = f"{len(seen.verdicts) + len(problems)} passes of torch.compile"
    head = f"graph-oracle watched {passes}: {len(failed) + len(problems)} not found sound"
    told = "\n\n".join([head, *map(str, failed), *problems])
    return _harmless(told) + ("" if problems else _hint(failed))
