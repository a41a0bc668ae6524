"""Side by side: PyTorch's passes and ours on the same real graphs, in one run.

    cargo build --release && python benches/pytorch.py [--graphs ../shared/graphs] [--rounds 3] [--out table.md]

Needs torch and the package in python (`pip install ./python`). For each graph and pass the two
alternate, round by round, and the medians are told. On both sides the time inside the pass counts, on a graph that is
read or rebuilt anew each time (`--timing` of graph-oracle), in seconds of processor time of all threads, so that other
work on the machine matters less.

Columns: PyTorch's pass; our reference (`run`); judging PyTorch's own result by all rules and the symbolic proof of all
values (`check --values symbolic`), and the same without values, with their shares of PyTorch's time.
"""

import argparse
import copy
import gzip
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent.parent
BUCKETED = ["llama3_8b_fw_64_1d", "llama3_8b_bw_64_1d", "llama3_8b_fw_256_2d", "dsv3_fw_64", "small_fsdp12_joint"]
JOINT = ["ap_llama_cpu_1d_w64_L2_s1_joint", "small_gpt_joint", "small_fsdp12_joint"]


def seconds(arguments, part, expected):
    """The seconds of processor time that a command says one of its parts took."""
    done = subprocess.run([*arguments, "--timing"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in expected:
        sys.exit(f"{' '.join(map(str, arguments))}: exit status {done.returncode}\n{done.stdout[:500]}{done.stderr[:500]}")
    for line in done.stderr.splitlines():
        if line.startswith(f"{part}: "):
            return float(line.removeprefix(f"{part}: ").split(", ")[-1].split()[0])
    sys.exit(f"{' '.join(map(str, arguments))}: does not say how long {part} took")


def on_a_mesh(document):
    """The graph with ranks for its groups: recorded graphs name sizes only."""
    document = copy.deepcopy(document)
    groups = document["groups"]
    ranks = max([group["size"] for group in groups.values()], default=1)
    if len(groups) > 1:
        ranks = 1
        for size in {name: group["size"] for name, group in groups.items()}.values():
            ranks *= size
    stride = 1
    for group in groups.values():
        size = group["size"]
        group["ranks"] = [
            [base + offset + i * stride for i in range(size)]
            for base in range(0, ranks, size * stride)
            for offset in range(stride)
        ]
        group.pop("rank", None)
        stride = stride * size if stride * size < ranks else 1
    document["schema_version"] = "graph-oracle/1"
    document["world"] = {"ranks": ranks}
    return document


class Peer:
    """PyTorch's passes, timed from inside."""

    def __init__(self):
        from graph_oracle.pytorch import passes, rebuild

        self.passes, self.rebuild = passes.load(), rebuild.rebuild

    def run(self, name, document, options):
        """The outcome; its `seconds` are those inside PyTorch's pass."""
        found = self.passes[name]
        rebuilt = self.rebuild(document, 0, values=found.values, after=found.after)
        # Its clock becomes the processor's for this call.
        with unittest.mock.patch("time.perf_counter", time.process_time):
            return found.run(rebuilt, options)


def side_by_side(peer, binary, folder, graph, name, options, rounds):
    source = folder / f"{graph}.json.gz"
    if not source.exists():
        return None
    document = json.load(gzip.open(source))
    theirs, ours, judged, structural = [], [], [], []
    settings = [f"--set={key}={value}" for key, value in options.items()]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for _ in range(rounds):
            outcome = peer.run(name, on_a_mesh(document), options)
            theirs.append(outcome["seconds"])
            if name == "bucketing":
                results = [scratch / "after.json"]
                keys = ["repaired"]
                target = scratch / "ours.json"
            else:
                results = [scratch / "forward.json", scratch / "backward.json"]
                keys = ["forward", "backward"]
                target = scratch / "ours"
            for path, key in zip(results, keys):
                path.write_text(json.dumps(outcome[key]))
            ours.append(seconds([binary, "run", name, source, "-o", target, *settings], "the pass", {0}))
            # What the rules say of PyTorch's result is not this script's subject.
            check = [binary, "check", name, source, *results, *(settings if name == "partition" else [])]
            judged.append(seconds([*check, "--values=symbolic"], "judging", {0, 1, 3}))
            structural.append(seconds([*check, "--values=off"], "judging", {0, 1, 3}))
    nodes = len(document["nodes"])
    label = name if name == "bucketing" else f"partition, {options['method']}"
    return label, graph, nodes, *map(statistics.median, (theirs, ours, judged, structural))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=pathlib.Path, default=HERE.parent / "shared" / "graphs")
    parser.add_argument("--binary", type=pathlib.Path, default=HERE / "target" / "release" / "graph-oracle")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    if not options.binary.exists():
        sys.exit(f"{options.binary} is not there: cargo build --release")
    try:
        import torch
        from graph_oracle.pytorch.errors import Refused

        peer = Peer()
    except ImportError as error:
        sys.exit(f"{error}: pip install torch numpy ./python")
    torch.set_num_threads(1)
    jobs = [(graph, "bucketing", {}) for graph in BUCKETED]
    jobs += [(graph, "partition", {"method": method}) for graph in JOINT for method in ("default", "min-cut")]
    rows = [
        f"| pass | graph | nodes | PyTorch {torch.__version__.split('+')[0]} | reference | ratio | judging | share | without values | share |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    print("\n".join(rows), flush=True)
    done = 0
    for graph, name, settings in jobs:
        try:
            row = side_by_side(peer, options.binary, options.graphs, graph, name, settings, options.rounds)
        except Refused as why:
            print(f"left out: {graph}: PyTorch's graph cannot be rebuilt: {why}", file=sys.stderr)
            continue
        if row is None:
            print(f"skipped: there is no {graph} in {options.graphs}", file=sys.stderr)
            continue
        label, graph, nodes, theirs, ours, judged, structural = row
        line = (
            f"| {label} | {graph} | {nodes} | {theirs:.3f} s | {ours * 1000:.1f} ms | {theirs / ours:.0f}x"
            f" | {judged * 1000:.1f} ms | {judged / theirs:.1%} | {structural * 1000:.1f} ms | {structural / theirs:.1%} |"
        )
        rows.append(line)
        print(line, flush=True)
        done += 1
    if options.out:
        options.out.write_text("\n".join(rows) + "\n")
    if done == 0:
        sys.exit("no graph was there to measure on")


if __name__ == "__main__":
    main()
