"""Live memory of a graph, node by node: what graph-oracle predicts against what torch has when it runs the graph.

    graph-oracle smoke --format json CASE.json > report.json
    python -m graph_oracle.pytorch.smoke report.json CASE.json [--device cpu|cuda] [--rank N]

The graph (exchange JSON) is run with real kernels, one node at a time; each value is dropped after its last use. After
each node two things are compared with the prediction:

- the bytes of the storages that are alive, seen through weak references;
- on cuda, `requested_bytes.all.current` of the allocator, after a synchronization.

One rank runs. Collectives only make their results, for their memory is what counts here; as long as one is in flight
its inputs are held, as torch's registry of works and its callers hold them.

Exit status: 0 equal at every node, 1 not equal, 2 cannot run.
"""

import argparse
import json
import sys
import weakref

import torch
from torch.utils._pytree import tree_leaves, tree_map

from .errors import Refused
from .rebuild import rebuild


def tensors(value):
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


class Memory:
    """The storages that are alive."""

    def __init__(self):
        self.live = {}

    def add(self, value):
        for tensor in tensors(value):
            storage = tensor.untyped_storage()
            key = storage._cdata
            if key not in self.live:
                self.live[key] = storage.nbytes()
                weakref.finalize(storage, self.live.pop, key, None)

    def bytes(self):
        return sum(self.live.values())


class Runner:
    """One rank's graph, a node at a time."""

    def __init__(self, rebuilt, device):
        self.rebuilt, self.device, self.memory = rebuilt, torch.device(device), Memory()
        self.values, self.storages = {}, {}
        # Collectives in flight: the storages of the results, and what is held until the wait.
        self.flights = []
        self.last = {}
        for node in rebuilt.graph.nodes:
            for used in node.all_input_nodes:
                self.last[used] = node

    def real(self, like):
        """A tensor like a fake one: small integers, with the recorded strides and shared storages."""
        if not isinstance(like, torch.Tensor):
            return like
        key = like.untyped_storage()._cdata
        if key not in self.storages:
            size = like.untyped_storage().nbytes()
            self.storages[key] = torch.ones(size, dtype=torch.uint8, device=self.device).untyped_storage()
        made = torch.empty(0, dtype=like.dtype, device=self.device)
        return made.set_(self.storages[key], like.storage_offset(), like.shape, like.stride())

    def result(self, node):
        """What a collective gives: fresh memory, or the buffer that it writes."""
        name = node.target._schema.name.split("::")[-1]
        if "out" in node.kwargs:
            return self.values[node.kwargs["out"]]
        if name.endswith("_"):
            return self.values[node.args[0]]
        make = lambda fake: torch.ones(fake.shape, dtype=fake.dtype, device=self.device)
        return tree_map(make, node.meta["val"])

    def call(self, node):
        value = lambda arg: self.values[arg] if isinstance(arg, torch.fx.Node) else self.place(arg)
        args, kwargs = torch.fx.node.map_aggregate(node.args, value), torch.fx.node.map_aggregate(node.kwargs, value)
        schema = getattr(node.target, "_schema", None)
        name = schema.name if schema else ""
        if name.endswith("::wait_tensor"):
            waited = {tensor.untyped_storage()._cdata for tensor in tensors(args)}
            self.flights = [(results - waited, held) for results, held in self.flights if results - waited]
            return args[0]
        if name.startswith("_c10d_functional::"):
            result = self.result(node)
            results = {tensor.untyped_storage()._cdata for tensor in tensors(result)}
            self.flights.append((results, (args, kwargs, result)))
            return result
        return node.target(*args, **kwargs)

    def place(self, arg):
        return self.device if isinstance(arg, torch.device) else arg

    def allocated(self):
        if self.device.type != "cuda":
            return None
        torch.cuda.synchronize()
        return torch.cuda.memory_stats()["requested_bytes.all.current"]

    def run(self):
        """Node by node: its name, the live bytes of storages, those that the allocator counts (or None)."""
        for node in self.rebuilt.graph.nodes:
            if node.op == "placeholder":
                self.values[node] = self.real(node.meta["val"])
                self.memory.add(self.values[node])
        if self.device.type == "cuda":
            # The workspace of cuBLAS stays from the first product on; it is made before anything is counted.
            torch.mm(torch.ones(1, 1, device=self.device), torch.ones(1, 1, device=self.device))
        base, before = self.allocated(), self.memory.bytes()
        kept = dict.fromkeys(node for node in self.rebuilt.graph.nodes if node.op == "placeholder")
        for node in self.rebuilt.graph.nodes:
            if node.op == "output":
                return
            if node.op == "placeholder":
                continue
            if node.op == "get_attr":
                raise Refused(f"{node.name} is an attribute of the module")
            self.values[node] = self.call(node)
            self.memory.add(self.values[node])
            for used in [*node.all_input_nodes, node]:
                if self.last.get(used, node) is node and used not in kept:
                    self.values.pop(used, None)
            now = self.allocated()
            yield node, self.memory.bytes(), None if now is None else now - base + before


def compare(report, document, rank, device):
    """The number of nodes at which something is not as predicted. Prints a line for each node."""
    predicted = report["cases"][0]["predicted"]
    if not predicted:
        raise Refused(report["cases"][0]["refused"] or "the report predicts nothing")
    predicted = predicted[rank]
    if predicted["doubts"]:
        raise Refused(predicted["doubts"][0])
    rebuilt = rebuild(document, rank)
    wanted = {step["node"]: step["live_bytes"] for step in predicted["steps"]}
    wrong = 0
    print(f"{'node':<32}{'predicted':>12}{'storages':>12}{'requested':>12}")
    with torch.no_grad():
        for node, storages, requested in Runner(rebuilt, device).run():
            name = rebuilt.names.get(node.name, node.name)
            want = wanted.get(name)
            differs = storages != want or requested not in (None, want)
            wrong += differs
            sign = "  DIFFERS" if differs else ""
            print(f"{name:<32}{want!s:>12}{storages:>12}{requested if requested is not None else '-':>12}{sign}")
    return wrong


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="graph_oracle.pytorch.smoke", description=__doc__.splitlines()[0])
    parser.add_argument("report", help="what graph-oracle smoke --format json printed")
    parser.add_argument("graph", help="exchange JSON of the same graph")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rank", type=int, default=0)
    given = parser.parse_args(arguments)
    try:
        with open(given.report) as file:
            report = json.load(file)
        with open(given.graph) as file:
            document = json.load(file)
        if given.device == "cuda" and not torch.cuda.is_available():
            raise Refused("torch finds no GPU")
        wrong = compare(report, document, given.rank, given.device)
    except (Refused, OSError, json.JSONDecodeError) as error:
        print(f"graph-oracle smoke: {error}", file=sys.stderr)
        return 2
    print("equal at every node" if not wrong else f"different at {wrong} nodes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
