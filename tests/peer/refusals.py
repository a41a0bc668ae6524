"""Finds out what operators ask of their arguments: spoils one argument of a call at a time, and asks PyTorch.

    python tests/peer/refusals.py tests/ops/refusal_cases.json.gz SAMPLES [CALLS PER OPERATOR] [PART OF A NAME...]

SAMPLES is the folder of the samples that definitions were measured with (`samples.py`, `check.py`). Each tensor gets other
dtypes and sizes, each number others in and out of range, each list one more and one less. All is run on real CPU tensors
and on fake ones: a call that both refuse has the module path `refused`, one that the CPU refuses alone `refused here`. What
depends on the values of elements is left out (all integers are 0), and so is what only lacks a kernel. Kernels that crash
are run in a process of their own. `tests/ops/refusals.rs` holds shape rules and definitions against the file.
"""

import gzip
import json
import os
import pickle
import random
import sys

OUT, SAMPLES, COUNT, WORDS = sys.argv[1], sys.argv[2], int((sys.argv + ["1"] * 4)[3]), sys.argv[4:]
sys.argv = sys.argv[:1]
sys.path[:0] = [SAMPLES, os.path.dirname(os.path.abspath(__file__))]
import check  # noqa: E402
import samples  # noqa: E402
import torch  # noqa: E402
from shape_cases import RNG, T, Recorder, materialise, operator, run, twin  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

DTYPES = [
    torch.int64, torch.int32, torch.int16, torch.uint8, torch.float64, torch.float16, torch.bool, torch.complex64,
]
NUMBERS = [-99, -4, -3, -2, -1, 0, 1, 2, 3, 4, 99]


def described(value):
    """Tensors as what they are made of."""
    if isinstance(value, torch.Tensor):
        return T(value.shape, value.dtype, "plain", fill=0 if value.dtype in DTYPES[:4] else 1)
    return [described(x) for x in value] if isinstance(value, (list, tuple)) else value


def other_shapes(shape):
    shape = list(shape)
    yield []
    yield from ([shape[1:], shape[:-1]] if shape else [])
    yield from ([1, *shape], [3, *shape], [*shape, 1], [*shape, 2])
    for i, n in enumerate(shape):
        for other in {n - 1, n + 1, n + 3, 1, 0} - {n, -1}:
            yield [*shape[:i], other, *shape[i + 1 :]]


def spoilt(value):
    if isinstance(value, T):
        for dtype in DTYPES:
            if dtype != value.dtype:
                other = twin(value)
                other.dtype, other.fill = dtype, 1 if dtype.is_floating_point else 0
                yield other
        for shape in other_shapes(value.shape):
            other = twin(value)
            other.shape = tuple(shape)
            yield other
    elif isinstance(value, (bool, type(None))):
        return
    elif isinstance(value, int):
        yield from (n for n in NUMBERS if n != value)
    elif isinstance(value, str):
        yield "bogus"
    elif isinstance(value, list):
        yield from ([value[1:], [value[0], *value], []] if value else [[]])
        for i, item in enumerate(value):
            yield from ([*value[:i], other, *value[i + 1 :]] for other in spoilt(item))


def calls(name):
    RNG.seed(1)
    for seed in range(COUNT):
        random.seed(seed)
        made = samples.S[name](check.R(seed, torch.float32, "small"))
        if made is None:
            continue
        args, kwargs = made if len(made) == 2 and isinstance(made[1], dict) else (made, {})
        args, kwargs = described(list(args)), {key: described(value) for key, value in kwargs.items()}
        yield args, kwargs
        for i, value in enumerate(args):
            yield from (([*args[:i], other, *args[i + 1 :]], kwargs) for other in spoilt(value))
        for key, value in kwargs.items():
            if key != "device":
                yield from ((args, {**kwargs, key: other}) for other in spoilt(value))


def answer(name, args, kwargs):
    """Result, module path, and tensors; `None` where nothing is said."""
    op, tensors, mode, result, refusal, is_fake = operator(name), {}, FakeTensorMode(), None, None, True
    try:
        [materialise(value, tensors, lambda tensor: tensor) for value in [*args, *kwargs.values()]]
    except Exception:
        return None
    try:
        result, tensors = run(op, args, kwargs, lambda tensor: tensor)
    except Exception as error:
        refusal = str(error)
    try:
        with mode:
            run(op, args, kwargs, mode.from_tensor)
    except Exception:
        is_fake = False
    elements = ["not implemented for", "CPU", "out of bounds", "out of range in self", "INTERNAL ASSERT", "primitive"]
    if "complex32" in str(result) or refusal and any(word in refusal for word in elements):
        return None
    return result, refusal and ("refused here" if is_fake else "refused"), tensors


def child(name, start, pipe):
    with os.fdopen(pipe, "wb") as file:
        for i, (args, kwargs) in enumerate(calls(name)):
            if i < start:
                continue
            file.write(pickle.dumps((i, None)))
            file.flush()
            if found := answer(name, args, kwargs):
                result, refusal, tensors = found
                recorder = Recorder()
                label = f"{'_'.join(name.split('.')[1:])}_{i}"
                try:
                    recorder.call(label, name, args, kwargs, tensors, result)
                except Exception:
                    continue
                # What gives nothing is recorded as refused there.
                recorder.nodes[-1].pop("module", None)
                if refusal:
                    recorder.nodes[-1]["module"] = refusal
                file.write(pickle.dumps((i, recorder.nodes)))


def spelt(value, names):
    """References by their new names, and floats as JSON has them."""
    if isinstance(value, dict):
        return {"ref": names[value["ref"]]} if "ref" in value else value
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return 1e300 if value > 0 else -1e300
    return [spelt(x, names) for x in value] if isinstance(value, list) else value


def main():
    nodes, inputs, seen, refused = [], {}, set(), 0
    for name in sorted(samples.S):
        start = 0 if not WORDS or any(word in name for word in WORDS) else None
        while start is not None:
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(read)
                try:
                    child(name, start, write)
                finally:
                    os._exit(0)
            os.close(write)
            last = start
            with os.fdopen(read, "rb") as file:
                while True:
                    try:
                        last, made = pickle.load(file)
                    except (EOFError, pickle.UnpicklingError):
                        break
                    names = {}
                    for node in made or []:
                        if node["op"] == "placeholder":
                            # One input of each kind for all calls.
                            key = json.dumps(node["out"])
                            if key not in inputs:
                                inputs[key] = f"x{len(inputs)}"
                                nodes.insert(len(inputs) - 1, {**node, "name": inputs[key], "target": inputs[key]})
                            names[node["name"]] = inputs[key]
                            continue
                        node["args"] = spelt(node["args"], names)
                        node["kwargs"] = {key: spelt(value, names) for key, value in node["kwargs"].items()}
                        same = json.dumps([node["target"], node["args"], node["kwargs"]])
                        if same not in seen:
                            seen.add(same)
                            nodes.append(node)
                            refused += "module" in node
            _, status = os.waitpid(pid, 0)
            start = None if status == 0 else last + 1
    graph = {
        "schema_version": "fxjson/1", "name": "refusals", "source": "tests/peer/refusals.py",
        "torch": torch.__version__, "kind": "inference", "groups": {}, "symbols": {}, "num_nodes": len(nodes),
        "ops": {}, "nodes": nodes,
    }
    text = json.dumps(graph, separators=(",", ":")).replace('{"name"', '\n{"name"')
    with open(OUT, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as packed:
        packed.write(text.encode())
    print(len(nodes), "nodes,", len(inputs), "inputs,", refused, "refused")


if __name__ == "__main__":
    main()
