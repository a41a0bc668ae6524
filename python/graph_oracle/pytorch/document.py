"""An FX graph that nobody rebuilt, as exchange JSON: one of a running torch.compile, or of a program's own.

    document(module, name="step", kind="forward")

Tags (`recompute`, `ac_graph_id`, ...), origins (`stack_trace`, `nn_module_stack`) and the process groups that the graph
names are taken along. A group of a device mesh is written with all its instances; of any other only that of this rank
is known.
"""

from __future__ import annotations

import gc
import types
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

from . import groups as made
from . import ordering, targets, versions
from .export import export, in_order

_HAS_BACKED = versions.have("torch.fx.experimental.symbolic_shapes.ShapeEnv.backed_var_to_val")


def document(module, name="graph", kind="forward", **keys):
    """The exchange JSON of a GraphModule or Graph, as this rank. `keys` are further keys of the document."""
    graph = module if isinstance(module, fx.Graph) else module.graph
    owner = graph.owning_module if isinstance(module, fx.Graph) else module
    for node in graph.nodes:
        if node.op == "get_attr" and "val" not in node.meta and owner is not None:
            node.meta["val"] = targets.attribute(owner, node.target)
        elif node.op == "call_function" and "val" not in node.meta and "example_value" in node.meta:
            node.meta["val"] = node.meta["example_value"]
    known = {"name": name, "kind": kind, "groups": groups_of(graph), "symbols": symbols_of(graph), "nodes": []}
    if dist.is_initialized():
        known["world"] = {"ranks": dist.get_world_size()}
    source = types.SimpleNamespace(document=known, names={}, symbols={}, shapes=shapes_of(graph))
    written = export(graph, source, **keys)
    written["ops"] = dict(sorted(written["ops"].items()))
    shown = [node for node in in_order(graph) if not ordering.is_body(node)]
    for entry, node in zip(written["nodes"], shown):
        _origin(entry, node)
    return written


def _origin(entry, node):
    path = node.meta.get("nn_module_stack")
    if isinstance(path, dict) and path:
        last = list(path.values())[-1]
        if isinstance(last, tuple) and isinstance(last[0], str):
            entry["module"] = last[0]
    desc = node.meta.get("desc")
    if desc is not None and node.op == "placeholder":
        entry["desc"] = str(desc)


def symbols_of(graph):
    """The symbols of all sizes in a graph."""
    found = {}
    for value in _symbolic(graph):
        for symbol, (_, hint, low, high, unbacked) in symbol_facts(value):
            found.setdefault(symbol, {"hint": hint, "range": [low, high], "unbacked": unbacked})
    return found


def shapes_of(graph):
    """The ShapeEnv of the sizes in a graph, if any is symbolic."""
    return next((value.node.shape_env for value in _symbolic(graph)), None)


def _symbolic(graph):
    """The symbolic numbers in the results of a graph's nodes, and in the sizes of these."""

    def of(value):
        if isinstance(value, torch.SymInt):
            yield value
        elif isinstance(value, torch.Tensor):
            yield from of([*value.shape, *value.stride(), value.storage_offset()])
        elif isinstance(value, (list, tuple)):
            for part in value:
                yield from of(part)

    for node in graph.nodes:
        yield from of(node.meta.get("val"))


def symbol_names(shapes: Any) -> dict[Any, Any]:
    """By symbol of a ShapeEnv, what it was called in the graph that it was rebuilt from."""
    found: dict[Any, Any] = getattr(shapes, "graph_oracle_names", {})
    return found


def symbol_facts(
    value: torch.SymInt,
) -> Iterator[tuple[str, tuple[str, int | None, str, str, bool]]]:
    """The symbols of a symbolic number: for each, its name and (name, hint, low, high, whether it is unbacked)."""
    shapes: Any = value.node.shape_env
    for symbol in value.node.expr.free_symbols:
        limits = shapes.var_to_range.get(symbol)
        hint = (shapes.backed_var_to_val if _HAS_BACKED else shapes.var_to_val).get(symbol)
        low, high = (str(limits.lower), str(limits.upper)) if limits is not None else ("0", "int_oo")
        name = str(symbol_names(shapes).get(symbol, symbol))
        yield name, (name, int(hint) if hint is not None else None, low, high, name.startswith("u"))


def groups_of(graph):
    """The process groups that the calls of a graph name, with their ranks."""
    if not dist.is_initialized():
        return {}
    # An ordering edge hides the call that it is of, and what that call names, in a sub-graph.
    calls = [ordering.carried(node) or node for node in graph.nodes if node.op == "call_function"]
    return groups_named(
        dict.fromkeys(value for call in calls for value in _strings([*call.args, *call.kwargs.values()]))
    )


def groups_named(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The process groups among some names, with their ranks."""
    found: dict[str, dict[str, Any]] = {}
    meshes: dict[str, Any] | None = None
    # Names are a type of their own to PyTorch, in some versions.
    resolve: Any = dist.distributed_c10d._resolve_process_group
    for name in names:
        try:
            group = resolve(name)
        except Exception:
            continue
        ranks = dist.get_process_group_ranks(group)
        instances = [ranks]
        if len(ranks) < dist.get_world_size():
            meshes = _meshes() if meshes is None else meshes
            instances = made.instances(name) or meshes.get(name, instances)
        found[name] = {"size": len(ranks), "rank": dist.get_group_rank(group, dist.get_rank()), "ranks": instances}
    return found


def _strings(values):
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _strings(value)


def _meshes() -> dict[str, Any]:
    """By group name the instances of the group, for the axes of all device meshes."""
    from torch.distributed.device_mesh import DeviceMesh

    found: dict[str, Any] = {}
    # A compiler that is at work takes every tensor for a fake one.
    with _disable_current_modes():
        for mesh in [thing for thing in gc.get_objects() if type(thing) is DeviceMesh]:
            for axis in range(mesh.mesh.ndim):
                try:
                    name = mesh.get_group(axis).group_name
                except Exception:
                    continue
                ranks = mesh.mesh.swapdims(-1, axis).reshape(-1, mesh.mesh.size(axis))
                if found.get(name, ()) == () or len(ranks) > len(found[name]):
                    found[name] = ranks.tolist()
    return found


def write(path, written):
    """Writes a document; compressed if the name ends so. One node a line, as the recorded graphs are laid out."""
    import gzip
    import json

    def text(value):
        return json.dumps(value, separators=(",", ":"))

    lines = []
    for key, value in written.items():
        if key == "ops":
            inner = ",\n".join(f"{text(name)}:{text(facts)}" for name, facts in value.items())
            lines.append(f'"ops":{{\n{inner}\n}}' if inner else '"ops":{}')
        elif key == "nodes":
            inner = ",\n".join(text(entry) for entry in value)
            lines.append(f'"nodes":[\n{inner}\n]')
        else:
            lines.append(f"{text(key)}:{text(value)}")
    whole = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
    if str(path).endswith(".gz"):
        # Without a time, so that the same graph gives the same file.
        whole = gzip.compress(whole, 9, mtime=0)
    with open(path, "wb") as file:
        file.write(whole)
