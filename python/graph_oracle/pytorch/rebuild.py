"""Exchange JSON -> fx.GraphModule with fake tensors, under a fake process group.

    rebuilt = rebuild(document, rank=0)

It never guesses. Placeholders and attributes get exactly the recorded metadata; every other value is computed by
running the operator on fake tensors, so that aliasing is that of the real operators, and must agree with what the
document records. What cannot be rebuilt in this way is refused (`errors.Refused`), with the reason.

Ordering edges are rebuilt as PyTorch carries them (ordering.py), where the pass takes that; so are bodies of
`invoke_subgraph` and `control_deps` (bodies.py).

Not rebuilt, and refused where a document has it: other higher-order operators, renames and clusters, values that are no
tensors, numbers or symbols.
"""

import operator
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import sympy
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx._lazy_graph_module import _make_graph_module, _use_lazy_graph_module
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils.checkpoint import CheckpointPolicy

from . import bodies, fakes, groups, ordering, targets
from .errors import PassFailed, Refused

# Keys of a document that say nothing about the graph itself.
_VERSIONS = ("fxjson/1", "graph-oracle/1")


class Timing:
    """The seconds spent inside the implementation."""

    seconds = 0.0


class Rebuilt:
    """A graph that was rebuilt, and where it came from.

    - `module`: the fx.GraphModule; `graph` is its graph. `meta["val"]` is set on every node but the output
      and operators that return nothing.
    - `document`: the exchange JSON; `rank`; `world` (number of ranks); `groups` (the ranks by group name).
    - `mode`: the FakeTensorMode of the values, with `shapes` (a ShapeEnv) if the document has symbols.
    - `nodes`: the fx nodes by recorded name; `names`: the recorded names by fx name.
    - `request`: the message, for passes that want more of it; `progress(phase)` tells the driver where the work is.
    """

    def __init__(self, document, rank, request=None, progress=None):
        self.document, self.rank, self.request = document, rank, request or {}
        self.progress = progress or (lambda phase: None)
        self.world = groups.world_size(document)
        self.groups = groups.members(document, rank)
        self.module, self.mode, self.shapes = None, None, None
        self.nodes, self.names, self.symbols = {}, {}, {}

    @property
    def graph(self):
        return self.module.graph

    @contextmanager
    def timing(self):
        """Around the implementation and nothing else: what it raises is its own failure."""
        timing = Timing()
        self.progress("pass")
        start = time.perf_counter()
        try:
            yield timing
        except Refused:
            raise
        except Exception as error:
            raise PassFailed(error) from error
        finally:
            timing.seconds = time.perf_counter() - start

    def export(self, graph=None, **keys):
        """The graph as it is now (or another graph made of it), as exchange JSON. `keys` replace top-level keys."""
        from .export import export

        return export(graph or self.module.graph, self, **keys)


def rebuild(
    document: dict[str, Any],
    rank: int = 0,
    *,
    request: dict[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    values: bool = True,
    after: str | None = None,
    enter: bool = True,
) -> Rebuilt:
    """The module of a document, as rank `rank`.

    `values=False`: no values, so that unsorted and cyclic graphs can be rebuilt too (for the repair alone).
    `after`: what becomes of ordering edges. None: they are refused. "carried": they become calls of `control_deps`.
    "ignored": for who only runs the list from top to bottom. `enter=False`: this process has groups of its own.
    """
    if document.get("schema_version") not in _VERSIONS:
        raise Refused(f"schema version {document.get('schema_version')!r} is not one of {', '.join(_VERSIONS)}")
    for key in ("renames", "clusters"):
        if document.get(key):
            raise Refused(f"{key} are not rebuilt")
    rebuilt = Rebuilt(document, rank, request, progress)
    if enter:
        groups.enter(document, rank)
    _Builder(rebuilt, values, after).build()
    if after == "carried":
        ordering.carry(rebuilt)
    return rebuilt


# ---------------------------------------------------------------------------------------------------------------
# Argument values


def dtype_of(name):
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise Refused(f"this torch has no dtype {name}")
    return found


def device_of(name):
    try:
        return torch.device(name)
    except RuntimeError:
        raise Refused(f"this torch has no device {name}") from None


def _constant(kind, key):
    def decode(value):
        found = getattr(torch, value[key], None)
        if not isinstance(found, kind):
            raise Refused(f"this torch has no {key} {value[key]}")
        return found

    return decode


def _float(value):
    return float(value["float"])


_DECODERS = {
    "dtype": lambda value: dtype_of(value["dtype"]),
    "device": lambda value: device_of(value["device"]),
    "memory_format": _constant(torch.memory_format, "memory_format"),
    "layout": _constant(torch.layout, "layout"),
    "fn": lambda value: targets.resolve(value["fn"]),
    "float": _float,
    "complex": lambda value: complex(*[_float(part) if isinstance(part, dict) else part for part in value["complex"]]),
}


class _Builder:
    def __init__(self, rebuilt, values, after, mode=None):
        self.rebuilt, self.document = rebuilt, rebuilt.document
        self.with_values, self.after, self.mode = values, after, mode
        self.root = torch.nn.Module()
        self.storages = {}
        # By attribute: the bodies that are rebuilt.
        self.modules = {}
        self.nodes = rebuilt.nodes

    def build(self):
        rebuilt, document = self.rebuilt, self.document
        symbols = document.get("symbols") or {}
        if symbols and self.with_values and self.mode is None:
            rebuilt.shapes = ShapeEnv(duck_shape=False, specialize_zero_one=False)
            self.declare(symbols)
        rebuilt.mode = self.mode or FakeTensorMode(shape_env=rebuilt.shapes)
        entries = document["nodes"]
        names = set()
        for entry in entries:
            if entry["name"] in names:
                raise Refused(f"two nodes are called {entry['name']}")
            names.add(entry["name"])
            if entry.get("after") and self.after is None:
                raise Refused(f"{entry['name']} has ordering edges, which are not rebuilt")
        if not entries or entries[-1]["op"] != "output":
            raise Refused("the last node is not the output")
        self.graph = fx.Graph()
        if self.with_values:
            for entry in entries:
                self.node(entry)
        else:
            self.unordered(entries)
        # Its Python code is generated when somebody asks for it: passes do not.
        with _use_lazy_graph_module(True):
            rebuilt.module = _make_graph_module(self.root, self.graph)

    def node(self, entry):
        """One node, whose arguments exist."""
        op = entry["op"]
        args = [self.value(v) for v in entry.get("args") or []]
        kwargs = {key: self.value(v) for key, v in (entry.get("kwargs") or {}).items()}
        node = self.create(entry, args, kwargs)
        if op == "output":
            return
        if op == "get_attr" and entry["target"] in (self.document.get("subgraphs") or {}):
            # Tracing records no value of a module.
            self.body(entry["target"])
            return
        if op in ("placeholder", "get_attr"):
            value = self.input(entry)
            if op == "get_attr":
                self.attribute(entry["target"], value)
        else:
            value = self.run(entry, node)
            if value is None and no_results(node.target):
                # Tracing records no value either, and partitioners take None for a fault.
                return
        node.meta["val"] = value

    def body(self, attribute):
        """A sub-module."""
        if attribute not in self.modules:
            if "." in attribute or hasattr(self.root, attribute):
                raise Refused(f"sub-module {attribute} cannot be set")
            self.modules[attribute] = bodies.rebuild(self.rebuilt, self.document["subgraphs"][attribute])
            self.root.add_module(attribute, self.modules[attribute])

    def create(self, entry, args, kwargs):
        """The fx node, with its tags and without a value."""
        name, op = entry["name"], entry["op"]
        if op == "call_function":
            target = targets.resolve(entry["target"])
            self.check_groups(entry, target, args, kwargs)
        elif op in ("placeholder", "get_attr", "output"):
            target = entry["target"]
            if op == "output":
                args = [tuple(args[0]) if len(args) == 1 and isinstance(args[0], list) else a for a in args]
        else:
            raise Refused(f"{name} is a {op}")
        # fx makes each name one that Python takes, but for a node called None.
        node = self.graph.create_node(op, target, tuple(args), kwargs, name="None_" if name == "None" else name)
        if op == "placeholder" and target == name:
            # A parameter of the generated function.
            node.target = node.name
        self.nodes[name] = node
        self.rebuilt.names[node.name] = name
        self.tag(entry, node)
        return node

    def unordered(self, entries):
        """All nodes in list order first, then their arguments: references may point forward."""
        for entry in entries:
            self.create(entry, [], {})
        for entry in entries:
            node = self.nodes[entry["name"]]
            args = [self.value(v) for v in entry.get("args") or []]
            if node.op == "output":
                args = [tuple(a) if isinstance(a, list) else a for a in args]
            node.args = tuple(args)
            node.kwargs = {key: self.value(v) for key, v in (entry.get("kwargs") or {}).items()}

    def tag(self, entry, node):
        meta = node.meta
        for key, value in (entry.get("tags") or {}).items():
            if key == "recompute":
                policy = getattr(CheckpointPolicy, value, None)
                if policy is None:
                    raise Refused(f"this torch has no recompute policy {value}")
                meta["recompute"] = policy
            else:
                meta[key] = value
        if entry.get("module"):
            path = entry["module"]
            meta["nn_module_stack"] = {path: (path, "torch.nn.modules.module.Module")}

    def check_groups(self, entry, target, args, kwargs):
        """A group that this rank is not in, or does not exist, would fail somewhere in the middle of a pass."""
        if "_c10d_functional" not in entry["target"] and "bucketing." not in entry["target"]:
            return
        for argument, value in zip(target._schema.arguments, args):
            if argument.name == "group_name" and value not in self.rebuilt.groups:
                raise Refused(f"{entry['name']} uses group {value}, which rank {self.rebuilt.rank} is not in")

    # -- values

    def value(self, value):
        """An argument."""
        if isinstance(value, dict):
            ref = value.get("ref")
            if ref is not None:
                found = self.nodes.get(ref)
                if found is None:
                    raise Refused(f"{ref} is read and is no earlier node")
                return found
            for key, decode in _DECODERS.items():
                if key in value:
                    return decode(value)
            if "slice" in value:
                return slice(*[self.value(v) for v in value["slice"]])
            if "dict" in value:
                return {self.value(k): self.value(v) for k, v in value["dict"]}
            if "sym" in value:
                return self.size(value)
            raise Refused(f"an argument is {str(value)[:80]}, which is not rebuilt")
        if isinstance(value, list):
            return [self.value(v) for v in value]
        return value

    def input(self, entry):
        """The value of a placeholder or an attribute, exactly as recorded."""
        out = entry.get("out")
        if out is None:
            if entry["op"] == "placeholder" and "out" in entry:
                return None
            raise Refused(f"nothing is recorded about {entry['name']}")
        if isinstance(out, list) or "t" not in out:
            raise Refused(f"{entry['name']} is an input with several results")
        if out["t"] == "int":
            return out["value"]
        if out["t"] == "symint":
            return self.size(out)
        if out.get("type") == OPAQUE:
            return opaque(entry["name"])
        if out.get("type") == "Generator":
            return torch.Generator()
        if out["t"] != "tensor":
            raise Refused(f"{entry['name']} is of type {out.get('type', out['t'])}, which is not rebuilt")
        dtype, device = dtype_of(out["dtype"]), device_of(out["device"])
        shape, stride = [self.size(n) for n in out["shape"]], [self.size(n) for n in out["stride"]]
        offset = self.size(out.get("offset", 0))
        try:
            value = self.tensor(entry, shape, stride, offset, dtype, device)
        except Refused:
            raise
        except Exception as error:
            raise Refused(f"{entry['name']} cannot be made as recorded: {_first_line(error)}") from error
        if out.get("requires_grad"):
            if not (dtype.is_floating_point or dtype.is_complex):
                raise Refused(f"{entry['name']} is of {dtype} and requires grad")
            value.requires_grad_(True)
        self.compare(entry["name"], out, value)
        return value

    def tensor(self, entry, shape, stride, offset, dtype, device):
        out, mode = entry["out"], self.rebuilt.mode
        number, recorded = out.get("storage"), out.get("storage_bytes")
        if not all(type(n) is int for n in (*shape, *stride, offset)):
            # Symbolic: through the mode, whose tensors may have such sizes. Alone on a storage of its own size.
            if number in self.storages or offset != 0:
                raise Refused(f"{entry['name']} has symbolic sizes and a storage that it does not fill alone")
            with mode:
                value = torch.empty_strided(shape, stride, dtype=dtype, device=device)
            if recorded is not None and not _same(value.untyped_storage().nbytes(), self.size(recorded)):
                raise Refused(f"{entry['name']} has symbolic sizes and a storage that it does not fill")
            if number is not None:
                self.storages[number] = None
            return value
        known = self.storages.get(number) if number is not None else None
        if number is not None and number in self.storages and known is None:
            raise Refused(f"{entry['name']} shares the storage of an input of symbolic size")
        value = fakes.tensor(mode, shape, stride, dtype, device)
        own = value.untyped_storage().nbytes()
        recorded = own + offset * dtype.itemsize if recorded is None else self.size(recorded)
        if known is not None or offset != 0 or recorded != own:
            if known is None:
                known = torch.empty(recorded, dtype=torch.uint8, device="meta").untyped_storage()
            elif known.nbytes() != recorded:
                raise Refused(f"{entry['name']} gives another size to the storage of an earlier input")
            value = fakes.tensor(mode, shape, stride, dtype, device, offset=offset, storage=known)
            if known.nbytes() != recorded:
                raise Refused(f"{entry['name']} reaches beyond its storage")
        if number is not None:
            self.storages.setdefault(number, value.untyped_storage())
        return value

    def attribute(self, target, value):
        path, module = target.split("."), self.root
        for part in path[:-1]:
            inner = getattr(module, part, None)
            if inner is None:
                inner = torch.nn.Module()
                module.add_module(part, inner)
            module = inner
        if not path[-1] or hasattr(module, path[-1]):
            if getattr(module, path[-1], None) is not value:
                raise Refused(f"attribute {target} cannot be set")
        elif isinstance(value, torch.Tensor):
            module.register_buffer(path[-1], value)
        else:
            setattr(module, path[-1], value)

    def run(self, entry, node):
        """The operator on fake tensors."""
        name = entry["name"]
        try:
            if node.target is operator.getitem:
                value = node.args[0].meta["val"][node.args[1]]
            elif bodies.is_run(node.target):
                value = bodies.returned(self.rebuilt.mode, self.run_by(node), node)
            else:
                value = fakes.run(self.rebuilt.mode, node.target, node.args, node.kwargs)
                if "out" in entry and self.difference(entry["out"], value) is not None:
                    value = fakes.dispatched(self.rebuilt.mode, node.target, node.args, node.kwargs)
        except Refused:
            raise
        except Exception as error:
            raise Refused(f"{name} ({entry['target']}) does not run: {_first_line(error)}") from error
        finally:
            # A tracer would have bound the symbols that the operator made; torch 2.9 looks for them in the next trace.
            if self.rebuilt.shapes is not None:
                self.rebuilt.shapes.pending_fresh_unbacked_symbols.clear()
        if "out" in entry:
            self.compare(name, entry["out"], value)
        return value

    def run_by(self, node):
        """The body that a call runs."""
        place, _ = bodies.RUN[targets.name_of(node.target)]
        attribute = node.args[place] if len(node.args) > place else None
        module = self.modules.get(attribute.target) if isinstance(attribute, fx.Node) else None
        if module is None:
            raise Refused(f"nothing is recorded of the body that {node.name} runs")
        return module

    def compare(self, name, out, value):
        """Refused where the value is not what was recorded."""
        found = self.difference(out, value)
        if found is not None:
            raise Refused(f"{name} is recorded with {found[0]} and this torch gives {found[1]}")

    def difference(self, out, value):
        if out is None:
            return None
        if isinstance(out, list):
            if not isinstance(value, (list, tuple)) or len(value) != len(out):
                return f"{len(out)} results", f"{type(value).__name__}"
            return next((d for o, v in zip(out, value) if (d := self.difference(o, v)) is not None), None)
        kind = out.get("t")
        if kind == "tensor":
            if not isinstance(value, torch.Tensor):
                return "a tensor", type(value).__name__
            if out["dtype"] != str(value.dtype).removeprefix("torch."):
                return out["dtype"], value.dtype
            if out["device"] != str(value.device):
                return out["device"], value.device
            if len(out["shape"]) != value.dim() or not self.equal(out["shape"], value.shape):
                return f"shape {_text(out['shape'])}", f"shape {list(value.shape)}"
            if not self.equal(*telling(out["shape"], out["stride"], value.stride())):
                return f"strides {_text(out['stride'])}", f"strides {list(value.stride())}"
            offset = value.storage_offset()
            # The format has no symbolic offsets: then nothing is recorded of the storage.
            unsaid = type(offset) is not int and "storage" not in out and "offset" not in out
            if not unsaid and not self.equal([out.get("offset", 0)], [offset]):
                return f"offset {_text(out.get('offset', 0))}", f"offset {offset}"
            return None
        if kind == "int":
            return None if type(value) is int and value == out["value"] else (out["value"], value)
        if kind in ("symint", "symbool"):
            if isinstance(value, torch.SymInt) and out["sym"] not in self.rebuilt.symbols and out["sym"].isidentifier():
                # A size that only the run knows gets its name where it is made.
                if out["sym"] in (self.document.get("symbols") or {}):
                    self.rebuilt.symbols[out["sym"]] = value
                    return None
            if kind == "symint" and not self.equal([out], [value]):
                return f"size {out['sym']}", value
            return None
        if isinstance(out, dict) and "dict" in out:
            return "a mapping", type(value).__name__
        # Of anything else, such as a SymFloat, the type is all that is recorded.
        return None if out.get("type") == type(value).__name__ else (f"type {out.get('type')}", type(value).__name__)

    def equal(self, recorded, sizes):
        for a, b in zip(recorded, sizes):
            if type(a) is int and type(b) is int:
                if a != b:
                    return False
            elif not _same(self.size(a), b):
                return False
        return True

    # -- symbols

    def declare(self, symbols):
        from torch._dynamo.source import ConstantSource
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        shapes = self.rebuilt.shapes
        for name, symbol in symbols.items():
            if symbol.get("unbacked"):
                continue
            hint = symbol.get("hint")
            if type(hint) is not int:
                raise Refused(f"symbol {name} has no hint")
            source = ConstantSource(f"graph_oracle_{name}")
            made = shapes.create_symbol(hint, source, dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None)
            self.rebuilt.symbols[name] = shapes.create_symintnode(made, hint=hint, source=source)
            # Torch names symbols anew; who reads the graph back finds the names that it had (document.symbol_names).
            shapes.graph_oracle_names = {
                **getattr(shapes, "graph_oracle_names", {}),
                made: sympy.Symbol(name, integer=True),
            }

    def size(self, value):
        """A size: an integer, or an expression over the declared symbols."""
        if not isinstance(value, dict):
            if type(value) is not int:
                raise Refused(f"a size is {value!r}")
            return value
        known = self.rebuilt.symbols.get(value["sym"])
        if known is not None:
            return known
        if self.rebuilt.shapes is None:
            raise Refused(f"size {value['sym']} is symbolic and the graph declares no symbols")
        return evaluate(value["sym"], self.rebuilt.symbols)


# The type that tracing gives objects that are no tensors and no numbers, such as the device mesh of a DTensor.
OPAQUE = "FakeScriptObject"


class Unknown:
    """What stands for the object behind it. An operator that reads it finds nothing there, and is refused."""


def opaque(name):
    """An input of that type. What it was is not recorded; passes look at the type, and hand it on."""
    try:
        from torch._library.fake_class_registry import FakeScriptObject

        return FakeScriptObject(Unknown(), "graph_oracle.Unknown", None)
    except Exception as error:
        raise Refused(f"{name} is of type {OPAQUE}, which is not rebuilt: {_first_line(error)}") from error


def telling(shape, *strides):
    """Those strides that say where an element is: there is but one along a size of 1, and none where a size is 0."""
    if 0 in shape:
        return [[] for _ in strides]
    return [[stride for size, stride in zip(shape, of) if size != 1] for of in strides]


def _same(a, b):
    """Equal for every value of the symbols; nothing is assumed about them."""
    if type(a) is int and type(b) is int:
        return a == b
    a, b = (sympy.Integer(x) if type(x) is int else x.node.expr for x in (a, b))
    return a == b or sympy.expand(a - b) == 0


def evaluate(text, symbols):
    """An expression of symbols as a symbolic integer. Sums, differences, products, powers and floor divisions."""
    import ast

    def walk(node):
        if isinstance(node, ast.Expression):
            return walk(node.body)
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name) and node.id in symbols:
            return symbols[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -walk(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](walk(node.left), walk(node.right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
            if node.func.id in _FUNCTIONS and not node.keywords:
                return _FUNCTIONS[node.func.id](*map(walk, node.args))
        raise Refused(f"size {text!r} is not rebuilt")

    def power(base, exponent):
        if type(exponent) is not int or not 0 <= exponent <= 8:
            raise Refused(f"size {text!r} is not rebuilt")
        return base**exponent

    _OPERATORS = {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.FloorDiv: operator.floordiv,
        ast.Mod: operator.mod,
        ast.Pow: power,
    }
    _FUNCTIONS = {
        "FloorDiv": operator.floordiv,
        "Mod": operator.mod,
        "PythonMod": operator.mod,
        "Max": torch.sym_max,
        "Min": torch.sym_min,
    }
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        raise Refused(f"size {text!r} is not rebuilt") from None
    return walk(tree)


def _text(sizes):
    if isinstance(sizes, list):
        return "[" + ", ".join(map(_text, sizes)) + "]"
    return sizes["sym"] if isinstance(sizes, dict) else str(sizes)


def _first_line(error):
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200] if text else ''}"


def no_results(target):
    """Whether it is an operator that returns nothing, such as an assertion."""
    return isinstance(target, torch._ops.OpOverload) and not target._schema.returns
