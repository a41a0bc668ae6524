"""Runs small programs eagerly in PyTorch and compares the results with the oracle's.

    python tests/peer/kernels.py CASES.json

Each case holds a graph in the exchange format, the bits of its inputs, and what the oracle's interpreter makes of
it: output bits, or why it gives none. Prints one JSON object per case that does not agree, then a summary line with the
operators of the cases that agree.
The Rust side is oracle/execution/tests/peer/mod.rs; set GRAPH_ORACLE_PYTHON to run it.
"""

import itertools
import json
import logging
import operator
import sys
import warnings

import torch

logging.disable(logging.CRITICAL)
warnings.filterwarnings("ignore")
import torch._inductor.fx_passes.bucketing  # noqa: E402,F401
import torch._inductor.inductor_prims  # noqa: E402,F401
import torch.distributed.fsdp  # noqa: E402,F401

INTS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def wrapped(bits, size):
    """An unsigned bit pattern as the signed integer that torch.tensor takes (uint8 for single bytes)."""
    half = 1 << (8 * size - 1)
    return bits - 2 * half if size > 1 and bits >= half else bits


def from_bits(bits, dtype):
    size = dtype.itemsize
    flat = torch.tensor([wrapped(b, size) for b in bits], dtype=INTS[size])
    return flat.bool() if dtype == torch.bool else flat.view(dtype)


def to_bits(tensor):
    flat = tensor.detach().resolve_conj().contiguous().reshape(-1)
    if flat.dtype == torch.bool:
        flat = flat.to(torch.uint8)
    if flat.dtype == torch.complex128:
        flat = torch.view_as_real(flat).reshape(-1)
    size = flat.dtype.itemsize
    return [int(b) & ((1 << (8 * size)) - 1) for b in flat.view(INTS[size]).tolist()]


def make(out, bits):
    dtype = getattr(torch, out["dtype"])
    shape, stride = out["shape"], out["stride"]
    if 0 in shape:
        return torch.empty(shape, dtype=dtype)
    span = 1 + sum((n - 1) * s for n, s in zip(shape, stride))
    tensor = torch.zeros(span, dtype=dtype).as_strided(shape, stride)
    # Elements that share a place hold the same bits, so the order of the writes does not matter.
    values = from_bits(bits, dtype).reshape(shape)
    for index in itertools.product(*[range(n) for n in shape]):
        tensor[index] = values[index]
    return tensor


def decode(value, env):
    if isinstance(value, list):
        return [decode(v, env) for v in value]
    if not isinstance(value, dict):
        return value
    (key, inner), *_ = value.items()
    if key == "ref":
        return env[inner]
    if key in ("dtype", "memory_format"):
        return getattr(torch, inner)
    if key == "device":
        return torch.device(inner)
    if key == "float":
        return float(inner)
    raise ValueError(f"argument {value}")


def function(target):
    space, *path = target.split(".")
    found = operator if space == "operator" else getattr(torch.ops, space)
    for name in path:
        found = getattr(found, name)
    return found


def run(case):
    bits = {given["name"]: given["cells"] for given in case["inputs"]}
    env, result = {}, None
    for node in case["graph"]["nodes"]:
        args = decode(node.get("args", []), env)
        if node["op"] == "placeholder":
            env[node["name"]] = make(node["out"], bits[node["name"]])
        elif node["op"] == "output":
            result = args[0]
        else:
            kwargs = {key: decode(value, env) for key, value in node.get("kwargs", {}).items()}
            env[node["name"]] = function(node["target"])(*args, **kwargs)
    return result


def distance(a, b, dtype):
    """Units of the last place between two float bit patterns; NaN is equal to NaN."""
    pair = from_bits([a, b], dtype)
    if pair.isnan().any():
        return 0 if pair.isnan().all() else float("inf")
    sign = 1 << (8 * dtype.itemsize - 1)
    line = [sign - x if x & sign else x for x in (a, b)]
    return abs(line[0] - line[1])


def differs(case, result):
    for k, (expected, tensor) in enumerate(zip(case["outputs"], result)):
        if not isinstance(tensor, torch.Tensor):
            return f"output {k} is {tensor!r}"
        dtype = str(tensor.dtype).removeprefix("torch.")
        if dtype != expected["dtype"]:
            return f"output {k} is {dtype} in PyTorch, {expected['dtype']} here"
        if list(tensor.shape) != expected["shape"]:
            return f"output {k} has shape {list(tensor.shape)} in PyTorch, {expected['shape']} here"
        for i, (theirs, ours) in enumerate(zip(to_bits(tensor), expected["cells"])):
            if theirs == ours:
                continue
            if ours is None:
                return f"output {k}, element {i}: poison here, {tensor.reshape(-1)[i]} in PyTorch"
            one = torch.float32 if tensor.dtype == torch.complex64 else tensor.dtype
            if one.is_floating_point:
                parts = [(theirs, ours)]
                if tensor.dtype == torch.complex64:
                    low = (1 << 32) - 1
                    parts = [(theirs & low, ours & low), (theirs >> 32, ours >> 32)]
                if all(distance(a, b, one) <= case["ulps"] for a, b in parts):
                    continue
            if tensor.dtype == torch.complex128:
                return f"output {k}, part {i}: bits {theirs:x} in PyTorch, {ours:x} here"
            values = from_bits([theirs, ours], tensor.dtype).tolist()
            if one.is_floating_point and abs(values[0] - values[1]) <= case["absolute"]:
                continue
            return f"output {k}, element {i}: {values[0]} in PyTorch, {values[1]} here"
    return None


def main():
    counts = {"agree": 0, "both raise": 0, "raises in PyTorch only": 0, "not computed here": 0, "differ": 0}
    targets = set()
    with open(sys.argv[1]) as file:
        cases = json.load(file)
    for case in cases:
        failure = case.get("failure")
        try:
            result = run(case)
        except Exception as error:  # noqa: BLE001
            outcome = "both raise" if failure else "raises in PyTorch only"
            counts[outcome] += 1
            if not failure:
                print(json.dumps({"case": case["name"], "outcome": outcome, "why": str(error).split("\n")[0][:150]}))
            continue
        if failure:
            counts["not computed here"] += 1
            print(json.dumps({"case": case["name"], "outcome": "not computed here", "why": failure}))
            continue
        why = differs(case, result)
        counts["differ" if why else "agree"] += 1
        if not why:
            targets.update(node["target"] for node in case["graph"]["nodes"] if node["op"] == "call_function")
        if why:
            print(json.dumps({"case": case["name"], "outcome": "differ", "why": why}))
    print(json.dumps({"summary": counts, "targets": sorted(targets)}))


main()
