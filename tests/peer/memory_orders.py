"""Random programs, and what torch._inductor.memory of PyTorch makes of them: one JSON line each.

Usage: python -P memory_orders.py CASES SEED > memory_orders.jsonl
Each line: nodes with outs and deps [[buffer, fake]], buffers [[bytes, kind, parent]], real [[name, root]], outputs,
inputs [[bytes, [[node, fake]]]], then the answers.
"""
import json
import random
import sys
import types

import torch
from torch._inductor import config, memory
from torch._inductor.dependencies import StarDep, WeakDep
from torch._inductor.ir import MultiOutput, MultiOutputLayout, NoneLayout, FixedLayout
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

class Hints:
    def optimization_hint(self, n, fallback=None):
        return n

class Ir:
    def __init__(self, layout, numel):
        self.layout, self.numel = layout, numel
    def get_numel(self): return self.numel
    def get_dtype(self): return torch.uint8

class ChildIr(MultiOutput):
    def __new__(cls, *a): return object.__new__(cls)
    def __init__(self, layout, numel):
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "numel", numel)
    def get_numel(self): return self.numel
    def get_dtype(self): return torch.uint8

class Buf:
    def __init__(self, name, node): self.name, self.node, self.users = name, node, []
    def get_name(self): return self.name

class Node:
    def __init__(self, name): self.name, self.outs, self.unmet_dependencies = name, [], OrderedSet(); self.read_writes = types.SimpleNamespace(reads=OrderedSet())
    def get_name(self): return self.name
    def get_outputs(self): return self.outs
    def get_buffer_names(self): return OrderedSet(b.name for b in self.outs)

def layout(kind):
    c = {"none": NoneLayout, "parent": MultiOutputLayout, "nested": MultiOutputLayout}.get(kind, FixedLayout)
    return object.__new__(c)

def case(rng):
    n = rng.randint(1, 40)
    nodes, bufs, desc, real = [], [], [], {}
    near = rng.choice([4, 12, 60])
    parents = []
    for i in range(n):
        node = Node(f"n{i}")
        nodes.append(node)
        row = {"deps": [], "outs": []}
        for _ in range(rng.choice([1, 1, 1, 1, 2, 0])):
            kind, parent = "owned", None
            r = rng.random()
            if r < 0.08: kind = "none"
            elif r < 0.16: kind = "parent"
            elif r < 0.35 and parents: kind, parent = ("child" if rng.random() < .8 else "nested"), rng.choice(parents)
            elif r < 0.5 and bufs: kind = "rename"
            size = rng.choice([0, 1, 8, 10, 64, rng.randint(1, 1000)])
            b = Buf(f"b{len(bufs)}", (ChildIr if parent is not None else Ir)(layout(kind), size))
            if parent is not None:
                bufs[parent].users.append(types.SimpleNamespace(node=node))
                node.unmet_dependencies.add(StarDep(bufs[parent].name))
                row["deps"].append([parent, 0])
            if kind == "rename":
                of = rng.randrange(max(0, len(bufs) - near), len(bufs))
                if bufs[of].name not in [x.name for x in node.outs]:
                    root = real.get(bufs[of].name, bufs[of].name)
                    real[b.name] = root
                    node.unmet_dependencies.add(StarDep(bufs[of].name))
                    row["deps"].append([of, 0])
                else: kind = "owned"
            node.outs.append(b); row["outs"].append(len(bufs)); bufs.append(b)
            desc.append([size, kind, parent])
            if kind in ("parent", "nested"): parents.append(len(bufs) - 1)
        first = row["outs"][0] if row["outs"] else len(bufs)
        for _ in range(rng.randint(0, 3)):
            if first == 0: break
            of = rng.randrange(max(0, first - near), first)
            fake = rng.random() < 0.2
            node.unmet_dependencies.add(WeakDep(bufs[of].name, "x", is_fake=True) if fake else StarDep(bufs[of].name))
            row["deps"].append([of, int(fake)])
        node.row = row
    # Several children of one parent among the outputs of one node would be summed twice by PyTorch: keep one user
    for b in bufs:
        seen, users = set(), []
        for u in b.users:
            if id(u.node) not in seen: seen.add(id(u.node)); users.append(u)
        b.users = users
    inputs = []
    for k in range(rng.randint(0, 3)):
        name = f"x{k}"
        readers = sorted(rng.sample(range(n), min(n, rng.randint(1, 3))))
        rows = []
        for j, r in enumerate(readers):
            fake = j > 0 and rng.random() < 0.2
            nodes[r].read_writes.reads.add(WeakDep(name, "y", is_fake=True) if fake else StarDep(name))
            rows.append([r, int(fake)])
        inputs.append([rng.choice([0, 16, 100, 700]), rows])
    outs = [i for i in range(len(bufs)) if rng.random() < 0.1 and desc[i][1] != "rename"]
    return nodes, bufs, desc, real, inputs, outs

def run(rng, threshold):
    nodes, bufs, desc, real, inputs, outs = case(rng)
    byname = {b.name: b for b in bufs}
    # PyTorch sums the children of a parent through users: a node with two parents' children is summed by both.
    for n in nodes:
        ps = [p for (s, k, p), b in zip(desc, bufs) if p is not None and b in n.outs]
        if len(set(ps)) > 1 or any(desc[c][2] == p for p in n.row["outs"] for c in n.row["outs"]): return None
    graph = types.SimpleNamespace(name="",
        scheduler=types.SimpleNamespace(mutation_real_name=real), sizevars=Hints(),
        get_dep_size_hint=lambda dep: inputs[int(dep.name[1:])][0])
    gi = OrderedSet(f"x{k}" for k in range(len(inputs)))
    go = OrderedSet(bufs[o].name for o in outs)
    with V.set_graph_handler(graph):
        try:
            peak, free = memory.prepare_planning_info(nodes, byname, {}, gi, go)
            memory.validate_graph_acyclic(nodes)
        except RuntimeError as e:
            if "Cycle" in str(e): return None
            raise
        config.size_threshold_for_succ_based_strategy = threshold
        name = {n: i for i, n in enumerate(nodes)}
        orders = {}
        for k, o in (("lpmf", memory.topological_sort_lpmf(nodes, free, byname, go)), ("bfs", memory.topological_sort_bfs(nodes)), ("dfs", memory.topological_sort_dfs(nodes))):
            orders[k] = [[name[x] for x in o], memory.estimate_peak_memory(o, free, go)[0]]
        _, slots = memory.estimate_peak_memory(nodes, free, go)
        p2, steps, af, _ = memory.estimate_peak_memory_allocfree(nodes, free, go)
        info, _, _ = memory.compute_memory_timeline(nodes, free, go)
        before = memory.live_memory_before_steps_from_buf_info_list(info, len(nodes))
        best = memory.reorder_for_peak_memory(nodes, byname, {}, gi, go)
    assert p2 == peak
    return {"nodes": [n.row for n in nodes], "buffers": desc, "real": [[int(a[1:]), int(b[1:])] for a, b in real.items()],
            "inputs": inputs, "outputs": outs, "threshold": threshold, "sizes": [[b.mpi_buffer.size_alloc, b.mpi_buffer.size_free] for b in bufs],
            "life": [[name[x] for x in b.mpi_buffer.succ_nodes] for b in bufs], "order": [[name[x] for x in b.mpi_buffer.succ_nodes_for_ordering] for b in bufs],
            "peak": peak, "slots": slots, "before": before, "best": [name[x] for x in best], **orders}

if __name__ == "__main__":
    cases, seed = int(sys.argv[1]), int(sys.argv[2])
    rng = random.Random(seed)
    done = 0
    while done < cases:
        r = run(rng, rng.choice([0, 0, 0, 5]))
        if r is None: continue
        done += 1
        print(json.dumps(r, separators=(",", ":")))
