"""Graphs as exchange JSON, for the tests: small ones, and the project's recorded ones."""

import gzip
import json
import pathlib

REAL = pathlib.Path(__file__).resolve().parents[2] / "corpus" / "real"


def recorded():
    """The graphs of corpus/real, by name. Where one does not say how many ranks there are, they are those of its
    groups."""
    for path in sorted(REAL.rglob("*.json.gz")):
        document = json.loads(gzip.decompress(path.read_bytes()))
        groups = document.get("groups") or {}
        ranks = [
            rank
            for group in groups.values()
            for instance in group.get("ranks") or [range(group["size"])]
            for rank in instance
        ]
        document.setdefault("world", {"ranks": max(ranks, default=0) + 1})
        for group in groups.values():
            group.setdefault("ranks", [list(range(group["size"]))])
        yield path.name, document


def tensor(shape, dtype="float32", device="cpu", **more):
    stride, step = [], 1
    for n in reversed(shape):
        stride.insert(0, step)
        step *= max(n, 1)
    return {"t": "tensor", "shape": shape, "dtype": dtype, "device": device, "stride": stride, **more}


def placeholder(name, shape, **more):
    return {"name": name, "op": "placeholder", "target": name, "out": tensor(shape, **more)}


def call(name, target, args, out=None, **more):
    entry = {"name": name, "op": "call_function", "target": target, "args": args, **more}
    if out is not None:
        entry["out"] = out
    return entry


def ref(name):
    return {"ref": name}


def gather(name, source, size, group, shape, **more):
    target = "_c10d_functional.all_gather_into_tensor.default"
    return call(name, target, [ref(source), size, group], tensor(shape), **more)


def wait(name, source, shape):
    return call(name, "_c10d_functional.wait_tensor.default", [ref(source)], tensor(shape))


def output(*names):
    return {"name": "output", "op": "output", "target": "output", "args": [[ref(name) for name in names]]}


def document(nodes, *, ranks=2, groups=None, **more):
    groups = {"dp": [list(range(ranks))]} if groups is None else groups
    return {
        "schema_version": "graph-oracle/1",
        "name": "test",
        "kind": "forward",
        "world": {"ranks": ranks},
        "groups": {name: {"size": len(lists[0]), "ranks": lists} for name, lists in groups.items()},
        "symbols": {},
        "num_nodes": len(nodes),
        "ops": {},
        "nodes": nodes,
        **more,
    }


def two_gathers(ranks=2):
    """Two independent all-gathers, which are one bucket."""
    return document(
        [
            placeholder("x", [2]),
            placeholder("y", [3]),
            gather("g0", "x", ranks, "dp", [2 * ranks]),
            gather("g1", "y", ranks, "dp", [3 * ranks]),
            wait("w0", "g0", [2 * ranks]),
            wait("w1", "g1", [3 * ranks]),
            output("w0", "w1"),
        ],
        ranks=ranks,
    )


def joint():
    """sin(x) * x, and its gradient."""
    four = [4]
    return document(
        [
            placeholder("primals_1", four),
            call("sin", "aten.sin.default", [ref("primals_1")], tensor(four)),
            call("mul", "aten.mul.Tensor", [ref("sin"), ref("primals_1")], tensor(four)),
            placeholder("tangents_1", four),
            call("cos", "aten.cos.default", [ref("primals_1")], tensor(four)),
            call("mul_1", "aten.mul.Tensor", [ref("tangents_1"), ref("sin")], tensor(four)),
            call("mul_2", "aten.mul.Tensor", [ref("tangents_1"), ref("cos")], tensor(four)),
            call("add", "aten.add.Tensor", [ref("mul_1"), ref("mul_2")], tensor(four)),
            output("mul", "add"),
        ],
        kind="joint",
        num_fwd_outputs=1,
    )
