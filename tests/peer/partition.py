"""Random joint graphs and what PyTorch's partitioners make of them.

    python tests/peer/partition.py FIRST LAST | gzip -9 > oracle/references/passes/partition/tests/pytorch.jsonl.gz

Each line of the result is a case: options in the words of `graph-oracle`, the joint graph as exchange JSON, and for both
sides a listing, or PyTorch's refusal. `oracle/references/passes/partition/tests/pytorch.rs` reads it.

Left out on purpose: what the reference decides otherwise than PyTorch (untagged random draws under a budget, tags that a
budget of 0 overrides, collectives under such a budget, dead draws that have an effect, inputs that forward overwrites after reading them).
"""

import itertools
import json
import operator
import random
import sys
import warnings
from contextlib import nullcontext

import torch
import torch.distributed._functional_collectives  # noqa: F401  (registers waits as side effects)
from torch import fx
from torch._dynamo.source import ConstantSource
from torch._functorch import config, partitioners
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
from torch.utils.checkpoint import CheckpointPolicy

warnings.filterwarnings("ignore")
aten, c10d = torch.ops.aten, torch.ops._c10d_functional

UNARY = [aten.exp, aten.sin, aten.cos, aten.tanh, aten.neg, aten.sigmoid, aten.relu]
VIEWS = ["t", "flat", "permute", "transpose", "slice"]


class Maker:
    """One random joint graph. The same seed gives the same graph."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.mode = FakeTensorMode()
        self.graph = fx.Graph()
        self.region = "is_forward"
        self.tagged = self.random.random() < 0.85
        self.policies = self.random.random() < 0.5
        self.draws = self.policies and self.random.random() < 0.3

    def chance(self, p):
        return self.random.random() < p

    def meta(self, node, value):
        if value is not None:
            node.meta["val"] = value
        if isinstance(value, torch.Tensor):
            node.meta["tensor_meta"] = True
        if self.tagged:
            node.meta["partitioner_tag"] = self.region
        return node

    def input(self, name, shape=(4, 4)):
        with self.mode:
            value = torch.empty(shape)
        return self.meta(self.graph.placeholder(name), value)

    def call(self, target, *args, **kwargs):
        value = lambda x: x.meta["val"] if isinstance(x, fx.Node) else x
        with self.mode:
            out = target(*fx.map_arg(args, value), **fx.map_arg(kwargs, value))
        node = self.meta(self.graph.call_function(target, args, kwargs), out)
        if self.policies and self.region == "is_forward" and self.chance(0.35):
            policy = self.random.choice(
                [CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE]
                + 3 * [CheckpointPolicy.PREFER_RECOMPUTE, CheckpointPolicy.MUST_RECOMPUTE]
            )
            tuple_saved = isinstance(out, (tuple, list)) and policy == CheckpointPolicy.MUST_SAVE
            if not tuple_saved:
                node.meta["recompute"] = policy
                if self.chance(0.8):
                    node.meta["ac_graph_id"] = self.random.randrange(3)
                if self.chance(0.1):
                    node.meta["has_backward_hook"] = True
        if self.chance(0.03):
            node.meta["saved_tensor_with_no_vc_check"] = True
        if self.chance(0.05):
            node.meta["custom"] = {"stream": self.random.randrange(2)}
        return node

    def item(self, node, index):
        value = node.meta["val"][index]
        return self.meta(self.graph.call_function(operator.getitem, (node, index)), value)

    def step(self, pool):
        """One or a few nodes; returns a value of 4 by 4."""
        pick = lambda: self.random.choice(pool[-12:] if self.chance(0.7) else pool)
        kind = self.random.random()
        x = pick()
        if kind < 0.25:
            return self.call(self.random.choice(UNARY).default, x)
        if kind < 0.40:
            return self.call(self.random.choice([aten.mul, aten.add]).Tensor, x, pick())
        if kind < 0.46:
            number = self.random.choice([1, 1.0, 2, 0.5, -0.0, 0.0])
            return self.call(aten.mul.Scalar if self.chance(0.5) else aten.add.Scalar, x, number)
        if kind < 0.56:
            return self.call(aten.mm.default, x, pick())
        if kind < 0.61:
            s = self.call(aten.sum.dim_IntList, x, [self.random.randrange(2)], True)
            return self.call(aten.add.Tensor, pick(), s)
        if kind < 0.70:
            view = self.random.choice(VIEWS)
            if view == "t":
                return self.call(aten.t.default, x)
            if view == "permute":
                return self.call(aten.permute.default, x, [1, 0])
            if view == "transpose":
                return self.call(aten.transpose.int, x, 0, 1)
            if view == "slice":
                return self.call(aten.slice.Tensor, x, 0, 0, 4)
            x = self.call(aten.clone.default, x, memory_format=torch.contiguous_format)
            return self.call(aten.view.default, self.call(aten.view.default, x, [16]), [4, 4])
        if kind < 0.76:
            pieces = self.call(aten.split.Tensor, x, 2)
            found = [self.item(pieces, i) for i in range(2) if self.chance(0.8)]
            if len(found) == 2:
                return self.call(aten.cat.default, found)
            return self.call(aten.cat.default, found + found) if found else x
        if kind < 0.82:
            return self.call(
                torch.ops.prims.convert_element_type.default,
                self.call(torch.ops.prims.convert_element_type.default, x, torch.bfloat16),
                torch.float32,
            )
        if kind < 0.88:
            gathered = self.call(c10d.all_gather_into_tensor.default, x, 2, "0")
            waited = self.call(c10d.wait_tensor.default, gathered)
            if self.chance(0.3):
                return self.call(c10d.wait_tensor.default, self.call(c10d.all_reduce.default, x, "sum", "0"))
            return self.call(aten.slice.Tensor, waited, 0, 0, 4)
        if kind < 0.92:
            normed = self.call(aten.native_layer_norm.default, x, [4], None, None, 0.125)
            self.item(normed, 0)
            return self.call(aten.mul.Tensor, self.item(normed, 0), self.item(normed, self.random.randrange(3)))
        if kind < 0.95 and self.draws and self.region == "is_forward":
            node = self.call(aten.rand_like.default, x)
            node.meta.update(recompute=CheckpointPolicy.MUST_RECOMPUTE, ac_graph_id=0)
            return self.call(aten.mul.Tensor, x, node)
        return self.call(aten._softmax.default, x, 1, False)

    def make(self):
        """The module, the number of forward outputs, the static inputs."""
        primals = [self.input(f"primals_{i + 1}") for i in range(self.random.randrange(1, 5))]
        buffer = self.input(f"primals_{len(primals) + 1}") if self.chance(0.15) else None
        self.region = "is_backward"
        tangents = [self.input(f"tangents_{i + 1}") for i in range(self.random.randrange(1, 3))]
        self.region = "is_forward"
        forward = list(primals)
        for _ in range(self.random.randrange(2, 25)):
            forward.append(self.step(forward))
        if self.chance(0.08):
            for _ in range(self.random.randrange(90, 230)):
                forward.append(self.call(self.random.choice(UNARY).default, forward[-1]))
        results = [self.random.choice(forward[-4:]) for _ in range(self.random.randrange(1, 3))]
        self.region = "is_backward"
        backward = list(tangents)
        for _ in range(self.random.randrange(2, 25)):
            if self.chance(0.3):
                # Computed from inputs alone, in the backward region.
                forward.append(self.step(forward))
            if self.chance(0.6):
                target = aten.mm.default if self.chance(0.3) else aten.mul.Tensor
                backward.append(self.call(target, self.random.choice(backward), self.random.choice(forward)))
            else:
                backward.append(self.step(backward))
        gradients = []
        for _ in range(self.random.randrange(1, 4)):
            kind = self.random.random()
            gradients.append(
                None if kind < 0.1
                else self.random.choice(primals) if kind < 0.15
                else self.random.choice(forward) if kind < 0.22
                else self.random.choice(backward[-4:])
            )
        if buffer is not None:
            self.region = "must_be_in_forward"
            tagged, self.tagged = self.tagged, True
            self.call(aten.copy_.default, buffer, self.random.choice(results)).meta.pop("recompute", None)
            self.tagged = tagged
        self.graph.output(tuple(results + gradients))
        module = fx.GraphModule(torch.nn.Module(), self.graph)
        static = [i for i in range(len(primals)) if self.chance(0.4)]
        return module, len(results), static


class DynamicMaker(Maker):
    """Joint graphs whose rows are symbolic, with or without an input that is the size."""

    def __init__(self, seed):
        super().__init__(seed)
        self.shapes = ShapeEnv()
        self.mode = FakeTensorMode(shape_env=self.shapes)
        self.policies, self.draws = self.chance(0.3), False
        self.rows = [self.symbol(i) for i in range(self.random.choice([1, 1, 2]))]

    def symbol(self, i):
        source = ConstantSource(f"size{i}")
        hint = 6 + i
        symbol = self.shapes.create_symbol(hint, source, dynamic_dim=DimDynamic.DYNAMIC)
        return self.shapes.create_symintnode(symbol, hint=hint, source=source)

    def size_input(self, name, value):
        return self.meta(self.graph.placeholder(name), value)

    def number(self, target, *args):
        """A call on symbolic numbers."""
        value = lambda x: x.meta["val"] if isinstance(x, fx.Node) else x
        return self.meta(self.graph.call_function(target, args), target(*fx.map_arg(args, value)))

    def make(self):
        rows = self.rows[0]
        count = itertools.count(1)
        sizes = []
        for value in self.rows:
            if self.chance(0.7):
                sizes.append(self.size_input(f"primals_{next(count)}", value))
        primals = [self.input(f"primals_{next(count)}", (rows, 4)) for _ in range(self.random.randrange(1, 3))]
        if len(self.rows) > 1:
            other = self.input(f"primals_{next(count)}", (self.rows[1], 4))
            extra = self.call(aten.sum.dim_IntList, other, [0], True)
            primals.append(self.call(aten.add.Tensor, primals[0], extra))
        self.region = "is_backward"
        tangents = [self.input(f"tangents_{i + 1}", (rows, 4)) for i in range(self.random.randrange(1, 3))]
        self.region = "is_forward"
        forward, numbers = list(primals), list(sizes)

        def step(pool):
            x, kind = self.random.choice(pool[-8:]), self.random.random()
            if kind < 0.35:
                return self.call(self.random.choice(UNARY).default, x)
            if kind < 0.55:
                return self.call(aten.mul.Tensor, x, self.random.choice(pool))
            if kind < 0.65:
                return self.call(aten.add.Tensor, x, self.call(aten.sum.dim_IntList, x, [0], True))
            if kind < 0.75:
                numbers.append(self.number(aten.sym_size.int, x, 0))
                return x
            if kind < 0.85 and numbers:
                a, b = self.random.choice(numbers), self.random.choice([2, self.random.choice(numbers)])
                numbers.append(self.number(self.random.choice([operator.add, operator.mul]), a, b))
                return x
            rows_of = [n for n in numbers if str(n.meta["val"]) == str(rows)]
            if rows_of:
                full = self.call(aten.full.default, [self.random.choice(rows_of), 4], 1.5)
                return self.call(aten.mul.Tensor, x, full)
            return self.call(aten._softmax.default, x, 1, False)

        for _ in range(self.random.randrange(3, 18)):
            forward.append(step(forward))
        results = [self.random.choice(forward[-4:]) for _ in range(self.random.randrange(1, 3))]
        if numbers and self.chance(0.2):
            results.append(self.random.choice(numbers))
        self.region = "is_backward"
        backward = list(tangents)
        for _ in range(self.random.randrange(2, 16)):
            if self.chance(0.6):
                backward.append(self.call(aten.mul.Tensor, self.random.choice(backward), self.random.choice(forward)))
            else:
                backward.append(step(backward))
        gradients = [None] * len(sizes) + [self.random.choice(backward[-4:]) for _ in range(self.random.randrange(1, 3))]
        self.graph.output(tuple(results + gradients))
        module = fx.GraphModule(torch.nn.Module(), self.graph)
        return module, len(results), [i for i in range(len(sizes) + 1) if self.chance(0.3)]


def dim_json(value):
    if isinstance(value, int):
        return value
    return {"sym": str(value.node.expr), "hint": value.node.hint}


def value_json(value, storages):
    if value is None:
        return None
    if isinstance(value, torch.SymInt):
        return {"t": "symint", **dim_json(value)}
    if isinstance(value, int):
        return {"t": "int", "value": value}
    if isinstance(value, (tuple, list)):
        return [value_json(v, storages) for v in value]
    storage = value.untyped_storage()
    return {
        "t": "tensor",
        "shape": [dim_json(n) for n in value.shape],
        "dtype": str(value.dtype).removeprefix("torch."),
        "device": str(value.device),
        "stride": [dim_json(n) for n in value.stride()],
        "storage": storages.setdefault(storage._cdata, len(storages)),
        "offset": value.storage_offset(),
        "storage_bytes": dim_json(storage.nbytes()),
    }


def name_of(target):
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order.{target.name()}"
    return target if isinstance(target, str) else f"operator.{target.__name__}"


def arg_json(value):
    if isinstance(value, fx.Node):
        return {"ref": value.name}
    if isinstance(value, (tuple, list)):
        return [arg_json(v) for v in value]
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.memory_format):
        return {"memory_format": str(value).removeprefix("torch.")}
    return value


def joint_json(module, outputs, symbols):
    storages, nodes = {}, []
    for node in module.graph.nodes:
        entry = {"name": node.name, "op": node.op, "target": name_of(node.target)}
        entry["args"] = [arg_json(a) for a in node.args]
        if node.kwargs:
            entry["kwargs"] = {k: arg_json(v) for k, v in node.kwargs.items()}
        if node.op != "output":
            entry["out"] = value_json(node.meta.get("val"), storages)
        tags = {}
        if "recompute" in node.meta:
            tags["recompute"] = node.meta["recompute"].name
        for key in ("ac_graph_id", "partitioner_tag", "custom", "has_backward_hook", "saved_tensor_with_no_vc_check"):
            if key in node.meta:
                tags[key] = node.meta[key]
        if tags:
            entry["tags"] = tags
        nodes.append(entry)
    return {
        "schema_version": "fxjson/1",
        "name": "joint",
        "kind": "joint",
        "groups": {"0": {"size": 2, "rank": 0}},
        "symbols": symbols,
        "num_nodes": len(nodes),
        "num_fwd_outputs": outputs,
        "ops": {},
        "nodes": nodes,
    }


def listing(module):
    """As the tests list a graph."""

    def text(value):
        if isinstance(value, fx.Node):
            return f"%{value.name}"
        if isinstance(value, (tuple, list)):
            return "[" + " ".join(text(v) for v in value) + "]"
        if isinstance(value, bool):
            return f"Bool({str(value).lower()})"
        if isinstance(value, int):
            return f"Int({value})"
        if isinstance(value, float):
            return f"Float({value!r})"
        if isinstance(value, torch.dtype):
            return {"torch.float32": "Dtype(F32)", "torch.bfloat16": "Dtype(BF16)"}[str(value)]
        if isinstance(value, torch.memory_format):
            return str(value).removeprefix("torch.")
        if isinstance(value, torch._ops.OpOverload):
            return str(value)
        return str(value)

    lines = []
    for node in module.graph.nodes:
        tag = node.meta["recompute"].name if "recompute" in node.meta else ""
        args = " ".join(text(a) for a in node.args)
        if node.op == "placeholder":
            lines.append(f"{node.name} placeholder {tag}")
        elif node.op == "output":
            lines.append("return " + args.replace("[", "").replace("]", ""))
        else:
            kwargs = " ".join(f"{k}={text(v)}" for k, v in node.kwargs.items())
            lines.append(f"{node.name} = {name_of(node.target)}({args}; {kwargs}) {tag}")
    return lines


def options(chooser, maker):
    """PyTorch's options and the same in words."""
    patch, words = {}, []
    collectives = any("_c10d" in str(node.target) for node in maker.graph.nodes)
    flag = lambda: chooser.random() < 0.15
    if chooser.random() < 0.35:
        budget = chooser.choice([0.05, 0.2, 0.4, 0.6, 0.9] + ([] if maker.policies or collectives else [0]))
        solver = chooser.choice(["dp", "greedy"])
        runtime = chooser.choice(["testing", "flops"])
        patch.update(
            activation_memory_budget=budget,
            activation_memory_budget_solver=solver,
            activation_memory_budget_runtime_estimator=runtime,
        )
        words += [f"budget={budget}", f"solver={solver}", f"runtime={runtime}"]
    bans = {
        "ban_recompute_used_far_apart": "far_apart",
        "ban_recompute_long_fusible_chains": "long_chains",
        "ban_recompute_materialized_backward": "materialized_backward",
        "ban_recompute_not_in_allowlist": "not_in_allow_list",
        "ban_recompute_reductions": "reductions",
    }
    off = [key for key in bans if flag()]
    patch.update({key: False for key in off})
    kept = [bans[key] for key in bans if key not in off]
    words.append("bans=" + (",".join(kept) if kept else "none"))
    for key, word, value in [
        ("recompute_views", "recompute_views=yes", True),
        ("treat_parameters_as_free_to_save", "free_parameters=no", False),
        ("cse", "cse=no", False),
        ("aggressive_recomputation", "aggressive=yes", True),
        ("unsafe_allow_optimization_of_collectives", "optimizes_collectives=yes", True),
    ]:
        if flag():
            patch[key] = value
            words.append(word)
    return patch, words


def main(first, last):
    for seed in range(first, last):
        chooser = random.Random(10**6 + seed)
        maker = DynamicMaker(seed) if seed % 5 == 4 else Maker(seed)
        module, outputs, static = maker.make()
        rows = getattr(maker, "rows", [])
        symbols = {str(r.node.expr): {"hint": r.node.hint, "range": ["2", "int_oo"], "unbacked": False} for r in rows}
        joint = joint_json(module, outputs, symbols)
        method = chooser.choice(["default", "min-cut", "min-cut", "min-cut"])
        patch, words = options(chooser, maker)
        # Draws have an effect where there is no tracing context.
        tracing = maker.draws or chooser.random() < 0.5
        context = torch._guards.tracing(torch._guards.TracingContext(maker.mode)) if tracing else nullcontext()
        words.append(f"impure_random={'no' if tracing else 'yes'}")
        words.append(f"method={method}")
        words.append("static_inputs=" + (",".join(map(str, static)) or "none"))
        run = {
            "default": partitioners.default_partition,
            "min-cut": partitioners.min_cut_rematerialization_partition,
        }[method]
        case = {"seed": seed, "options": " ".join(words), "joint": joint}
        try:
            with config.patch(patch), maker.mode, context:
                sides = run(module, (), num_fwd_outputs=outputs, static_lifetime_input_indices=static)
            case["forward"], case["backward"] = map(listing, sides)
        except Exception as error:  # noqa: BLE001
            case["refused"] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
        print(json.dumps(case, separators=(",", ":")))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
