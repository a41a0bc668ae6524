"""Side by side: the memory orders of PyTorch's scheduler and ours, on the same nodes, in one run.

    python benches/memory.py [--nodes 5000] [--rounds 3]

Needs torch and cargo. The nodes are those of benches/memory.rs: one output each, at most three others read within a
distance of 60. PyTorch's `topological_sort_lpmf`, `_bfs` and `_dfs` get mock nodes (tests/peer/memory_orders.py) that are
planned already, as ours are. Told are the least of the rounds in processor time for PyTorch, and criterion's lower
estimate for ours.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import time
import types

HERE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "tests" / "peer"))

import memory_orders as peer  # noqa: E402
from torch._inductor import memory  # noqa: E402
from torch._inductor.dependencies import StarDep  # noqa: E402
from torch._inductor.virtualized import V  # noqa: E402
from torch.utils._ordered_set import OrderedSet  # noqa: E402


def program(count):
    """The program of benches/memory.rs."""
    state = 7

    def below(n):
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % max(n, 1)

    nodes, buffers = [], []
    for i in range(count):
        reads = sorted({i - 1 - below(min(i, 60)) for _ in range(min(below(4), i))})
        node = peer.Node(f"op{i}")
        for read in reads:
            node.unmet_dependencies.add(StarDep(f"buf{read}"))
        buffer = peer.Buf(f"buf{i}", peer.Ir(peer.layout("owned"), (below(100) + 1) * 10))
        node.outs.append(buffer)
        nodes.append(node)
        buffers.append(buffer)
    return nodes, buffers


def theirs(count, rounds):
    """PyTorch's milliseconds by order, and the first nodes of each."""
    nodes, buffers = program(count)
    by_name = {buffer.name: buffer for buffer in buffers}
    inputs, outputs = OrderedSet(), OrderedSet([buffers[-1].name])
    graph = types.SimpleNamespace(
        name="", scheduler=types.SimpleNamespace(mutation_real_name={}), sizevars=peer.Hints()
    )
    with V.set_graph_handler(graph):
        _, free = memory.prepare_planning_info(nodes, by_name, {}, inputs, outputs)
        orders = {
            "lpmf": lambda: memory.topological_sort_lpmf(nodes, free, by_name, outputs),
            "bfs": lambda: memory.topological_sort_bfs(nodes),
            "dfs": lambda: memory.topological_sort_dfs(nodes),
        }
        took = {}
        for name, order in orders.items():
            for _ in range(rounds):
                start = time.process_time()
                order()
                took[name] = min(took.get(name, 1e9), (time.process_time() - start) * 1e3)
    return took


def ours(count):
    """Our milliseconds by order."""
    command = ["cargo", "bench", "--bench", "memory", "--", f"orders of {count} nodes/(lpmf|bfs|dfs)"]
    done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    units = {"ns": 1e-6, "µs": 1e-3, "us": 1e-3, "ms": 1.0, "s": 1e3}
    pattern = rf"orders of {count} nodes/(\w+)\s+time:\s+\[([\d.]+) (\S+)"
    return {name: float(figure) * units[unit] for name, figure, unit in re.findall(pattern, done.stdout)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000, help="5000, 100000 or 1000000, as in benches/memory.rs")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    took, mine = theirs(options.nodes, options.rounds), ours(options.nodes)
    print(f"| order of {options.nodes} nodes | PyTorch | graph-oracle | ratio |\n|---|--:|--:|--:|")
    for name, milliseconds in took.items():
        if name not in mine:
            sys.exit(f"the benchmark tells nothing about {name}")
        print(f"| {name} | {milliseconds:.1f} ms | {mine[name]:.3f} ms | {milliseconds / mine[name]:.0f}x |")


if __name__ == "__main__":
    main()
