"""A user's own function as the implementation of a pass: `worker --function FILE.py:FUNCTION` (or MODULE:FUNCTION).

The function is called as PyTorch calls such passes:

- rewrite, bucketing, repair, schedule: `f(graph_module)`, or `f(graph)` where its first parameter is annotated
  `torch.fx.Graph` or, without an annotation, called `graph`. It changes what it gets, and returns nothing (or a flag or
  a count of what it changed), or returns a GraphModule, a Graph or a PassResult in its place.
- partition: `f(joint_module, joint_inputs, *, num_fwd_outputs, **kwargs) -> (forward, backward)`.

Options of the request that are further parameters of the function are handed over by name, as the type that the
annotation or the default says (int, float, bool or str). All others concern the judge. The function may raise
`graph_oracle.pytorch.errors.Refused(reason)` for a graph that it does not take; what else it raises is a finding.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType, TracebackType
from typing import Any

import torch
from torch import fx
from torch._inductor.virtualized import V

from . import ordering
from .errors import PassFailed, Refused
from .options import number, text, yes
from .passes import Pass

Options = Mapping[str, Any]

# What generated graphs must not have. A barrier takes a process group as an object, which a graph cannot name; a
# message from rank to rank is not rebuilt; edges from a launch or to a wait hide these from whoever looks for them by
# their target.
_NO_EDGES = [] if ordering.AVAILABLE else ["ordering-edges"]
WITHOUT = {
    "rewrite": ["barriers", *_NO_EDGES],
    "bucketing": ["barriers", *(_NO_EDGES or ["ordering-edges-in-flight"])],
    "repair": _NO_EDGES,
    "schedule": ["barriers", "messages", *_NO_EDGES],
    "partition": ["random-draws", "ordering-edges"],
}
# Options that say how PyTorch's passes are to do their work. A function has its own: they are not generated for it.
LEFT_OUT = {
    "bucketing": ["kind", "kinds", "mode", "cap", "selection", "filter", "max_topo_span", "modules", "deps"],
    "schedule": ["method", "budget", "runtime_mode"],
    "partition": ["method", "first", "checkpoint", "budget", "suppressed_waits"],
}
# What AOTAutograd gives a partitioner by name.
_PARTITIONER_KEYWORDS = ("num_fwd_outputs", "static_lifetime_input_indices")


class BadFunction(Exception):
    """There is no such function, or none that can be a pass: one line."""


@dataclass(frozen=True)
class Function:
    """A function, and where it is from."""

    # FILE.py:FUNCTION with the whole path, or MODULE:FUNCTION.
    spec: str
    call: Callable[..., Any]
    parameters: tuple[inspect.Parameter, ...]
    takes_graph: bool
    is_file: bool
    digest: str

    @property
    def name(self) -> str:
        """For reports: without folders."""
        return os.path.basename(self.spec)

    @property
    def cuts(self) -> bool:
        """Whether it takes what a partitioner takes: `num_fwd_outputs`, or two arguments and whatever is named."""
        required = [p for p in self.positional if p.default is inspect.Parameter.empty]
        return "num_fwd_outputs" in self.keywords(2) or (len(required) > 1 and self.takes_anything)

    @property
    def positional(self) -> list[inspect.Parameter]:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return [parameter for parameter in self.parameters if parameter.kind in kinds]

    def keywords(self, given: int) -> dict[str, inspect.Parameter]:
        """The parameters behind the first `given` that can be handed over by name."""
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        first = {parameter.name for parameter in self.positional[:given]}
        return {p.name: p for p in self.parameters if p.kind in named and p.name not in first}

    @property
    def takes_anything(self) -> bool:
        return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in self.parameters)


# ---------------------------------------------------------------------------------------------------------------
# Finding the function


def load(spec: str) -> Function:
    """The function that `spec` names. Raises BadFunction."""
    place, colon, path = spec.rpartition(":")
    if not colon or not place or not path:
        raise BadFunction(f"{spec} is not FILE.py:FUNCTION or MODULE:FUNCTION")
    is_file = place.endswith(".py") or os.sep in place
    found: Any = _module_of_file(place) if is_file else _module(place)
    for part in path.split("."):
        if not hasattr(found, part):
            raise BadFunction(f"{place} has no function {path}{_others(found)}")
        found = getattr(found, part)
    if inspect.isclass(found):
        raise BadFunction(f"{spec} is a class: name a function, or an instance that can be called")
    if not callable(found):
        raise BadFunction(f"{spec} is a {type(found).__name__}, and cannot be called")
    try:
        parameters = tuple(inspect.signature(found).parameters.values())
    except (TypeError, ValueError) as error:
        raise BadFunction(f"{spec} does not say what it takes: {error}") from error
    whole = f"{os.path.abspath(place) if is_file else place}:{path}"
    function = Function(
        whole, found, parameters, _takes_graph(found, parameters), is_file, _digest(found, place, is_file)
    )
    if not function.positional:
        raise BadFunction(f"{spec} takes no graph: its first parameter is to be a GraphModule or a Graph")
    return function


def _module_of_file(path: str) -> ModuleType:
    """The module in a file, which is run as `python FILE` would: what lies beside it can be imported."""
    if not os.path.isfile(path):
        raise BadFunction(f"there is no file {path}")
    name = os.path.splitext(os.path.basename(path))[0]
    folder = os.path.dirname(os.path.abspath(path))
    # Under a name of its own: it may be called as a module that is there already.
    spec = importlib.util.spec_from_file_location(f"graph_oracle_function_{name}", path)
    if spec is None or spec.loader is None:
        raise BadFunction(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, folder)
    with _importing(path):
        spec.loader.exec_module(module)
    return module


def _module(name: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    with _importing(name):
        return importlib.import_module(name)


@contextmanager
def _importing(what: str) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit) as error:
        lines = str(error).strip().splitlines()
        line = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        raise BadFunction(f"{what} cannot be imported: {line}{_line_of(error, what)}") from error


def _line_of(error: BaseException, path: str) -> str:
    """Where in the user's own file it happened."""
    found, place = "", error.__traceback__
    while place is not None:
        if os.path.abspath(place.tb_frame.f_code.co_filename) == os.path.abspath(path):
            found = f" (line {place.tb_lineno})"
        place = place.tb_next
    return found


def _others(module: Any) -> str:
    names = (
        [n for n, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__]
        if (inspect.ismodule(module))
        else []
    )
    return f"; it has {', '.join(names[:10])}" if names else ""


def _digest(found: Any, place: str, is_file: bool) -> str:
    """Of the file that the function is in: another text is another implementation."""
    path = place if is_file else getattr(inspect.getmodule(found), "__file__", None)
    if path is None or not os.path.isfile(path):
        return ""
    with open(path, "rb") as file:
        return "+" + hashlib.sha256(file.read()).hexdigest()[:8]


def _takes_graph(found: Callable[..., Any], parameters: tuple[inspect.Parameter, ...]) -> bool:
    if not parameters:
        return False
    first = parameters[0]
    annotation = first.annotation
    if isinstance(annotation, str):
        try:
            hints = typing.get_type_hints(found if inspect.isroutine(found) else type(found).__call__)
            annotation = hints.get(first.name, annotation)
        except (NameError, TypeError, AttributeError):
            # What it names is for type checkers only, say.
            annotation = annotation.strip("\"'").rpartition(".")[2]
    if annotation is inspect.Parameter.empty:
        return first.name == "graph"
    return annotation is fx.Graph or annotation == "Graph"


# ---------------------------------------------------------------------------------------------------------------
# Serving it


def passes(function: Function, only: str | None) -> dict[str, Pass]:
    """The passes that a function can be, or the one that it is to be."""
    kinds = ["partition"] if function.cuts else ["rewrite", "bucketing", "repair", "schedule"]
    if only is not None and only not in kinds:
        if only not in WITHOUT:
            raise BadFunction(f"a function is no {only}; it is one of {', '.join(WITHOUT)}")
        taken = ", ".join(map(str, function.parameters))
        wanted = "f(joint_module, joint_inputs, *, num_fwd_outputs)" if only == "partition" else "f(graph_module)"
        raise BadFunction(f"{function.name} takes ({taken}), and what does a {only} takes {wanted}")
    return {kind: _pass(function, kind) for kind in ([only] if only else kinds)}


def _pass(function: Function, kind: str) -> Pass:
    given = 2 if kind == "partition" else 1
    own = [key for key in function.keywords(given) if kind != "partition" or key not in _PARTITIONER_KEYWORDS]
    # An option with no values is not generated; it may be set.
    options: dict[str, list[str]] = {key: [] for key in dict.fromkeys([*LEFT_OUT.get(kind, ()), *own])}
    # A function may say what else it never meets.
    without = dict.fromkeys([*WITHOUT[kind], *getattr(function.call, "without", ())])
    capabilities = {"options": options, "without": list(without)}
    run = partial(_cut, function) if kind == "partition" else partial(_change, function, kind)
    after = None if kind == "partition" or not ordering.AVAILABLE else "carried"
    return Pass(kind, run, capabilities, values=kind != "repair", after=after)


def _change(function: Function, kind: str, rebuilt: Any, options: Options) -> dict[str, Any]:
    """A pass that gives one graph."""
    keywords = chosen(function, options, 1)
    argument = rebuilt.graph if function.takes_graph else rebuilt.module
    with V.set_fake_mode(rebuilt.mode):
        returned, seconds = _called(function, rebuilt, argument, **keywords)
    repaired = _exported(rebuilt, changed(rebuilt, returned))
    return {"seconds": seconds, "repaired": as_recorded(rebuilt.document, repaired) if kind == "schedule" else repaired}


def as_recorded(before: Mapping[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Nodes that compute what they did, as they were recorded: tracing knows more of results than a record has to
    say."""
    known = {entry["name"]: entry for entry in before["nodes"]}

    def recorded(entry: dict[str, Any]) -> dict[str, Any]:
        old = known.get(entry["name"], {})
        same = all((old.get(key) or None) == (entry.get(key) or None) for key in ("op", "target", "args", "kwargs"))
        return old if same and set(old.get("after") or ()) == set(entry.get("after") or ()) else entry

    return {**after, "nodes": [recorded(entry) for entry in after["nodes"]]}


def _cut(function: Function, rebuilt: Any, options: Options) -> dict[str, Any]:
    """A partitioner, within what AOTAutograd calls it in."""
    from .passes import partition

    keywords = chosen(function, options, 2) | partitioner_keywords(function, rebuilt, options)
    inputs = joint_inputs(rebuilt)
    partition.describe(rebuilt)
    with ExitStack() as stack:
        stack.enter_context(partition.without_dumps())
        stack.enter_context(rebuilt.mode)
        stack.enter_context(torch._guards.tracing(torch._guards.TracingContext(rebuilt.mode)))
        returned, seconds = _called(function, rebuilt, rebuilt.module, inputs, **keywords)
    forward, backward = parts(returned)
    return {
        "seconds": seconds,
        "forward": _part(rebuilt, forward, "forward"),
        "backward": _part(rebuilt, backward, "backward"),
    }


def partitioner_keywords(function: Function, rebuilt: Any, options: Options) -> dict[str, Any]:
    """What AOTAutograd gives a partitioner by name, as far as this one takes it."""
    from .passes import partition

    known = {
        "num_fwd_outputs": partition.forward_outputs(rebuilt, options),
        "static_lifetime_input_indices": partition.static_inputs(rebuilt, options),
    }
    taken = function.keywords(2)
    return {key: value for key, value in known.items() if key in taken or function.takes_anything}


def joint_inputs(rebuilt: Any) -> tuple[list[Any], list[Any]]:
    """The values of the inputs and of the tangents."""
    inputs: list[Any] = []
    tangents: list[Any] = []
    for node in rebuilt.graph.find_nodes(op="placeholder"):
        (tangents if "tangents" in node.target else inputs).append(node.meta.get("val"))
    if not tangents:
        raise Refused("the graph has no tangents")
    return inputs, tangents


def _called(function: Function, rebuilt: Any, *args: Any, **keywords: Any) -> tuple[Any, float]:
    """What the function returns, and the seconds that it took."""
    try:
        with rebuilt.timing() as timing:
            try:
                returned = function.call(*args, **keywords)
            except SystemExit as error:
                raise RuntimeError(f"{function.name} ends the process: sys.exit({error.code!r})") from error
    except PassFailed as failed:
        failed.cause.__traceback__ = _users(failed.cause.__traceback__)
        raise
    return returned, timing.seconds


def _users(place: TracebackType | None) -> TracebackType | None:
    """A traceback from where the user's code begins."""
    own = (os.path.dirname(os.path.abspath(__file__)) + os.sep, "contextlib.py")
    first = place
    while place is not None and place.tb_frame.f_code.co_filename.startswith(own[0]):
        place = place.tb_next
    return place or first


# ---------------------------------------------------------------------------------------------------------------
# What goes in, and what comes out


def chosen(function: Function, options: Options, given: int) -> dict[str, Any]:
    """The parameters of the function that the options state."""
    found = {}
    for name, parameter in function.keywords(given).items():
        if given == 2 and name in _PARTITIONER_KEYWORDS:
            continue
        if name in options:
            found[name] = _typed(name, options[name], parameter)
        elif parameter.default is inspect.Parameter.empty:
            raise Refused(f"{function.name} needs {name}: give --set {name}=VALUE")
    return found


def _typed(name: str, value: Any, parameter: inspect.Parameter) -> Any:
    """An option as the type that the annotation says, or the default has."""
    annotation = parameter.annotation
    types = {"bool": bool, "int": int, "float": float, "str": str}
    wanted = types.get(annotation) if isinstance(annotation, str) else annotation
    if wanted not in types.values() and parameter.default is not inspect.Parameter.empty:
        wanted = type(parameter.default)
    if wanted is bool:
        return yes(name, text(value).lower())
    if wanted is int or wanted is float:
        return number(name, value, wanted)
    return text(value) if wanted is str else value


def changed(rebuilt: Any, returned: Any) -> fx.Graph:
    """The graph that a pass leaves behind, or returns."""
    # PassResult, of torch.fx.passes.
    returned = getattr(returned, "graph_module", returned)
    if returned is None or isinstance(returned, (bool, int)):
        return typing.cast(fx.Graph, rebuilt.graph)
    graph = graph_of(returned)
    if graph is not None:
        return graph
    raise PassFailed(
        TypeError(
            f"it returned {shown(returned)}; a pass changes the graph and returns nothing, or returns a GraphModule or "
            "a Graph"
        )
    )


def parts(returned: Any) -> tuple[fx.Graph, fx.Graph]:
    """Forward and backward."""
    if isinstance(returned, (tuple, list)) and len(returned) == 2:
        forward, backward = map(graph_of, returned)
        if forward is not None and backward is not None:
            return forward, backward
    raise PassFailed(
        TypeError(f"it returned {shown(returned)}; a partitioner returns (forward, backward), two GraphModules")
    )


def graph_of(value: Any) -> fx.Graph | None:
    found = value if isinstance(value, fx.Graph) else getattr(value, "graph", None)
    return found if isinstance(found, fx.Graph) else None


def shown(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}: {', '.join(type(v).__name__ for v in value[:4])}"
    return f"a {type(value).__name__}"


def _exported(rebuilt: Any, graph: fx.Graph, **keys: Any) -> dict[str, Any]:
    """The exchange JSON of what the function made. What has no form there is the function's fault."""
    whole(graph)
    try:
        return typing.cast(dict[str, Any], rebuilt.export(graph, **keys))
    except Exception as error:
        raise PassFailed(ValueError(f"what it made cannot be written down: {type(error).__name__}: {error}")) from error


def _part(rebuilt: Any, graph: fx.Graph, kind: str) -> dict[str, Any]:
    document = _exported(rebuilt, graph, name=f"{rebuilt.document.get('name', 'joint')}_{kind}", kind=kind)
    # These count the outputs and the inputs of the joint graph.
    document.pop("num_fwd_outputs", None)
    document.pop("static_lifetime_input_indices", None)
    return document


def whole(graph: fx.Graph) -> None:
    """Fails where a graph holds what no graph of a pass may hold, and no judge could read."""
    nodes = set(graph.nodes)
    for node in graph.nodes:
        if node.op in ("call_method", "call_module"):
            raise PassFailed(ValueError(f"it left {node.name}, a {node.op}; such graphs hold calls of functions only"))
        for read in node.all_input_nodes:
            if read not in nodes:
                raise PassFailed(ValueError(f"{node.name} reads {read.name}, which is not in the graph that it left"))
    if not graph.find_nodes(op="output"):
        raise PassFailed(ValueError("it left a graph without an output"))
