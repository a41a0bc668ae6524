"""Arguments that are held to make no difference (oracle/ir/ops/idle.rs), asked of PyTorch.

    python tests/peer/idle_arguments.py GRAPH_ORACLE [CASES] [SEED]

Each case is one call of a pooling, a convolution, an upsampling or a batch norm with random sizes, before and after
with another value of one argument. What `graph-oracle check rewrite` calls sound must have the same bits in PyTorch, in
the results and in what the inputs are afterwards. Prints what is not so, and how often each verdict met the same bits.
Exit status 1 if anything is not so, or if no case was sound, or none was convicted.
"""

import collections
import pathlib
import random
import subprocess
import sys
import tempfile

import torch

NAMES = {torch.float32: "f32", torch.int64: "i64"}


def pooling(of):
    """The windows of a pooling, and two values of `ceil_mode` or `dilation`."""
    sizes = [of.randint(3, 9), of.randint(3, 9)]
    window = [of.randint(1, 3), of.randint(1, 3)]
    steps = of.choice([[], window, window[:1], [of.randint(1, 3), of.randint(1, 3)]])
    return torch.randn(1, 2, *sizes), (window, steps, [size // 2 for size in window])


def average(of):
    x, (window, steps, padding) = pooling(of)
    if of.random() < 0.5:
        return "avg_pool2d", [x], lambda ceil: (x, window, steps, padding, ceil), [False, True]
    padding, ceil = of.choice([padding, [0, 0]]), of.random() < 0.5
    return "avg_pool2d", [x], lambda counted: (x, window, steps, padding, ceil, counted), [False, True]


def average_backward(of):
    x, window = pooling(of)
    grad = torch.randn_like(torch.ops.aten.avg_pool2d(x, *window, False))
    return "avg_pool2d_backward", [grad, x], lambda ceil: (grad, x, *window, ceil, True, None), [False, True]


def maximum(of):
    x, window = pooling(of)
    name = "max_pool2d_with_indices"
    if of.random() < 0.5:
        return name, [x], lambda ceil: (x, *window, [1, 1], ceil), [False, True]
    return name, [x], lambda apart: (x, *window, apart, False), of.sample([[1, 1], [2, 2], [1, 2]], 2)


def convolution(of):
    x, weight = torch.randn(1, 2, 7, 8), torch.randn(2, 2, of.randint(1, 2), of.randint(1, 2))
    transposed = of.random() < 0.5
    call = lambda more: (x, weight, None, [2, 2], [1, 1], [1, 1], transposed, more, 1)  # noqa: E731
    return "convolution", [x, weight], call, [[0, 0], [1, 1]]


def upsampling(of):
    sizes = [of.randint(1, 9), of.randint(1, 9)]
    larger = [of.randint(1, 18) if of.random() < 0.2 else size * of.randint(1, 3) for size in sizes]
    factor = lambda i: of.choice([larger[i] / sizes[i], of.choice([0.5, 1.5, 2.0, 3.0]), None])
    factors = [[factor(0), factor(1)] for _ in range(2)]
    linear, corners = of.random() < 0.5, of.random() < 0.4
    more = [corners] if linear else []
    name = "upsample_bilinear2d" if linear else "upsample_nearest2d"
    if of.random() < 0.5:
        x = torch.randn(1, 2, *sizes)
        return name, [x], lambda by: (x, larger, *more, *by), factors
    grad = torch.randn(1, 2, *larger)
    return f"{name}_backward", [grad], lambda by: (grad, larger, [1, 2, *sizes], *more, *by), factors


def batch_norm(of):
    inputs = [torch.randn(2, 3, 4), *(torch.randn(3) for _ in range(3)), torch.rand(3)]
    trains = of.random() < 0.5
    if of.random() < 0.3:
        kept = inputs[:3]
        return "native_batch_norm", kept, lambda momentum: (*kept, None, None, True, momentum, 1e-5), [0.1, 0.3]
    return "native_batch_norm", inputs, lambda momentum: (*inputs, trains, momentum, 1e-5), [0.1, 0.3]


def typed(value):
    if value is None:
        return "None"
    return f"{NAMES[value.dtype]}[{', '.join(map(str, value.shape))}]"


def written(name, inputs, arguments, results):
    """The graph that makes the call, in the text format."""
    place = {id(tensor): f"x{i}" for i, tensor in enumerate(inputs)}
    said = ", ".join(place[id(value)] if isinstance(value, torch.Tensor) else str(value) for value in arguments)
    names = [f"y{i}" for i in range(len(results))]
    kinds = ", ".join(map(typed, results))
    call = f"{', '.join(names)} = aten.{name}.default({said}) : {kinds if len(results) == 1 else f'({kinds})'}"
    kept = [result for result, value in zip(names, results, strict=True) if value is not None]
    takes = "".join(f"x{i} = input : {typed(tensor)}\n" for i, tensor in enumerate(inputs))
    return f"{takes}{call}\noutput ({', '.join(kept)})\n"


def observed(name, inputs, arguments):
    """The results of the call, and all that there is to see afterwards: its results, and its inputs."""
    copies = {id(tensor): tensor.clone() for tensor in inputs}
    given = [copies.get(id(value), value) if isinstance(value, torch.Tensor) else value for value in arguments]
    made = getattr(torch.ops.aten, name).default(*given)
    results = [made] if isinstance(made, torch.Tensor) else list(made)
    return results, [value for value in results if value is not None] + list(copies.values())


def main(oracle, cases=300, seed=0):
    of = random.Random(seed)
    torch.manual_seed(seed)
    made = [average, average_backward, maximum, convolution, upsampling, batch_norm]
    counts, wrong = collections.Counter(), 0
    path = pathlib.Path(tempfile.mkdtemp()) / "pair.graph"
    for number in range(cases):
        name, inputs, call, values = made[number % len(made)](of)
        try:
            runs = [(call(value), *observed(name, inputs, call(value))) for value in values]
        except RuntimeError:
            counts["refused by PyTorch"] += 1
            continue
        texts = [written(name, inputs, arguments, results) for arguments, results, _ in runs]
        path.write_text(f"pass rewrite\n{texts[0]}--- after\n{texts[1]}")
        run = subprocess.run([oracle, "check", "rewrite", path], capture_output=True, text=True, check=False)
        assert run.returncode in (0, 1, 3), run.stderr
        (one, other) = (seen for _, _, seen in runs)
        same = all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(one, other, strict=True))
        verdict = {0: "sound", 1: "violated", 3: "undecided"}[run.returncode]
        counts[f"{name}: {verdict}, {'the same bits' if same else 'other bits'}"] += 1
        if verdict == "sound" and not same:
            wrong += 1
            print(f"sound, and PyTorch gives other bits:\n{path.read_text()}")
    for what, count in sorted(counts.items()):
        print(f"{count:5} {what}")
    total = {word: sum(n for what, n in counts.items() if f": {word}" in what) for word in ("sound", "violated")}
    print(f"{cases} cases, {total['sound']} sound, {total['violated']} violated, {wrong} wrong")
    return 1 if wrong or not all(total.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
