"""Random graphs before and after PyTorch's own bucketing passes, as exchange JSON.

    python tests/peer/bucketing.py OUT --mode default --count 500 --seed 1 [--rank 1] [--family mixed]

Writes OUT/<mode>_<family>_<seed>.jsonl, four lines a case: {"options", "error", "candidate"}, then the graph
before, the graph after the passes, and the graph after the final sort (null where PyTorch stopped). The passes run
under a fake process group of four ranks; no device is needed. `cargo test bucketing` compares the pairs with
the reference where BUCKETING_PEER names the folder. Mode `historic` is the algorithm of PR 158663, not PyTorch's own.
"""

import argparse
import json
import operator
import os
import random

import torch
import torch.distributed as dist
import torch.fx as fx
from torch._inductor.fx_passes import bucketing, fsdp
from torch._inductor.pattern_matcher import stable_topological_sort
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.distributed.fake_pg import FakeStore

aten, c10d, prims = torch.ops.aten, torch.ops._c10d_functional, torch.ops.prims
FLOATS = [torch.float32, torch.bfloat16, torch.float16]
INTS = [torch.int32, torch.int64, torch.uint8, torch.int8]


# ---------------------------------------------------------------------------------------------------------------
# Exchange JSON


def encode(value):
    if isinstance(value, fx.Node):
        return {"ref": value.name}
    if isinstance(value, (list, tuple)):
        return [encode(v) for v in value]
    for kind, key in ((torch.dtype, "dtype"), (torch.memory_format, "memory_format"), (torch.layout, "layout")):
        if isinstance(value, kind):
            return {key: str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"no encoding of {value!r}")


def encode_out(value, storages):
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [encode_out(v, storages) for v in value]
    storage = value.untyped_storage()
    return {
        "t": "tensor",
        "shape": list(value.shape),
        "stride": list(value.stride()),
        "dtype": str(value.dtype).removeprefix("torch."),
        "device": str(value.device),
        "storage": storages.setdefault(storage._cdata, len(storages)),
        "offset": value.storage_offset(),
        "storage_bytes": storage.nbytes(),
    }


def export(graph, groups):
    storages, nodes, count = {}, [], 0
    for node in graph.nodes:
        count += 1
        target = "operator.getitem" if node.target is operator.getitem else str(node.target)
        entry = {"name": node.name, "op": node.op, "target": target, "args": encode(node.args)}
        if node.kwargs:
            entry["kwargs"] = {k: encode(v) for k, v in node.kwargs.items()}
        if node.op != "output" and "val" in node.meta:
            entry["out"] = encode_out(node.meta["val"], storages)
        nodes.append(entry)
    return {
        "schema_version": "fxjson/1",
        "name": "random",
        "kind": "forward",
        "groups": groups,
        "symbols": {},
        "num_nodes": count,
        "ops": {},
        "nodes": nodes,
    }


# ---------------------------------------------------------------------------------------------------------------
# Random graphs


class Builder:
    def __init__(self, rng, mode, groups, family):
        self.rng, self.fake, self.groups, self.family = rng, mode, groups, family
        self.graph = fx.Graph()
        self.values, self.pending, self.waits = [], [], []
        # Mostly few groups and dtypes, so that runs are long enough to bucket.
        self.groups_used = rng.sample(list(groups), rng.choice([1, 1, 1, 2, 2, 3, 4]))
        self.dtypes = rng.choices(FLOATS, k=rng.choice([1, 1, 2, 3]))

    def val(self, node):
        return node.meta["val"]

    def call(self, target, *args, **kwargs):
        node = self.graph.call_function(target, args, kwargs)
        with self.fake:
            unwrap = lambda v: self.val(v) if isinstance(v, fx.Node) else v  # noqa: E731
            deep = lambda v: [deep(x) for x in v] if isinstance(v, (list, tuple)) else unwrap(v)  # noqa: E731
            node.meta["val"] = target(*map(deep, args), **{k: unwrap(v) for k, v in kwargs.items()})
        return node

    def placeholder(self, shape, dtype):
        node = self.graph.placeholder(f"arg{len(self.values)}_1")
        with self.fake:
            node.meta["val"] = torch.empty(shape, dtype=dtype)
        self.values.append(node)
        return node

    def shape(self):
        rng = self.rng
        rows = rng.choice([1, 2, 4, 4, 4, 8, 8, 3, 5, 12, 0])
        return [rows] + [rng.choice([1, 2, 3, 4, 0] if rng.random() < 0.2 else [1, 2, 3, 4]) for _ in range(rng.choice([0, 1, 1, 2]))]

    def pick(self, test=lambda v: True):
        # Late values are preferred a little, so that dependences between collectives occur.
        found = [v for v in self.values if test(self.val(v))]
        if not found:
            return None
        return self.rng.choice(found[-6:] if self.rng.random() < 0.4 else found)

    def input_for(self, kind, size):
        def fits(v):
            if kind == "ag":
                return v.dim() > 0
            if not v.dtype.is_floating_point:
                return False
            return kind == "ar" or (v.dim() > 0 and v.shape[0] % size == 0)

        return self.pick(fits)

    def cast(self, node):
        rng = self.rng
        dtype = rng.choice(self.dtypes + (INTS if rng.random() < 0.1 else []))
        if rng.random() < 0.6:
            cast = self.call(prims.convert_element_type.default, node, dtype)
        else:
            extra = {} if rng.random() < 0.8 else {"memory_format": torch.contiguous_format}
            cast = self.call(aten._to_copy.default, node, dtype=dtype, **extra)
        if rng.random() < 0.25:
            self.values.append(cast)
            self.values.append(self.call(aten.neg.default, cast))
        return cast

    def start(self, kind=None):
        rng = self.rng
        kind = kind or rng.choice(["ag", "ag", "rs", "ar"])
        group = rng.choice(self.groups_used)
        size = self.groups[group]["size"]
        x = self.input_for(kind, size)
        if x is None:
            return
        if kind == "ag":
            for _ in range(rng.choice([0, 0, 1, 1, 1, 2])):
                x = self.cast(x)
            if rng.random() < (0.3 if self.family == "out" else 0.0):
                val = self.val(x)
                buffer = self.call(aten.empty.memory_format, [val.shape[0] * size, *val.shape[1:]], dtype=val.dtype, device=val.device, pin_memory=False)
                node = self.call(c10d.all_gather_into_tensor_out.default, x, size, group, out=buffer)
            else:
                node = self.call(c10d.all_gather_into_tensor.default, x, size, group)
        elif kind == "rs":
            if rng.random() < (0.6 if self.family == "padding" else 0.0):
                x = self.pack(x, size)
            node = self.call(c10d.reduce_scatter_tensor.default, x, rng.choice(["sum"] * 5 + ["avg"]), size, group)
        else:
            node = self.call(c10d.all_reduce.default, x, rng.choice(["sum"] * 5 + ["max"]), group)
        self.pending.append(node)

    def pack(self, x, size):
        """One zero-padded row block per rank; sometimes not quite."""
        rng = self.rng
        src = self.call(aten.relu.default, x) if rng.random() < 0.8 else x
        if rng.random() < 0.5 and self.val(src).shape[0] > 1:
            src = self.call(aten.slice.Tensor, src, 0, 0, self.val(src).shape[0] - 1)
        val = self.val(src)
        rows, rest = val.shape[0], list(val.shape[1:])
        if rows == 0:
            return x
        chunk = -(-rows // size)
        near = rng.random()
        split_args = (src, chunk) if rng.random() < 0.5 else (src, chunk, 0)
        split = self.call(aten.split.Tensor, *split_args)
        pieces = [self.call(operator.getitem, split, i) for i in range(len(self.val(split)))]
        blocks = []
        for i in range(size):
            if i < len(pieces):
                piece = pieces[i]
                missing = chunk - self.val(piece).shape[0]
            else:
                like = pieces[-1] if near < 0.05 else pieces[0]
                piece, missing = self.call(aten.new_zeros.default, like, [0, *rest]), chunk
            pad = [0, 0] * (len(rest)) + [0, missing]
            if missing or rng.random() < 0.2:
                value = 1 if near > 0.95 else 0
                if i < len(pieces) and len(pieces) > 1 and 0.05 <= near < 0.1 and i == 0:
                    piece = pieces[1]
                    pad[-1] = chunk - self.val(piece).shape[0]
                piece = self.call(aten.constant_pad_nd.default, piece, pad, value) if rng.random() < 0.5 or value else self.call(aten.constant_pad_nd.default, piece, pad)
            blocks.append(piece)
        if 0.1 <= near < 0.15 and len(blocks) > 1:
            blocks[0], blocks[1] = blocks[1], blocks[0]
        if 0.15 <= near < 0.2:
            self.values.append(src)
        if 0.2 <= near < 0.25:
            self.values.append(pieces[0])
        packed = self.call(aten.cat.default, blocks) if rng.random() < 0.5 else self.call(aten.cat.default, blocks, 0)
        if 0.25 <= near < 0.3:
            self.values.append(packed)
        return packed

    def wait(self):
        if not self.pending:
            return
        node = self.pending.pop(self.rng.randrange(len(self.pending)) if self.rng.random() < 0.6 else 0)
        wait = self.call(c10d.wait_tensor.default, node)
        self.values.append(wait)
        self.waits.append(wait)
        if self.rng.random() < 0.05:
            again = self.call(c10d.wait_tensor.default, self.rng.choice([node, wait]))
            self.values.append(again)

    def compute(self):
        rng = self.rng
        x = self.pick()
        val = self.val(x)
        what = rng.choice(["unary", "unary", "binary", "cat", "permute", "view", "slice", "sum", "mul", "clone"])
        if what == "unary":
            node = self.call(rng.choice([aten.relu.default, aten.neg.default, aten.abs.default]), x)
        elif what in ("binary", "mul"):
            other = self.pick(lambda v: v.shape == val.shape)
            node = self.call(aten.add.Tensor if what == "binary" else aten.mul.Tensor, x, other)
        elif what == "cat":
            if val.dim() == 0:
                return
            others = [self.pick(lambda v: v.shape[1:] == val.shape[1:] and v.dim() == val.dim()) for _ in range(rng.randint(1, 2))]
            node = self.call(aten.cat.default, [x, *others])
        elif what == "permute":
            if val.dim() < 2:
                return
            dims = list(range(val.dim()))
            rng.shuffle(dims)
            node = self.call(aten.permute.default, x, dims)
        elif what == "view":
            if not val.is_contiguous():
                return
            node = self.call(aten.view.default, x, [-1])
        elif what == "slice":
            if val.dim() == 0 or val.shape[0] < 2:
                return
            node = self.call(aten.slice.Tensor, x, 0, rng.randint(0, 1), val.shape[0])
        elif what == "sum":
            if not val.dtype.is_floating_point:
                return
            node = self.call(aten.sum.default, x)
        else:
            node = self.call(aten.clone.default, x)
        self.values.append(node)

    def build(self):
        rng = self.rng
        for _ in range(rng.randint(2, 6)):
            dtype = rng.choice(FLOATS if rng.random() < 0.9 else INTS)
            self.placeholder(self.shape() if rng.random() < 0.95 else [], dtype)
        kinds = rng.sample(["ag", "rs", "ar"], rng.choice([1, 1, 2, 3]))
        eager = rng.choice([0.25, 0.4, 0.5])
        for _ in range(rng.randint(10, 60)):
            step = rng.random()
            if step < eager:
                self.start(rng.choice(kinds))
            elif step < eager + 0.25:
                self.wait()
            else:
                self.compute()
        while self.pending:
            self.wait()
        unused = [v for v in self.values if not v.users and v.op != "placeholder"]
        outs = [v for v in unused if rng.random() < 0.9] + rng.sample(self.waits, min(len(self.waits), rng.randint(0, 2)))
        self.graph.output(tuple(outs))
        return self.graph


class FsdpBuilder(Builder):
    """Sharded layers: parameters gathered through chains, gradients reduced through chains, and exceptions."""

    def build(self):
        rng = self.rng
        parameters = [self.placeholder([rng.choice([1, 2, 4])] + [2] * rng.randint(0, 1), rng.choice(FLOATS[:2])) for _ in range(rng.randint(2, 6))]
        for _ in range(rng.randint(1, 3)):
            self.placeholder([8, 2], torch.float32)
        for parameter in parameters:
            group = rng.choice(self.groups_used)
            x = parameter
            for _ in range(rng.randint(0, 2)):
                x = self.cast(x) if rng.random() < 0.5 else self.call(aten.relu.default, x)
            if rng.random() < 0.15:
                same = [p for p in parameters if self.val(p).shape == self.val(x).shape]
                x = self.call(aten.mul.Tensor, x, rng.choice([x, *same]))
            self.pending.append(self.call(c10d.all_gather_into_tensor.default, x, self.groups[group]["size"], group))
            if rng.random() < 0.5:
                self.wait()
            if rng.random() < 0.4:
                self.compute()
        for _ in range(rng.randint(3, 12)):
            step = rng.random()
            if step < 0.5:
                self.start(rng.choice(["rs", "rs", "ar", "ag"]))
            elif step < 0.8:
                self.wait()
            else:
                self.compute()
        while self.pending:
            self.wait()
        outs = [v for v in self.values if not v.users and v.op != "placeholder"]
        self.graph.output(tuple(outs))
        return self.graph


# ---------------------------------------------------------------------------------------------------------------
# Passes


def run_passes(gm, kinds, mode, caps, filtered):
    cap = lambda index: caps[min(index, len(caps) - 1)] / 2**20  # noqa: E731
    bucketing.deduplicate_wait_tensors(gm.graph)
    if filtered == "pre":
        fsdp.pre_bucket_fsdp_collectives(gm, mode, cap(0))
        return
    for kind in kinds:
        if filtered == "fsdp":
            if kind == "all_gather":
                fsdp.bucket_fsdp_all_gather(gm, cap, mode)
            elif kind == "reduce_scatter":
                fsdp.bucket_fsdp_reduce_scatter(gm, cap, mode)
            else:
                fsdp.bucket_fsdp_all_reduce(gm, cap)
        elif kind == "all_gather":
            bucketing.bucket_all_gather(gm, cap, mode)
        elif kind == "reduce_scatter":
            bucketing.bucket_reduce_scatter(gm, cap, mode)
        else:
            bucketing.bucket_all_reduce(gm, cap, mode)


def functional_body(gm, mode, caps):
    """Gathers merged by the two functional bodies, which no pass of PyTorch uses."""
    import functools

    cap = lambda index: caps[min(index, len(caps) - 1)] / 2**20  # noqa: E731
    body = functools.partial(bucketing.all_gather_merge_fn_to_trace_functional, use_fsdp_ag_copy_in=mode == "functional_copy_in")
    original = bucketing.all_gather_merge_fn_to_trace
    bucketing.all_gather_merge_fn_to_trace = body
    try:
        bucketing.deduplicate_wait_tensors(gm.graph)
        bucketing.bucket_all_gather(gm, cap, "default")
    finally:
        bucketing.all_gather_merge_fn_to_trace = original


def historic(gm, kinds, caps):
    """Selection and bodies of PR 158663 as section 6 of the specification tells them, traced by this PyTorch."""
    limit = caps[0]
    for kind in kinds:
        gather = kind == "all_gather"
        target = c10d.all_gather_into_tensor.default if gather else c10d.reduce_scatter_tensor.default
        by_key = {}
        for node in gm.graph.nodes:
            if node.target is c10d.wait_tensor.default and node.args[0].target is target:
                start = node.args[0]
                by_key.setdefault((*start.args[1:], start.meta["val"].dtype), []).append(start)
        buckets = []
        for starts in by_key.values():
            bucket, total = [], 0
            for start in starts:
                size = start.meta["val"].numel() * start.meta["val"].element_size()
                if bucket and total + size > limit:
                    buckets.append(bucket)
                    bucket, total = [], 0
                bucket.append(start)
                total += size
            buckets.append(bucket)
        for bucket in buckets:
            if len(bucket) > 1:
                merge_historic(gm.graph, bucket, gather)


def merge_historic(graph, bucket, gather):
    waits = [next(iter(start.users)) for start in bucket]
    assert all(len(start.users) == 1 for start in bucket)
    inputs, casts = [], []
    for start in bucket:
        x = start.args[0]
        if gather and x.target is prims.convert_element_type.default and len(x.users) == 1:
            casts.append(x)
            x = x.args[0]
        inputs.append(x)
    first = bucket[0]
    size, group = first.args[-2], first.args[-1]
    dtype, device = first.meta["val"].dtype, first.meta["val"].device
    rank = dist.get_rank(dist.distributed_c10d._resolve_process_group(group))

    def gathered(xs):
        numels = [x.numel() for x in xs]
        buffer = torch.empty(sum(numels) * size, dtype=dtype, device=device)
        slot = buffer.narrow(0, sum(numels) * rank, sum(numels))
        torch._foreach_copy_(torch.split(slot, numels), [x.reshape(-1) for x in xs])
        out = c10d.wait_tensor.default(c10d.all_gather_into_tensor_out.default(slot, size, group, out=buffer))
        pieces = torch.split_with_sizes(out.reshape(size, -1), numels, dim=1)
        return [p.reshape((x.shape[0] * size,) + x.shape[1:]) for p, x in zip(pieces, xs)]

    def scattered(xs):
        parts = [list(f.split([f.numel() // size] * size)) for f in [x.view(-1) for x in xs]]
        packed = torch.cat([part[r] for r in range(size) for part in parts], dim=0)
        out = c10d.wait_tensor.default(c10d.reduce_scatter_tensor.default(packed, first.args[1], size, group))
        outs, at = [], 0
        for x in xs:
            shape = torch.Size((x.shape[0] // size,) + x.shape[1:])
            outs.append(out.narrow(0, at, shape.numel()).reshape(shape))
            at += shape.numel()
        return outs

    values = [x.meta["val"] for x in inputs]
    with values[0].fake_mode:
        traced = make_fx(gathered if gather else scattered)(values)
    env = dict(zip(traced.graph.find_nodes(op="placeholder"), inputs))
    with graph.inserting_before(bucket[0 if gather else -1].next):
        for node in traced.graph.nodes:
            if node.op == "output":
                outs = [env[out] for out in node.args[0]]
            elif node.op != "placeholder":
                env[node] = graph.node_copy(node, lambda n: env[n])
    for wait, out in zip(waits, outs):
        wait.replace_all_uses_with(out)
    for node in waits + bucket + casts:
        graph.erase_node(node)


def case(rng, groups, mode, family):
    builder = (FsdpBuilder if family == "fsdp" else Builder)(rng, FakeTensorMode(), groups, family)
    graph = builder.build()
    graph.lint()
    gm = fx.GraphModule({}, graph)
    orders = [["reduce_scatter", "all_reduce", "all_gather"], ["all_gather", "reduce_scatter", "all_reduce"], ["reduce_scatter", "all_reduce", "all_gather"], ["all_gather"], ["reduce_scatter"], ["all_reduce"]]
    kinds = rng.choice(orders)
    caps = rng.choice([[2000 * 2**20], [64], [rng.choice([16, 48, 96, 200])], [32, 128]])
    filtered = rng.choice(["pre", "pre", "fsdp"]) if family == "fsdp" else "none"
    if filtered == "fsdp":
        kinds = [rng.choice(kinds)]
    if mode == "custom_ops_multidtype" and filtered == "none":
        kinds = [kind for kind in kinds if kind != "reduce_scatter"] or ["all_gather"]
    if mode.startswith("functional"):
        kinds = ["all_gather"]
    if mode == "historic":
        kinds = [kind for kind in kinds if kind != "all_reduce"] or ["all_gather"]
    options = {"mode": mode, "cap": ",".join(f"{c}B" for c in caps)}
    if mode == "historic":
        options["mode"] = "default"
    if filtered != "none":
        options["filter"] = "fsdp"
    if filtered != "pre":
        options["kind"] = ",".join(kinds)
    lines = [None, export(gm.graph, groups), None, None]
    error = None
    try:
        if mode.startswith("functional"):
            functional_body(gm, mode, caps)
        elif mode == "historic":
            historic(gm, kinds, caps)
        else:
            run_passes(gm, kinds, mode, caps, filtered)
        lines[2] = export(gm.graph, groups)
        stable_topological_sort(gm.graph)
        lines[3] = export(gm.graph, groups)
    except Exception as e:  # noqa: BLE001
        error = f"{type(e).__name__}: {e}"[:300]
    lines[0] = {"options": options, "error": error, "candidate": "pr158663" if mode == "historic" else "reference"}
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--mode", default="default")
    parser.add_argument("--family", default="mixed", choices=["mixed", "out", "padding", "fsdp"])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rank", type=int, default=1)
    options = parser.parse_args()
    dist.init_process_group("fake", store=FakeStore(), rank=options.rank, world_size=4)
    pair = [options.rank // 2 * 2, options.rank // 2 * 2 + 1]
    members = [list(range(4)), pair, [options.rank], list(range(4))]
    made = [dist.group.WORLD] + [dist.new_group(ranks) for ranks in members[1:]]
    groups = {g.group_name: {"size": dist.get_world_size(g), "rank": dist.get_rank(g)} for g in made}
    os.makedirs(options.out, exist_ok=True)
    path = os.path.join(options.out, f"{options.mode}_{options.family}_{options.seed}.jsonl")
    errors = 0
    with open(path, "w") as file:
        for i in range(options.count):
            rng = random.Random(f"{options.seed}/{options.mode}/{options.family}/{i}")
            lines = case(rng, groups, options.mode, options.family)
            errors += lines[0]["error"] is not None
            for line in lines:
                file.write(json.dumps(line) + "\n")
    print(f"{path}: {options.count} cases, PyTorch stopped on {errors}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
