"""How long `check_pair` takes on a real graph in memory, beside the pass that it judges.

    PYTHONPATH=python python benches/check_pair.py [--graph ../shared/graphs/llama3_8b_bw_64_1d.json.gz] [--runs N]

Rebuilds the graph as a GraphModule, copies it, has PyTorch bucket its all-gathers and reduce-scatters and sort it, as
Inductor does, and judges the pair N times. Prints the time of the passes, and of judging the least, the median and the
most, with what reading the graphs takes.
"""

import argparse
import copy
import gzip
import json
import statistics
import time

import torch
from pytorch import on_a_mesh
from torch._inductor.fx_passes import bucketing
from torch._inductor.pattern_matcher import stable_topological_sort

import graph_oracle


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", default="../shared/graphs/llama3_8b_bw_64_1d.json.gz")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--kind", default="bucketing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with gzip.open(options.graph) as file:
        given = graph_oracle.Graph(json.dumps(on_a_mesh(json.load(file))))
    with graph_oracle.rebuilt(given) as module:
        before = copy.deepcopy(module)
        started = time.perf_counter()
        bucketing.bucket_all_gather(module)
        bucketing.bucket_reduce_scatter(module)
        stable_topological_sort(module.graph)
        seconds = time.perf_counter() - started
        print(f"{len(before.graph.nodes)} nodes before, {len(module.graph.nodes)} after; the passes: {seconds * 1e3:.0f} ms")
        whole, read = [], []
        for _ in range(options.runs):
            started = time.perf_counter()
            verdict = graph_oracle.check_pair(before, module, options.kind)
            whole.append(time.perf_counter() - started)
            started = time.perf_counter()
            graph_oracle.graph(before), graph_oracle.graph(module)
            read.append(time.perf_counter() - started)
    median = statistics.median(whole)
    print(verdict)
    print(f"check_pair: {min(whole) * 1e3:.0f}, {median * 1e3:.0f}, {max(whole) * 1e3:.0f} ms; {median / seconds:.1%} of the passes")
    print(f"reading each graph by itself: {statistics.median(read) * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
