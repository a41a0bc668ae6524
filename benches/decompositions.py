#!/usr/bin/env python3
"""What is said of PyTorch's own decompositions: each operator against what Inductor writes for it.

    GRAPH_ORACLE=target/release/graph-oracle PYTHONPATH=python python benches/decompositions.py [--samples N] [--list] [--keep FOLDER]

Needs the package expecttest. The calls are PyTorch's own samples (`torch.testing._internal.common_methods_invocations.op_db`), traced once as they are
and once with Inductor's table. Both graphs are run on the samples' inputs: pairs that give the same bits are judged bit
for bit, the others with `--allow contraction`. A violation among them is a false alarm, or a defect of PyTorch.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import tempfile
import warnings

import torch
from torch._inductor.decomposition import decompositions
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

import graph_oracle

warnings.filterwarnings("ignore")
VERDICTS = {0: "sound", 1: "violated", 3: "undecided"}


def bits(tensor):
    """The elements of a tensor as integers; all NaNs are one."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if not tensor.is_floating_point():
        return tensor
    kinds = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    whole = tensor.contiguous().view(kinds[tensor.element_size()])
    return torch.where(tensor.isnan(), torch.full_like(whole, -1), whole)


def same_bits(one, other):
    return len(one) == len(other) and all(
        a.shape == b.shape and a.dtype == b.dtype and torch.equal(bits(a), bits(b)) for a, b in zip(one, other)
    )


def pair(info, sample):
    """The graphs before and after with inputs for them; None where both are the same or one cannot be made."""
    leaves, spec = tree_flatten(((sample.input, *sample.args), sample.kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def call(*given):
        given = iter(given)
        args, kwargs = tree_unflatten([next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], spec)
        return [result for result in tree_flatten(info.op(*args, **kwargs))[0] if isinstance(result, torch.Tensor)]

    before = make_fx(call, tracing_mode="fake")(*tensors)
    after = make_fx(call, decomposition_table=decompositions, tracing_mode="fake")(*tensors)
    targets = [[str(node.target) for node in graph.graph.nodes if node.op == "call_function"] for graph in (before, after)]
    return None if targets[0] == targets[1] else (before, after, tensors, targets[0])


def judge(program, before, after, level, keep):
    """The verdict and its reason; both graphs are kept under the prefix `keep`, if it is given."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, module in (("before", before), ("after", after)):
            path = pathlib.Path(f"{keep}.{name}.json") if keep else pathlib.Path(folder, name + ".json")
            path.write_text(graph_oracle.graph(module).json())
            paths.append(str(path))
        command = [program, "check", "rewrite", *paths, "--format", "json", *level]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    why = ""
    if done.returncode in (1, 3):
        said = json.loads(done.stdout)
        of = said.get("findings") or said.get("reasons") or [{}]
        why = of[0].get("title") or of[0].get("text") or str(of[0])
    return VERDICTS.get(done.returncode, "error"), why or done.stderr.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=1, help="calls of each operator")
    parser.add_argument("--list", action="store_true", help="print every pair that is not sound")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the graphs of every pair")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    program = os.environ.get("GRAPH_ORACLE", "graph-oracle")
    torch.set_num_threads(1)
    counts, left_out = collections.Counter(), 0
    for info in op_db:
        if torch.float32 not in info.dtypes:
            continue
        torch.manual_seed(0)
        for _, sample in zip(range(options.samples), info.sample_inputs("cpu", torch.float32)):
            try:
                made = pair(info, sample)
                if made is None:
                    continue
                before, after, tensors, targets = made
                results = [module(*[tensor.clone() for tensor in tensors]) for module in (before, after)]
            except Exception:  # Some samples cannot be traced, or draw: they are counted.
                left_out += 1
                continue
            is_exact = same_bits(*results)
            level = [] if is_exact else ["--allow", "contraction"]
            try:
                name = f"{info.name}.{sum(counts.values())}.{'exact' if is_exact else 'contraction'}"
                verdict, why = judge(program, before, after, level, options.keep and options.keep / name)
            except graph_oracle.CannotJudge as error:
                verdict, why = "error", str(error)
            counts["bit-equal" if is_exact else "others", verdict] += 1
            if options.list and verdict != "sound":
                print(f"{verdict:10} {'bit-equal' if is_exact else 'others':10} {info.name:40} {' '.join(targets)[:80]}: {why[:160]}")
    for kind in ("bit-equal", "others"):
        of = sum(count for (group, _), count in counts.items() if group == kind)
        words = ", ".join(f"{counts[kind, verdict]} {verdict}" for verdict in ("sound", "violated", "undecided", "error"))
        print(f"{kind}: {of} pairs: {words}")
    print(f"{left_out} samples could not be traced or run")


if __name__ == "__main__":
    main()
