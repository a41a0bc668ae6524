"""Runs PyTorch's scheduling passes on nodes that are described on standard input, and prints the orders.

Standard input: a JSON list of cases, each
{pass, runtime, nodes: [{before: [[node, real]], kind, seconds}], buffers: [{by, bytes, stays, users}]}.
"""

import inspect
import json
import sys
from collections import defaultdict
from types import SimpleNamespace

import torch._inductor.comms as comms
import torch._inductor.config_comms as config
from torch.utils._ordered_set import OrderedSet


class Node:
    def __init__(self, index, entry):
        self.index, self.entry, self.node = index, entry, SimpleNamespace(entry=entry)
        self.unmet_dependencies = [
            SimpleNamespace(name=f"b{before}", is_fake=not real) for before, real in entry["before"]
        ]
        self.ancestors = OrderedSet()

    def get_name(self):
        return f"op{self.index}"

    def get_operation_names(self):
        return OrderedSet([self.get_name()])

    def get_buffer_names(self):
        return OrderedSet([f"b{self.index}"])

    def get_outputs(self):
        return [SimpleNamespace(get_name=lambda: f"b{self.index}")]


def is_kind(*kinds):
    return lambda snode, *_: snode.entry["kind"] in kinds


def memory_of(buffers):
    """The tracking structures of a list, by its definition."""

    def initialize(snodes, *_):
        place = {snode.index: i for i, snode in enumerate(snodes)}
        by_index = {snode.index: snode for snode in snodes}
        allocfree = {snode: SimpleNamespace(size_alloc=0, size_free=0) for snode in snodes}
        last_use, uses, live = {}, defaultdict(OrderedSet), 0
        for entry in buffers:
            users = [by_index[user] for user in entry["users"]]
            planned = SimpleNamespace(size_free=entry["bytes"], succ_nodes=OrderedSet(users))
            key = type("Buffer", (), {"mpi_buffer": planned})()
            if entry["by"] is None:
                live += entry["bytes"]
            else:
                allocfree[by_index[entry["by"]]].size_alloc += entry["bytes"]
            if entry["stays"]:
                continue
            ends = users or [by_index[entry["by"]] if entry["by"] is not None else snodes[0]]
            last = max(ends, key=lambda snode: place[snode.index])
            allocfree[last].size_free += entry["bytes"]
            last_use[key] = last
            for user in users:
                uses[user].add(key)
        peak, current = live, {None: (0, 0)}
        for snode in snodes:
            live += allocfree[snode].size_alloc
            peak, post_alloc = max(peak, live), live
            live -= allocfree[snode].size_free
            current[snode] = (post_alloc, live)
        return peak, current, allocfree, last_use, {}, dict(uses)

    return initialize


def amend(name, before, after):
    """Replaces a piece of one of PyTorch's functions."""
    source = "from __future__ import annotations\n" + inspect.getsource(getattr(comms, name))
    assert before in source, name
    exec(source.replace(before, after), comms.__dict__)


# Where the reference follows what was meant: the walk to the right asks for the wait of a collective that it has met,
# not again for its own; and what is absorbed of a group counts for its runtime, not its collectives alone.
amend("_coll_exposed_communication_time", "collective_snode, snode, node_output", "_coll, snode, node_output")
amend(
    "_sink_waits_iterative_internal",
    "group_tail = candidate\n",
    "group_tail = candidate; group_runtime += runtimes[candidate]\n",
)


def run(case):
    snodes = [Node(i, entry) for i, entry in enumerate(case["nodes"])]
    for snode in snodes:
        for before, _ in snode.entry["before"]:
            snode.ancestors |= snodes[before].ancestors | OrderedSet([f"op{before}"])
    comms._initialize_memory_tracking = memory_of(case["buffers"])
    config.reorder_iterative_use_runtime_estimations = case["runtime"]
    config.sink_iterative_use_runtime_estimations = case["runtime"]
    return [snode.index for snode in getattr(comms, case["pass"])(snodes)]


comms.contains_collective = is_kind("launch", "synchronous")
comms.contains_async_collective = is_kind("launch")
comms.contains_wait = comms.is_wait = is_kind("wait")
comms.contains_gemm_like = is_kind("gemm")
comms.estimate_op_runtime = lambda snode: snode.entry["seconds"]
comms._is_fake_dep = lambda dep: dep.is_fake
comms.V = SimpleNamespace(graph=SimpleNamespace(graph_inputs={}, get_output_names=list))
config.reorder_iterative_unsafe_collectives_reorder = False
config.sink_waits_iterative_unsafe_collectives_reorder = False
config.reorder_iterative_peak_memory_budget = 1e9
config.sink_iterative_peak_memory_budget = 1e9
json.dump([run(case) for case in json.load(sys.stdin)], sys.stdout)
