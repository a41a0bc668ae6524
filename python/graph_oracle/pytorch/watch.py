"""Judges the passes of a running torch.compile: `watch()`.

    with graph_oracle.watch() as seen:
        torch.compile(model)(x).sum().backward()
    print(seen.table())
    seen.raise_if_wrong()

Watched are all passes that Inductor runs through its GraphTransformObserver (pre-grad, joint-graph and post-grad
passes, the custom ones included), the bucketing passes with the sort that must repair what they leave, the
partitioners, `stable_topological_sort` where it changes the order, and the passes on scheduler nodes. They get and give
what they always did. Inductor's caches are off meanwhile, as nothing can be seen of a pass that did not run.

A pass that changed nothing is not judged, and what one pass left is what the next one got: a graph is read once a
change. Passes run by name within another count as part of it. Not watched are passes that Inductor calls directly
(such as the canonicalization before the joint passes), and `_pre_fusion_custom_pass` and its like, which change what
the nodes are.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import fx

from .._oracle import CannotJudge
from ..arguments import demand, demand_flag, texts_of
from ..judge import Verdict
from . import schedules, versions
from .hooks import compare, compare_parts, is_pair, name_of
from .seen import Seen, Watched
from .states import State
from .watch_points import BUCKETING, PARTITIONERS, SORTS, Named, observed, without_caches

__all__ = ["Seen", "Watched", "watch"]


@contextmanager
def watch(
    passes: str | Sequence[str] | None = None, report: bool = True, allow: str | Sequence[str] = ()
) -> Iterator[Seen]:
    """Judges each pass that runs inside. `passes`: the names of those that are wanted, as patterns ("bucket_*",
    "post_grad_passes.*"). `report`: whether to print what was seen at the end, to standard error. `allow`: what a
    rewrite may do beyond keeping every bit ("reassociation", "draws=restreamed", ...; docs/rules.md).
    """
    demand_flag("watch(report=...)", report)
    watcher = _Watcher(_patterns(passes), _allowed(allow))
    with _LOCK:
        if not _WATCHES:
            _WATCHES.append(_Watch())
        whole = _WATCHES[0]
        whole.watchers.append(watcher)
    try:
        yield watcher.seen
    finally:
        with _LOCK:
            whole.watchers.remove(watcher)
            if not whole.watchers:
                _WATCHES.clear()
                whole.close()
        if report:
            print(watcher.seen, file=sys.stderr)


def _patterns(passes: str | Sequence[str] | None) -> list[str]:
    if passes is None:
        return ["*"]
    where, taken = "watch(passes=...)", 'names of passes, such as "bucket_*"'
    found = texts_of(where, [passes] if isinstance(passes, str) else passes, taken)
    demand(all(found) and bool(found), where, taken, passes)
    return found


def _allowed(allow: str | Sequence[str]) -> tuple[str, ...]:
    keys = [allow] if isinstance(allow, str) else allow
    allowed = tuple(texts_of("watch(allow=...)", keys, 'keys, such as "reassociation"'))
    if allowed:
        # What cannot be allowed is told now, and not by every pass.
        nothing = fx.Graph()
        nothing.output(())
        state = State(fx.GraphModule(torch.nn.Module(), nothing))
        compare(state, state, "rewrite", "", {"allow": list(allowed)})
    return allowed


class _Watcher:
    """One `watch`: what it wants and what it saw."""

    def __init__(self, patterns: list[str], allow: tuple[str, ...]) -> None:
        self.patterns, self.allow, self.seen = patterns, allow, Seen()

    def wants(self, name: str) -> bool:
        # SUBSYSTEM.HOOK: FUNCTION, of which not all need be there.
        bare = name.partition(".")[2] or name
        names = {name, bare, bare.rpartition(": ")[2], name.partition(": ")[0], bare.partition(": ")[0]}
        found = any(fnmatchcase(one, pattern) for pattern in self.patterns for one in names)
        if not found:
            self.seen.passed_over.append(name)
        return found


class _Frame:
    """A pass that is running. `inner`: the states around each pass that was judged within it."""

    def __init__(self, name: str, before: State | None, is_observer: bool) -> None:
        self.name, self.before, self.is_observer = name, before, is_observer
        self.seconds = 0.0
        self.inner: list[tuple[State, State]] = []

    @property
    def is_judged(self) -> bool:
        return self.before is not None or not self.is_observer

    def is_one_of_its_passes(self, after: State) -> bool:
        """Whether all that happened is a single pass that was judged already."""
        return (
            len(self.inner) == 1
            and self.before is not None
            and self.before.same(self.inner[0][0])
            and after.same(self.inner[0][1])
        )


# All that watch share one set of replaced functions: two would put back each other's.
_LOCK = threading.RLock()
_WATCHES: list[_Watch] = []


class _Watch:
    """The replaced functions, and what the watchers are told. Passes of several threads may run at a time."""

    def __init__(self) -> None:
        self.watchers: list[_Watcher] = []
        self._threads = threading.local()
        # Where, by which name, what stood there, and what stands there now.
        self._undo: list[tuple[Any, str, Any, Any]] = []
        self._modules = set(sys.modules)
        try:
            self._replace_all()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Puts everything back."""
        # What was imported meanwhile took what stood there over.
        late = [m for name, m in list(sys.modules.items()) if name not in self._modules and hasattr(m, "__dict__")]
        for holder, name, function, instead in reversed(self._undo):
            setattr(holder, name, function)
            for module in late:
                if vars(module).get(name) is instead:
                    setattr(module, name, function)
        self._undo.clear()

    # What runs where.

    def _frames(self) -> list[_Frame]:
        frames = getattr(self._threads, "frames", None)
        if frames is None:
            frames = self._threads.frames = []
        return frames

    def _state(self, given: Any) -> State:
        """The state of a graph; where the last pass of this thread left it so, as read then."""
        last: State | None = getattr(self._threads, "last", None)
        if last is None or not last.still(given):
            last = self._threads.last = State(given)
        return last

    def _wanting(self, name: str) -> list[_Watcher]:
        with _LOCK:
            return [watcher for watcher in self.watchers if watcher.wants(name)]

    def _tell(self, watched: Watched, allow: tuple[str, ...] | None = None) -> None:
        with _LOCK:
            for watcher in self._wanting(watched.name):
                if allow in (None, watcher.allow):
                    watcher.seen.add(watched)

    def _judge(self, name: str, kind: str, seconds: float, judge: Callable[[], Verdict]) -> None:
        self._tell(self._judged(name, kind, seconds, judge))

    def _judged(self, name: str, kind: str, seconds: float, judge: Callable[[], Verdict]) -> Watched:
        started = time.perf_counter()
        verdict, problem = None, ""
        try:
            verdict = judge()
        except CannotJudge as error:
            problem = str(error)
        except Exception as error:  # judging must not break what is judged
            problem = f"{type(error).__name__}: {error}"
        return Watched(name, kind, verdict, seconds + time.perf_counter() - started, problem)

    def _judge_rewrite(self, name: str, seconds: float, before: State, after: State) -> None:
        """Once for each list of what is allowed."""
        for allow in dict.fromkeys(watcher.allow for watcher in self._wanting(name)):
            options: dict[str, Any] = {"allow": list(allow)} if allow else {}
            judge = functools.partial(compare, before, after, "rewrite", f"by {name}", options)
            self._tell(self._judged(name, "rewrite", seconds, judge), allow)

    # Passes of the observer.

    def enter(self, name: str, given: Any) -> None:
        """An observer opens. Those within another belong to that."""
        frames = self._frames()
        frame = _Frame(name, None, True)
        is_part = any(one.is_judged for one in frames)
        if not is_part and isinstance(given, (fx.GraphModule, fx.Graph)) and self._wanting(name):
            started = time.perf_counter()
            frame.before = self._state(given)
            frame.seconds = time.perf_counter() - started
        frames.append(frame)

    def leave(self, given: Any, failed: bool) -> None:
        """An observer closes."""
        frames = self._frames()
        if not frames:
            return  # it was open when the watch began
        frame = frames.pop()
        before = frame.before
        if before is None or failed:
            return
        started = time.perf_counter()
        if before.still(given):
            if not frame.inner:
                self._tell(Watched(frame.name, "rewrite", seconds=frame.seconds + time.perf_counter() - started))
            return
        after = self._state(given)
        if frame.is_one_of_its_passes(after):
            return
        seconds = frame.seconds + time.perf_counter() - started
        self._judge_rewrite(frame.name, seconds, before, after)

    # Passes that are functions.

    def _around(self, function: Any, around: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            frames = self._frames()
            if any(not frame.is_observer for frame in frames) or not self._wanting(function.__name__):
                return function(*args, **kwargs)
            frames.append(_Frame(function.__name__, None, False))
            try:
                return around(function, *args, **kwargs)
            finally:
                frames.pop()

        return wrapped

    def _note(self, before: State, after: State) -> None:
        for frame in self._frames():
            if frame.is_observer:
                frame.inner.append((before, after))

    def bucketing(self, function: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        """A bucketing pass. It is judged even if it changed nothing: it may have missed what it should bucket."""
        started = time.perf_counter()
        before = self._state(module)
        seconds = time.perf_counter() - started
        result = function(module, *args, **kwargs)
        started = time.perf_counter()
        after = self._state(module)
        seconds += time.perf_counter() - started
        self._note(before, after)
        name = function.__name__
        self._judge(name, "bucketing", seconds, lambda: compare(before, after, "bucketing", f"by {name}", {}))
        return result

    def partition(self, function: Any, joint: Any, *args: Any, **kwargs: Any) -> Any:
        """A partitioner."""
        started = time.perf_counter()
        before = State(joint, "joint")
        seconds = time.perf_counter() - started
        parts = function(joint, *args, **kwargs)
        name = name_of(function)
        if is_pair(parts):
            self._judge(name, "partition", seconds, lambda: compare_parts(before, parts, kwargs, f"by {name}", {}))
        else:
            self._tell(Watched(name, "partition", problem="it returned no pair of forward and backward"))
        return parts

    def sort(self, function: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
        """A sort. One that changed nothing is no news."""
        started = time.perf_counter()
        before = self._state(graph)
        seconds = time.perf_counter() - started
        result = function(graph, *args, **kwargs)
        started = time.perf_counter()
        if not before.still(graph):
            after = self._state(graph)
            self._note(before, after)
            name = function.__name__
            seconds += time.perf_counter() - started
            self._judge(name, "repair", seconds, lambda: compare(before, after, "repair", f"by {name}", {}))
        return result

    def schedule(self, function: Any, nodes: Any, *args: Any, **kwargs: Any) -> Any:
        """A pass on scheduler nodes."""
        name, started, problem, running = name_of(function), time.perf_counter(), "", None
        try:
            running = schedules.Running(name, nodes)
        except Exception as error:  # the nodes are Inductor's own, and differ from version to version
            problem = f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - started
        order = function(nodes, *args, **kwargs)
        if running is None:
            self._tell(Watched(name, "schedule", seconds=seconds, problem=problem))
        elif running.is_unchanged(order):
            self._tell(Watched(name, "schedule", seconds=seconds))
        else:
            self._judge(name, "schedule", seconds, lambda: running.done(order).verdict())
        return order

    def schedules(self, function: Any, nodes: Any) -> Any:
        """Inductor's list of passes on scheduler nodes: those that are no names are wrapped in place."""
        key = "reorder_for_compute_comm_overlap_passes"
        config: Any = torch._inductor.config
        found = [self._around(Named(one), self.schedule) if callable(one) else one for one in getattr(config, key)]
        with config.patch({key: found}):
            return function(nodes)

    # Where they are replaced.

    def _replace_all(self) -> None:
        # Modules that take functions over when they are imported must be there already.
        for name in ("torch._inductor.compile_fx", "torch._inductor.fx_passes.post_grad"):
            importlib.import_module(name)
        for table, around in ((BUCKETING, self.bucketing), (PARTITIONERS, self.partition), (SORTS, self.sort)):
            for module, names in table.items():
                for name in names:
                    self._replace_everywhere(module, name, around)
        for module, names in schedules.PASSES.items():
            for name in names:
                self._replace(importlib.import_module(module), name, lambda f: self._around(f, self.schedule))
        comms = importlib.import_module("torch._inductor.comms")
        self._replace(comms, "reorder_compute_and_comm_for_overlap", lambda f: functools.partial(self.schedules, f))
        self._replace_observer()
        self._replace_compiler()

    def _replace(self, holder: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        function = getattr(holder, name, None)
        if function is not None:
            instead = wrap(function)
            self._undo.append((holder, name, function, instead))
            setattr(holder, name, instead)

    def _replace_everywhere(self, module: str, name: str, around: Callable[..., Any]) -> None:
        """Replaces a function in every module of torch that holds it by name."""
        try:
            function = getattr(importlib.import_module(module), name, None)
        except ImportError:
            return
        if function is None:
            return
        wrapped = self._around(function, around)
        for holder in [m for n, m in list(sys.modules.items()) if n.startswith("torch.") and m is not None]:
            if vars(holder).get(name) is function:
                self._replace(holder, name, lambda _: wrapped)

    def _replace_observer(self) -> None:
        from torch.fx.passes.graph_transform_observer import GraphTransformObserver as Observer

        def entering(function: Any) -> Any:
            def entered(observer: Any) -> Any:
                self.enter(observed(observer), observer.gm)
                return function(observer)

            return entered

        def leaving(function: Any) -> Any:
            def left(observer: Any, kind: Any, *rest: Any) -> Any:
                try:
                    return function(observer, kind, *rest)
                finally:
                    self.leave(observer.gm, kind is not None)

            return left

        def naming(function: Any) -> Any:
            def named(observer: Any, pass_fn: Any) -> Any:
                observer._graph_oracle_pass = pass_fn
                return function(observer, pass_fn)

            return named

        self._replace(Observer, "__enter__", entering)
        self._replace(Observer, "__exit__", leaving)
        self._replace(Observer, "apply_graph_pass", naming)
        self._replace(Observer, "apply_gm_pass", naming)

    def _replace_compiler(self) -> None:
        """Where a compilation begins, settings are changed for its time: they are those of a thread."""
        from torch._inductor import compile_fx

        for name in ("compile_fx", "_compile_fx_inner"):
            self._replace(compile_fx, name, without_caches)
        self._replace(compile_fx, "partition_fn", lambda f: functools.partial(self.partition_fn, f))

    def partition_fn(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Where Inductor calls the custom partitioner, if there is one."""
        found: Any = getattr(torch._inductor.config, "custom_partitioner_fn", None)
        if found is None:
            return function(*args, **kwargs)
        judged = self._around(Named(found), self.partition)
        # Inductor asks for the class, and names the pass by it.
        base: Any = versions.get("torch._inductor.custom_graph_pass.CustomPartitionerFn")
        stand_in = type(
            name_of(found),
            (base,),
            {
                "__call__": lambda _, *args, **kwargs: judged(*args, **kwargs),
                "uuid": lambda _: found.uuid(),
            },
        )
        with torch._inductor.config.patch(custom_partitioner_fn=stand_in()):
            return function(*args, **kwargs)
