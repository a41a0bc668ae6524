"""A pass that is judged whenever it runs: `checked(my_pass)`.

    torch._inductor.config.post_grad_custom_post_pass = graph_oracle.checked(MyPass())

What is given back is called as the pass is, wherever that runs: in the hooks of Inductor, in a pass manager of FX, in
a list of another stack. Graphs before and after are judged, and WrongPass is raised where a rule is violated. In a
running torch.compile that comes as BackendCompilerFailed; `error.inner_exception` is the WrongPass.

A pass with `uuid()` keeps it, so Inductor's caches work as before: what comes out of a cache ran no pass, and is not
judged again. `checked` does not change what the pass does, gets or gives back.
"""

from __future__ import annotations

import copy
import functools
import sys
import uuid
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import torch
from torch import fx

from .._oracle import CannotJudge
from ..arguments import demand_one_of, demand_text, described
from ..judge import Kind, Verdict, check_pair, demand_kind
from . import schedules, versions
from .states import State, graph_of

OnWrong: TypeAlias = Literal["raise", "collect"]
Metadata: TypeAlias = Literal["now", "later"]
# Here Inductor drops what a pass returns.
_IN_PLACE = (
    "pre_grad_custom_pass",
    "joint_custom_pre_pass",
    "joint_custom_post_pass",
    "post_grad_custom_pre_pass",
    "post_grad_custom_post_pass",
)


class Checked:
    """A pass that is judged. `verdicts`: of all runs that changed something. `problems`: with on_wrong="collect", why
    a run could not be judged. `unchanged`: how many runs changed nothing.
    """

    def __init__(
        self,
        wrapped: Any,
        kind: Kind,
        on_wrong: OnWrong,
        name: str,
        options: dict[str, Any],
        metadata: Metadata = "now",
    ) -> None:
        self.metadata = metadata
        self.wrapped, self.kind, self.on_wrong, self.name, self.options = wrapped, kind, on_wrong, name, options
        self.__name__, self.__doc__ = name, getattr(wrapped, "__doc__", None)
        self.verdicts: list[Verdict] = []
        self.problems: list[str] = []
        self.unchanged = 0
        self._unique = uuid.uuid4().hex

    def __reduce__(self) -> tuple[Any, ...]:
        # Inductor's cache keys hold the pickled pass. What was seen so far is no part of it.
        return Checked, (self.wrapped, self.kind, self.on_wrong, self.name, self.options, self.metadata)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # Inductor and others ask of what class a pass is: it is of that of the pass. A function passes for a
        # partitioner where it is said to be one, as Inductor takes partitioners of that class only.
        if hasattr(self.wrapped, "uuid"):
            return type(self.wrapped)
        return (_partitioner_class() if self.kind == "partition" else None) or Checked

    def uuid(self) -> Any:
        """What identifies the pass to caches. A pass without has another one in each process: what it compiled may
        not be taken for the work of another.
        """
        found = getattr(self.wrapped, "uuid", None)
        return found() if found is not None else self._unique

    def __getattr__(self, name: str) -> Any:
        # Pass managers of other stacks ask a pass for attributes of their own.
        if name.startswith("__") or "wrapped" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.wrapped, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        # As a method: the pass of an object.
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = self._given(args, kwargs)
        if isinstance(given, list):
            return self._schedule(given, args, kwargs)
        if self.kind == "partition":
            return self._partition(given, args, kwargs)
        return self._graph(given, args, kwargs)

    def _given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The graph, or the list of scheduler nodes, among the arguments."""
        for value in [*args, *kwargs.values()]:
            if isinstance(value, (fx.GraphModule, fx.Graph)) or _is_schedule(value):
                return value
        told = ", ".join(described(value) for value in [*args, *kwargs.values()]) or "nothing"
        hint = "; the pass before it may have returned nothing" if args[:1] == (None,) else ""
        raise CannotJudge(
            f"checked({self.name}) was called with {told}, where a torch.fx GraphModule or Graph, or a list of "
            f"scheduler nodes belongs{hint}"
        )

    def _graph(self, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        before = State(given)
        result = self.wrapped(*args, **kwargs)
        after = self._after(given, result)
        if self.kind != "bucketing" and before.still(after):
            self.unchanged += 1
            return result
        self._judged(lambda: compare(before, State(after), self.kind, f"by {self.name}", self.options))
        return result

    def _after(self, given: Any, result: Any) -> Any:
        """The graph that the pass made: what it returned if that is one, else what it was given."""
        found = getattr(result, "graph_module", result)
        if isinstance(found, tuple) and found and isinstance(found[0], (fx.GraphModule, fx.Graph)):
            found = found[0]
        if not isinstance(found, (fx.GraphModule, fx.Graph)):
            return given
        if graph_of(found) is not graph_of(given) and self._is_dropped():
            raise CannotJudge(
                f"{self.name} returned another graph, but Inductor drops what this hook returns: change the given "
                "graph in place"
            )
        return found

    def _is_dropped(self) -> bool:
        config = torch._inductor.config if "torch._inductor.config" in sys.modules else None
        for name in _IN_PLACE:
            value = getattr(config, name, None)
            if self in (value if isinstance(value, (list, tuple)) else [value]):
                return True
        return False

    def _partition(self, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        before = State(given, "joint")
        parts = self.wrapped(*args, **kwargs)
        if not is_pair(parts):
            raise CannotJudge(
                f"{self.name} returned {described(parts)}, where a partitioner returns (forward, backward)"
            )
        self._judged(lambda: compare_parts(before, parts, kwargs, f"by {self.name}", self.options))
        return parts

    def _schedule(self, given: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        ran = schedules.Running(self.name, given)
        order = self.wrapped(*args, **kwargs)
        if not isinstance(order, (list, tuple)):
            raise CannotJudge(
                f"{self.name} returned {described(order)}, where a pass on scheduler nodes returns their list"
            )
        if ran.is_unchanged(order):
            self.unchanged += 1
            return order
        self._judged(lambda: ran.done(order).verdict(**self.options))
        return order

    def _judged(self, judge: Callable[[], Verdict]) -> None:
        try:
            verdict = judge()
        except CannotJudge as error:
            if self.on_wrong == "raise":
                raise CannotJudge(f"{self.name} cannot be judged: {error}") from None
            self.problems.append(str(error))
            return
        self.verdicts.append(verdict)
        if self.on_wrong == "raise" and not (self.metadata == "later" and verdict.violated == ["rewrite/metadata"]):
            verdict.raise_if_wrong(allow_undecided=True)


class PassCheck:
    """A check for FX's PassManager: each call judges what happened to the module since the call before.

        manager = PassManager([...], run_checks_after_each_pass=True)
        manager.add_checks(graph_oracle.pass_check())

    `checked(manager)` besides names the pass.
    """

    def __init__(self, kind: Kind, options: dict[str, Any]) -> None:
        self.kind, self.options = kind, options
        self.verdicts: list[Verdict] = []
        self._before: State | None = None
        self._run: Any = None

    def __call__(self, module: fx.GraphModule) -> None:
        if not isinstance(module, (fx.GraphModule, fx.Graph)):
            raise CannotJudge(f"pass_check was called with {described(module)}, where a torch.fx GraphModule belongs")
        # Each run of a manager is a frame of its own: its first call has no graph before it.
        run = sys._getframe(1)
        before = self._before if run is self._run else None
        self._run = run
        if before is not None and before.still(module):
            return
        after = self._before = State(module)
        if before is not None:
            verdict = compare(before, after, self.kind, "between two checks", self.options)
            self.verdicts.append(verdict)
            verdict.raise_if_wrong(allow_undecided=True)


def checked(
    my_pass: Any = None,
    kind: Kind = "rewrite",
    on_wrong: OnWrong = "raise",
    *,
    name: str = "",
    metadata: Metadata = "now",
    **options: Any,
) -> Any:
    """A pass that is judged whenever it runs, and is otherwise what it was.

    `my_pass`: a callable on a GraphModule, a Graph or `(gm, example_inputs)`; a CustomGraphPass or another of these
    classes of Inductor; a partitioner; a pass on scheduler nodes; or a PassManager of FX, all passes of which are
    judged then.
    `kind`: as in `check_pair`; a CustomPartitionerFn is a "partition", and scheduler nodes a "schedule", by themselves.
    `on_wrong`: "raise" WrongPass where a rule is violated, and CannotJudge where nothing can be said for want of a
    graph that can be read; or "collect" in `verdicts` and `problems` of what is returned. `metadata`: "later" where
    something puts the metadata of nodes in order after the pass: metadata that is not true (`rewrite/metadata`) then
    raises nothing if it is all that was found. `options`: as in `check_pair`.
    It may stand before a function as a decorator.
    """
    if my_pass is None:
        return functools.partial(checked, kind=kind, on_wrong=on_wrong, name=name, metadata=metadata, **options)
    demand_kind(kind)
    demand_one_of("checked(on_wrong=...)", on_wrong, ("raise", "collect"))
    demand_one_of("checked(metadata=...)", metadata, ("now", "later"))
    demand_text("checked(name=...)", name)
    if isinstance(my_pass, (str, bytes, fx.GraphModule, fx.Graph)) or not callable(my_pass):
        raise CannotJudge(f"checked takes the pass itself, a callable, not {described(my_pass)}")
    if _is_manager(my_pass):
        return _checked_manager(my_pass, {"kind": kind, "on_wrong": on_wrong, "metadata": metadata, **options})
    if _is_partitioner(my_pass):
        kind = "partition"
    return Checked(my_pass, kind, on_wrong, name or name_of(my_pass), options, metadata)


def pass_check(kind: Kind = "rewrite", **options: Any) -> PassCheck:
    """A check for `PassManager.add_checks`."""
    demand_kind(kind)
    return PassCheck(kind, options)


def compare(before: State, after: State, kind: Kind, subject: str, options: dict[str, Any]) -> Verdict:
    """What is said of a graph and what a pass made of it."""
    first, second = before.known(), after.known()
    unrepaired = after.unrepaired if kind == "bucketing" else None
    if kind == "repair":
        first = before.unrepaired or first
    return check_pair(first, second, kind, unrepaired=unrepaired, subject=subject, **options)


def compare_parts(before: State, parts: Any, given: dict[str, Any], subject: str, options: dict[str, Any]) -> Verdict:
    """What is said of a joint graph and the parts that a partitioner, called with `given`, made of it."""
    forward, backward = State(parts[0], "forward"), State(parts[1], "backward")
    if given.get("num_fwd_outputs") is not None:
        options = {"num_fwd_outputs": int(given["num_fwd_outputs"]), **options}
    return check_pair(before.known(), (forward.known(), backward.known()), "partition", subject=subject, **options)


def is_pair(parts: Any) -> bool:
    """Whether it is what a partitioner returns."""
    return isinstance(parts, (list, tuple)) and len(parts) == 2 and all(isinstance(p, fx.GraphModule) for p in parts)


def name_of(my_pass: Any) -> str:
    """What a pass is called: the name of the function or of the class."""
    while isinstance(my_pass, functools.partial):
        my_pass = my_pass.func
    return str(getattr(my_pass, "__name__", None) or type(my_pass).__name__)


def _partitioner_class() -> type | None:
    """The class of Inductor's partitioners; not all versions of torch have it."""
    found = versions.get("torch._inductor.custom_graph_pass.CustomPartitionerFn")
    return found if isinstance(found, type) else None


def _is_partitioner(my_pass: Any) -> bool:
    base = _partitioner_class() if "torch._inductor.custom_graph_pass" in sys.modules else None
    return base is not None and isinstance(my_pass, base)


def _is_manager(my_pass: Any) -> bool:
    modules = ("torch.fx.passes.infra.pass_manager", "torch.fx.passes.pass_manager")
    managers = [getattr(sys.modules.get(name), "PassManager", None) for name in modules]
    return any(manager is not None and isinstance(my_pass, manager) for manager in managers)


def _checked_manager(manager: Any, options: dict[str, Any]) -> Any:
    """A copy of a manager with its passes judged. Its constraints name the passes themselves: they are solved
    before."""
    found = copy.copy(manager)
    found.passes = list(manager.passes)
    solve = getattr(found, "solve_constraints", None) or found.validate
    solve()
    found.passes = [checked(one, **options) for one in found.passes]
    return found


def _is_schedule(value: Any) -> bool:
    scheduler = sys.modules.get("torch._inductor.scheduler")
    return (
        isinstance(value, list)
        and bool(value)
        and scheduler is not None
        and all(isinstance(node, scheduler.BaseSchedulerNode) for node in value)
    )
