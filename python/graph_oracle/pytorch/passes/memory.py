"""What PyTorch states about the memory of a graph, as a claim.

Option `method`, one of:

- `profile` (without an option): the estimates of FX graphs, `build_memory_profile` and `MemoryTracker` of
  torch/_inductor/fx_passes/memory_estimator.py;
- `estimate`: the scheduler's estimators of torch/_inductor/memory.py in the order of the list;
- `lpmf`, `bfs`, `dfs`, `reorder_for_peak_memory`: the orders of the same file, with the estimates of each;
- `reorder_communication_preserving_peak_memory`, `sink_waits_iterative`, `simple_overlap`: the passes of comms.py that
  keep account of memory while they swap neighbours: what they hold after each swap, and what they foresaw.

All but the first work on mock scheduler nodes (scheduler_nodes.py).

A claim says what is live on the device; PyTorch counts by conventions of its own. Each is turned into the statement
that it stands for, or nothing is claimed:

- Inputs that the caller keeps are not counted by the scheduler: their bytes are added. The passes are told that every
  input is of that kind, whatever its name.
- The profile takes storages as they were traced, where a wait is a tensor of its own. Here it is given the storages of
  the run time.
- The profile frees what a collective reads when the collective starts, and keeps what nobody reads to the end. Where
  that changes a number, the live bytes are not claimed, only the two estimates, which must agree.
- Storages that are resized have one size in both models: then only the profile's two estimates are claimed.
"""

from contextlib import contextmanager

import torch
from torch import fx
from torch._inductor import comms, memory
from torch._subclasses.fake_tensor import FakeTensorMode

from .. import versions
from ..errors import Refused
from ..scheduler_nodes import Program
from ..storages import RESIZE, Storages
from . import register
from .schedule import METHODS as SCHEDULERS
from .schedule import settings

_ESTIMATOR = "torch._inductor.fx_passes.memory_estimator"
_MEMORY = "torch._inductor.memory"
_COMMS = "torch._inductor.comms"
ORDERS = {"lpmf": "topological_sort_lpmf", "bfs": "topological_sort_bfs", "dfs": "topological_sort_dfs"}
# Their accounts are taken down at helper functions, which torch 2.9 has within the passes.
INCREMENTAL = SCHEDULERS[3:] if versions.have(f"{_COMMS}._perform_double_linked_list_swap") else []
PROFILE = ["profile"] if versions.have(f"{_ESTIMATOR}.MemoryTracker") else []
METHODS = [*PROFILE, "estimate", *ORDERS, "reorder_for_peak_memory", *INCREMENTAL]
# How many swaps are told: each costs a list of all nodes.
SWAPS = 16


@register("memory", options={"method": METHODS}, rebuilds=False)
def run(rebuilt, options):
    method = options.get("method", "profile")
    if method not in METHODS:
        raise Refused(f"there is no method {method}; there are {', '.join(METHODS)}")
    if method == "profile":
        return profile(rebuilt)
    if any(entry.get("target") == RESIZE for entry in rebuilt.document["nodes"]):
        raise Refused("the scheduler's model knows no resized storages")
    if method in INCREMENTAL:
        return incremental(rebuilt, method, options)
    return scheduled(rebuilt, method)


# ---------------------------------------------------------------------------------------------------------------
# FX graphs


def stand_in(*args, **kwargs):
    """What the calls of the profile's graph call: nothing runs, only names and storages count."""


def traced(storages):
    """An FX graph with the same nodes and edges, whose values have the storages of the run time."""
    mode = FakeTensorMode()
    graph, nodes, values = fx.Graph(), {}, {}
    with mode:
        for storage in storages.all:
            values[storage.index] = torch.empty(storage.bytes, dtype=torch.uint8, device=storage.device)
    for call in storages.calls:
        inputs = tuple(nodes[source.name] for source in call.inputs)
        if call.op == "call_function":
            node = graph.create_node("call_function", stand_in, inputs, name=call.name)
        elif call.op == "output":
            node = graph.create_node("output", "output", (inputs,), name=call.name)
        else:
            node = graph.create_node(call.op, call.name, name=call.name)
        shown = [values[storage.index] for storage in call.shows]
        if shown:
            node.meta["val"] = shown[0] if len(shown) == 1 and not call.is_tuple else shown
        nodes[call.name] = node
    return graph, nodes


def releasable(node):
    return node.op not in ("placeholder", "get_attr")


def profile(rebuilt):
    storages = Storages(rebuilt.document)
    graph, nodes = traced(storages)
    # Held so that the storages of the values outlive the accounts that go by their addresses.
    del nodes
    counts_all = all(not s.bytes or storages.counts(s) == (torch.device(s.device).type != "cpu") for s in storages.all)
    if not counts_all:
        raise Refused("everything is on the CPU, which the profile does not count")
    with rebuilt.timing() as timing:
        line = versions.get(f"{_ESTIMATOR}.build_memory_profile")(graph, releasable)
        tracker = versions.get(f"{_ESTIMATOR}.MemoryTracker")(graph, releasable)
        tracked = []
        for node in graph.nodes:
            tracker.schedule_node(node)
            if node.op == "call_function":
                tracked.append(tracker.get_current_memory_bytes())
    steps = [[line[i], line[i + 1]] for i in range(1, len(line) - 1, 2)]
    claim = {"estimates": {"build_memory_profile": max(line), "MemoryTracker": tracker.peak_memory}}
    if [after for _, after in steps] != tracked:
        # The first step where they part, as if it were a peak.
        step = next(i for i, (a, b) in enumerate(zip(steps, tracked)) if a[1] != b)
        claim["estimates"] = {
            f"build_memory_profile after step {step}": steps[step][1],
            f"MemoryTracker after step {step}": tracked[step],
        }
    elif comparable(storages):
        claim.update(peak=max(line), before=line[0], steps=steps)
    return {"seconds": timing.seconds, "claim": claim}


def comparable(storages):
    """Whether the profile's conventions change no number: see the head of the file."""
    steps, needed, kept = {}, {}, set()
    for call in storages.calls:
        if call.op == "call_function":
            steps[call.name] = len(steps)
        for source in call.inputs:
            for storage in source.shows:
                needed[storage.index] = call
                if call.op == "output":
                    kept.add(storage.index)
    if any(storage.resized for storage in storages.all):
        return False
    for storage in storages.all:
        if not storage.external and storage.bytes and storage.index not in needed:
            return False
    waited = set()
    for call in storages.calls:
        if call.is_wait and call.launch is not None:
            waited.add(call.launch.name)
            for storage in call.releases:
                last = needed.get(storage.index)
                early = last is None or steps.get(last.name, -1) < steps[call.name]
                if early and not storage.external and storage.index not in kept:
                    return False
    return all(call.name in waited for call in storages.calls if call.is_launch)


# ---------------------------------------------------------------------------------------------------------------
# The scheduler


def modelled(rebuilt, callers_inputs):
    """The program of a graph, where its buffers live as long as the scheduler's model says."""
    program = Program(rebuilt.document, callers_inputs=callers_inputs)
    if not program.nodes:
        raise Refused("the graph calls nothing")
    waited = {call.launch.name for call in program.storages.calls if call.launch is not None}
    for call in program.storages.calls:
        if call.is_launch and call.name not in waited:
            raise Refused(f"{call.name} is never waited for: how long it holds its memory is not in the model")
    return program


def stated(program, order, inputs):
    """What the estimators say of an order."""
    kept = program.kept_bytes()
    slots, _ = memory.estimate_peak_memory(order, inputs, program.outputs)
    estimates = {"estimate_peak_memory": slots + kept}
    claim = {"estimates": estimates, "before": kept}
    if versions.have(f"{_MEMORY}.estimate_peak_memory_allocfree"):
        peak, steps, _, _ = memory.estimate_peak_memory_allocfree(order, inputs, program.outputs)
        estimates["estimate_peak_memory_allocfree"] = peak + kept
        claim["steps"] = [[after_alloc + kept, after_free + kept] for after_alloc, after_free in steps]
        claim["peak"] = max(peak + kept, kept)
    if versions.have(f"{_MEMORY}.estimate_region_peak_memory"):
        step_of = {node: step for step, node in enumerate(order)}
        region = memory.estimate_region_peak_memory(
            order,
            region_start=0,
            region_end=len(order) - 1,
            step_of=step_of.__getitem__,
            graph_outputs=program.outputs,
            cur_memory=sum(b.mpi_buffer.size_free for b in inputs.values()),
        )
        estimates["estimate_region_peak_memory"] = region + kept
    return claim


def scheduled(rebuilt, method):
    program = modelled(rebuilt, True)
    with program.entered():
        _, inputs = program.plan()
        with rebuilt.timing() as timing:
            if method == "estimate":
                order = program.nodes
            elif method == "reorder_for_peak_memory":
                order = memory.reorder_for_peak_memory(
                    program.nodes, program.buffers, program.fused, program.inputs, program.outputs
                )
            elif method == "lpmf":
                order = memory.topological_sort_lpmf(program.nodes, inputs, program.buffers, program.outputs)
            else:
                order = getattr(memory, ORDERS[method])(program.nodes)
            claim = stated(program, order, inputs)
        if method == "reorder_for_peak_memory":
            # It chooses the lowest of its estimates, so it must not be above the order that it was given.
            given, _ = memory.estimate_peak_memory(program.nodes, inputs, program.outputs)
            chosen, _ = memory.estimate_peak_memory(order, inputs, program.outputs)
            if chosen > given:
                claim = {
                    "estimates": {"the order given, the most that may be chosen": given, "the order chosen": chosen}
                }
    if method != "estimate":
        claim["order"] = program.names(order)
    return {"seconds": timing.seconds, "claim": claim}


class Swaps:
    """What an incremental pass holds after each swap, taken down at its own helper functions."""

    def __init__(self, kept):
        self.kept, self.told = kept, []
        self.potential, self.next, self.head = None, None, None
        self.account = {}

    @contextmanager
    def watching(self):
        names = {
            "_calculate_potential_peak_memory_reorder": self.foresaw,
            "_calculate_potential_peak_memory_sink_waits": self.foresaw,
            "_perform_double_linked_list_swap": self.swapped,
            "_perform_double_linked_list_swap_sink_waits": self.swapped,
            "_update_memory_tracking_after_swap_reorder": self.updated,
            "_update_memory_tracking_after_swap_sink_waits": self.updated,
        }
        originals = {name: versions.get(f"{_COMMS}.{name}") for name in names}
        missing = [name for name, function in originals.items() if function is None]
        if missing:
            raise Refused(f"this torch has no {missing[0]} in comms.py")
        try:
            for name, after in names.items():
                setattr(comms, name, after(originals[name]))
            yield self
        finally:
            for name, function in originals.items():
                setattr(comms, name, function)

    def foresaw(self, original):
        def wrapped(*args, **kwargs):
            result = original(*args, **kwargs)
            self.potential = result[0]
            return result

        return wrapped

    def swapped(self, original):
        def wrapped(candidate, group_head, group_tail, prev_dict, next_dict, head):
            head = original(candidate, group_head, group_tail, prev_dict, next_dict, head)
            self.next, self.head = next_dict, head
            return head

        return wrapped

    def updated(self, original):
        def wrapped(candidate, gns, *args, **kwargs):
            original(candidate, gns, *args, **kwargs)
            # The account of live bytes: the dictionary of pairs by node, whatever its place in the arguments.
            self.account = next(
                a for a in args if isinstance(a, dict) and candidate in a and type(a[candidate]) is tuple
            )
            if len(self.told) < SWAPS:
                self.told.append(self.tell([candidate, *gns]))

        return wrapped

    def tell(self, moved):
        order, node = [], self.head
        while node is not None:
            order.append(node)
            node = self.next[node]
        return {
            "order": [call.name for node in order for call in node.calls()],
            "steps": [[self.account[node][0] + self.kept, self.account[node][1] + self.kept] for node in order],
            "potential": {"moved": [node.name for node in moved], "peak": self.potential + self.kept},
        }


def incremental(rebuilt, method, options):
    if rebuilt.document.get("clusters"):
        raise Refused("the steps of a cluster have no live bytes of their own")
    claim, seconds = {}, 0.0
    for callers_inputs in (True, False):
        program = modelled(rebuilt, callers_inputs)
        swaps = Swaps(program.kept_bytes())
        with program.entered(), settings(options, rebuilt.rank):
            _, inputs = program.plan()
            with swaps.watching(), rebuilt.timing() as timing:
                order = getattr(comms, method)(program.nodes)
            seconds += timing.seconds
            if callers_inputs:
                claim["increments"] = swaps.told
            elif swaps.told:
                # The inputs that Inductor frees take part here: the pass's own account against PyTorch's full one.
                peak = max(after_alloc for node, (after_alloc, _) in swaps.account.items() if node is not None)
                full, _, _, _ = memory.estimate_peak_memory_allocfree(order, inputs, program.outputs)
                claim["estimates"] = {f"{method}, swap by swap": peak, "estimate_peak_memory_allocfree": full}
    return {"seconds": seconds, "claim": claim}
