"""How much longer torch.compile takes while graph-oracle watches its passes.

    PYTHONPATH=python python benches/watch.py [--runs N] [--layers N] [--kernels]

Compiles a training step of a small model in the manner of Llama (python/examples/llama.py), watched and not, in
turns, with Inductor's caches off in both. Without `--kernels` the kernels come compiled from the disk, after a first
run that is not counted: what is measured is PyTorch's own work on graphs. With it they are compiled anew, as in a
first compilation. Prints the median times (of the processor, with `--kernels` by the clock), their ratio, and how
much of the watched time the judging took.
"""

import argparse
import contextlib
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python", "examples"))

import llama
import torch
from torch._inductor.utils import fresh_inductor_cache

import graph_oracle


def compilation(layers, watched, kernels):
    """Seconds for one compilation of forward and backward with their run, and what was seen."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = llama.Llama(layers=layers, recompute=False)
    fresh = fresh_inductor_cache() if kernels else contextlib.nullcontext()
    watch = graph_oracle.watch(report=False) if watched else contextlib.nullcontext()
    caches = {"fx_graph_cache": False, "fx_graph_remote_cache": False}
    with fresh, torch._inductor.config.patch(caches), torch._functorch.config.patch(enable_autograd_cache=False):
        # Without kernels all is done in this process, and its own time is not that of others on the machine.
        clock = time.perf_counter if kernels else time.process_time
        started = clock()
        with watch as seen:
            llama.step(model)
        return clock() - started, seen


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--kernels", action="store_true")
    options = parser.parse_args()
    plain, watched, judging, seen = [], [], [], None
    for watch in (False, True):
        compilation(options.layers, watch, options.kernels)
    for _ in range(options.runs):
        plain.append(compilation(options.layers, False, options.kernels)[0])
        seconds, seen = compilation(options.layers, True, options.kernels)
        watched.append(seconds)
        judging.append(seen.seconds)
    print(seen)
    before, after = statistics.median(plain), statistics.median(watched)
    print(f"unwatched {before:.2f} s, watched {after:.2f} s, ratio {after / before:.3f}")
    print(f"judging {statistics.median(judging):.2f} s by the clock")
    print("all runs: " + ", ".join(f"{a:.2f}/{b:.2f}" for a, b in zip(watched, plain)))


if __name__ == "__main__":
    main()
