"""fx.Graph -> exchange JSON.

    document = export(graph, rebuilt)

Nodes that were in the document keep its name for them, and what it says about their origin (`stack`, `module`, `desc`).
The world, the groups with their rank lists, the symbols, name and kind are the document's. Storages are numbered by
first use; symbolic sizes are written with the document's symbols. A call of `control_deps` on one operator is written
as that operator, with ordering edges (ordering.py); other bodies are written under `subgraphs`, with the names that fx
gives their nodes.
"""

import types
from collections.abc import Collection
from typing import Any

import sympy
import torch
from torch import fx
from torch.utils.checkpoint import CheckpointPolicy

from . import bodies, ordering, targets

_KEPT = ("stack", "module", "desc")
# What nodes carry that the exchange JSON has words for. Tags that a document had besides are written too.
TAGS = ("recompute", "ac_graph_id", "partitioner_tag", "seq_nr", "autograd_backward", "is_gradient_acc", "custom")


def export(graph, rebuilt, **keys):
    """The document of a graph that was made from a rebuilt one. `keys` replace keys of the document."""
    before = rebuilt.document
    writer = _Writer(rebuilt)
    nodes = writer.nodes(graph)
    known = before.get("ops") or {}
    ops = {}
    for name, target in writer.targets.items():
        if name in known:
            ops[name] = known[name]
        elif name not in writer.before:
            ops[name] = targets.facts(target)
    document = {
        "schema_version": "graph-oracle/1",
        "name": before.get("name", "graph"),
        "kind": before.get("kind", "forward"),
    }
    for key in ("world", "groups", "symbols"):
        if key in before:
            document[key] = before[key]
    if guards := writer.guards():
        document["guards"] = guards
    document["num_nodes"] = len(nodes)
    for key in ("num_fwd_outputs", "static_lifetime_input_indices"):
        if key in before:
            document[key] = before[key]
    document.update(keys)
    document["ops"] = ops
    document["nodes"] = nodes
    if writer.bodies:
        document["subgraphs"] = writer.bodies
    return document


def guards_of(shapes: Any, names: dict[Any, Any], known: Collection[str]) -> list[str]:
    """What holds of symbols wherever a graph runs: the guards of its ShapeEnv, and what it asserts as it runs.

    `names`: what symbols are called in the document; `known`: those that it has."""
    asserted = getattr(shapes, "deferred_runtime_asserts", {}).values()
    conditions = [guard.expr for guard in getattr(shapes, "guards", ())]
    found: dict[str, None] = {}
    for condition in [*conditions, *(one.expr for some in asserted for one in some)]:
        condition = condition.xreplace(names)
        if condition.free_symbols and all(str(symbol) in known for symbol in condition.free_symbols):
            found[str(condition)] = None
    return list(found)


def in_order(graph):
    """The nodes, inputs first: fx binds these in their own order, whatever stands between them, as effect tokens do."""
    return sorted(graph.nodes, key=lambda node: node.op != "placeholder")


class _Writer:
    def __init__(self, rebuilt):
        self.rebuilt = rebuilt
        entries = rebuilt.document["nodes"]
        self.entries = {entry["name"]: entry for entry in entries}
        self.before = {entry["target"] for entry in entries}
        self.names, self.used = {}, set(self.entries)
        self.targets, self.storages, self.bodies = {}, {}, {}
        self.symbols = {}
        for name, value in rebuilt.symbols.items():
            if isinstance(value, torch.SymInt) and isinstance(value.node.expr, sympy.Symbol):
                self.symbols[value.node.expr] = sympy.Symbol(name, integer=True)

    def guards(self):
        known = self.rebuilt.document.get("symbols") or {}
        return guards_of(getattr(self.rebuilt, "shapes", None), self.symbols, known)

    def nodes(self, graph):
        # A document that comes back keeps its order.
        listed = graph.nodes if self.entries else in_order(graph)
        return [self.node(node) for node in listed if not ordering.is_body(node)]

    def body(self, module):
        """A body: its nodes, and the bodies that it has itself."""
        inner = _Writer(types.SimpleNamespace(document={"nodes": []}, names={}, symbols=self.rebuilt.symbols))
        # A number is one storage in the whole document.
        inner.storages = self.storages
        nodes = inner.nodes(module.graph)
        self.targets.update(inner.targets)
        return {"nodes": nodes, "subgraphs": inner.bodies} if inner.bodies else nodes

    def name(self, node):
        found = self.names.get(node.name)
        if found is None:
            found = self.rebuilt.names.get(node.name)
            if found is None:
                found = node.name
                while found in self.used:
                    found += "_"
                self.used.add(found)
            self.names[node.name] = found
        return found

    def node(self, node):
        name = self.name(node)
        inner = ordering.carried(node)
        call = inner or node
        target = targets.name_of(call.target)
        if node.op == "call_function":
            self.targets[target] = call.target
        recorded = self.entries.get(name) if node.name in self.rebuilt.names else None
        if recorded is not None and recorded["op"] == node.op == "placeholder":
            target = recorded["target"]
        entry = {"name": name, "op": node.op, "target": target}
        if call.args:
            entry["args"] = [self.value(v) for v in call.args]
        if call.kwargs:
            entry["kwargs"] = {key: self.value(v) for key, v in call.kwargs.items()}
        body = bodies.of_attribute(node)
        if body is not None:
            self.bodies[target] = self.body(body)
            entry["out"] = {"t": "other", "type": "GraphModule"}
        elif node.op != "output":
            if "val" in node.meta:
                entry["out"] = self.out(node.meta["val"])
            elif recorded is not None and "out" in recorded:
                entry["out"] = recorded["out"]
        tags = self.tags(node, recorded)
        if tags:
            entry["tags"] = tags
        if recorded is not None:
            for key in _KEPT:
                if key in recorded:
                    entry[key] = recorded[key]
        if inner is not None:
            entry["after"] = [self.name(before) for before in inner.before]
        return entry

    def tags(self, node, recorded):
        tags, meta = {}, node.meta
        for key in TAGS:
            if key in meta:
                value = meta[key]
                if isinstance(value, CheckpointPolicy):
                    value = value.name
                if _is_json(value):
                    tags[key] = value
        for key in (recorded or {}).get("tags") or ():
            if key in meta and key not in tags and _is_json(meta[key]):
                tags[key] = meta[key]
        return tags

    def value(self, value):
        """An argument."""
        if isinstance(value, fx.Node):
            return {"ref": self.name(value)}
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, (list, tuple)):
            return [self.value(v) for v in value]
        if isinstance(value, float):
            return value if value - value == 0 else {"float": str(value)}
        for kind, key in CONSTANTS:
            if isinstance(value, kind):
                return {key: str(value).removeprefix("torch.")}
        if isinstance(value, torch.SymInt):
            return self.size(value)
        if isinstance(value, complex):
            return {"complex": [self.value(value.real), self.value(value.imag)]}
        if isinstance(value, slice):
            return {"slice": [self.value(v) for v in (value.start, value.stop, value.step)]}
        if isinstance(value, dict):
            return {"dict": [[self.value(k), self.value(v)] for k, v in value.items()]}
        if callable(value):
            name = targets.name_of(value)
            if isinstance(value, torch._ops.OpOverload):
                self.targets[name] = value
            return {"fn": name}
        raise TypeError(f"an argument is a {type(value).__name__}, which has no form in the exchange JSON")

    def size(self, value):
        if isinstance(value, torch.SymInt):
            expression = value.node.expr
            if expression.is_Integer:
                return int(expression)
            hint = value.node.hint
            text = str(expression.xreplace(self.symbols))
            return {"sym": text, "hint": hint if type(hint) is int else None}
        return value

    def out(self, value):
        """A result."""
        if isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            entry = {
                "t": "tensor",
                "shape": [self.size(n) for n in value.shape],
                "dtype": str(value.dtype).removeprefix("torch."),
                "device": str(value.device),
                "stride": [self.size(n) for n in value.stride()],
            }
            offset = self.size(value.storage_offset())
            # The format has no symbolic offsets; where there is one, nothing is said of the storage.
            if type(offset) is int:
                entry["storage"] = self.storages.setdefault(storage._cdata, len(self.storages))
                entry["offset"] = offset
                entry["storage_bytes"] = self.size(storage.nbytes())
            if value.requires_grad:
                entry["requires_grad"] = True
            return entry
        if value is None:
            return None
        if isinstance(value, (list, tuple)):
            return [self.out(v) for v in value]
        if isinstance(value, torch.SymInt):
            size = self.size(value)
            return {"t": "int", "value": size} if type(size) is int else {"t": "symint", **size}
        if type(value) is int:
            return {"t": "int", "value": value}
        if isinstance(value, torch.SymBool):
            return {"t": "symbool", "sym": str(value.node.expr.xreplace(self.symbols)), "hint": None}
        return {"t": "other", "type": type(value).__name__}


CONSTANTS = [
    (torch.dtype, "dtype"),
    (torch.device, "device"),
    (torch.memory_format, "memory_format"),
    (torch.layout, "layout"),
]


def _is_json(value):
    if isinstance(value, (list, tuple)):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_json(v) for k, v in value.items())
    return value is None or isinstance(value, (bool, int, float, str))
