"""What Inductor's scheduler passes do with the nodes of a running torch.compile.

    with schedules.recording() as found:
        torch.compile(step)(x)
    for ran in found:
        print(ran.name, ran.verdict())

These are real scheduler nodes, fused and lowered by Inductor (scheduler_nodes.py has mock ones for generated cases).
Recorded are `reorder_for_peak_memory`, the passes of `reorder_for_compute_comm_overlap_passes` and `simple_overlap`:
the list before and after each, as exchange JSON. A node of the document is a scheduler node. Its arguments are those
it really depends on (it reads what they made); those that it merely comes after are its ordering edges. Ordering edges
between two collectives are left out, as the passes are free to change that order on all ranks alike. The node's result
is the bytes that it allocates.

With `stop` (the default) compilation ends after scheduling: no kernel is made, and the function runs eagerly instead
(torch.compile then turns to the functions that it calls, whose passes are recorded after its own).
"""

from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from ..judge import check_pair
from . import versions

PASSES = {
    "torch._inductor.memory": ["reorder_for_peak_memory"],
    "torch._inductor.comms": [
        "sink_waits",
        "raise_comms",
        "reorder_compute_for_overlap",
        "reorder_communication_preserving_peak_memory",
        "sink_waits_iterative",
        "simple_overlap",
    ],
}
TARGET = "scheduler.step.default"
_FACTS = {
    "kind": "op",
    "namespace": "scheduler",
    "schema": "scheduler::step(Tensor[] reads) -> Tensor",
    "args": [{"name": "reads", "type": "List[Tensor]"}],
    "returns": [{"type": "Tensor"}],
    "is_mutable": False,
    "mutated_args": [],
    "ret_aliases_arg": [],
    "is_view": False,
}


class Ran:
    """A pass that ran: its `name`, and the exchange JSON `before` and `after`."""

    def __init__(self, name, before, after):
        self.name, self.before, self.after = name, before, after

    def verdict(self, **options):
        """What graph-oracle says of it."""
        return check_pair(self.before, self.after, "schedule", subject=f"by {self.name}", **options)


class Running:
    """A pass that is about to run on a list of scheduler nodes."""

    def __init__(self, name: str, given: Any, number: int | None = None) -> None:
        self.name, self.given = name, list(given)
        self.before = document(self.given, name if number is None else f"{name}_{number}")

    def is_unchanged(self, order: Any) -> bool:
        """Whether the pass left the order as it was."""
        return len(order) == len(self.given) and all(a is b for a, b in zip(order, self.given))

    def done(self, order: Any) -> Any:
        """What it did. Planning information comes with the first pass: what a node allocates is told once for both
        lists."""
        entries = {entry["name"]: entry for entry in self.before["nodes"]}
        listed = [entries.get(node.get_name()) or document([node], self.name, self.given)["nodes"][0] for node in order]
        nodes = [*listed, self.before["nodes"][-1]]
        return Ran(self.name, self.before, {**self.before, "num_nodes": len(nodes), "nodes": nodes})


class Stopped(Exception):
    """Scheduling is done; nothing more is wanted."""


def document(order, name, given=None):
    """A list of scheduler nodes as exchange JSON. `given`: the list that the pass was given, which settles the
    edges."""
    from torch._inductor.utils import contains_collective

    given = order if given is None else given
    maker = {}
    for node in given:
        for buffer in node.get_outputs():
            maker.setdefault(buffer.get_name(), node)
    calls = []
    for node in order:
        real, fake = {}, {}
        for dep in node.unmet_dependencies:
            before = maker.get(dep.name)
            if before is None or before is node:
                continue
            is_fake = getattr(dep, "is_fake", False)
            if is_fake and contains_collective(node) and contains_collective(before):
                continue
            (fake if is_fake else real)[before.get_name()] = True
        entry = {
            "name": node.get_name(),
            "op": "call_function",
            "target": TARGET,
            "args": [[{"ref": source} for source in real]],
            "out": tensor(allocated(node), device(node)),
        }
        if fake.keys() - real.keys():
            entry["after"] = [source for source in fake if source not in real]
        names = [getattr(inner.node, "python_kernel_name", None) or type(inner).__name__ for inner in node.get_nodes()]
        entry["module"] = ", ".join(map(str, names))
        calls.append(entry)
    read = {source["ref"] for entry in calls for source in entry["args"][0]}
    last = [{"ref": entry["name"]} for entry in calls if entry["name"] not in read]
    nodes = [*calls, {"name": "output", "op": "output", "target": "output", "args": [last]}]
    return {
        "schema_version": "graph-oracle/1",
        "name": name,
        "kind": "inference",
        "groups": {},
        "symbols": {},
        "num_nodes": len(nodes),
        "ops": {TARGET: _FACTS},
        "nodes": nodes,
    }


def allocated(node):
    """Bytes that a node allocates, where the scheduler has sized its buffers."""
    total = 0
    for buffer in node.get_outputs():
        info = getattr(buffer, "mpi_buffer", None)
        total += int(getattr(info, "size_alloc", 0) or 0)
    return total


def device(node):
    try:
        found = node.get_device()
    except Exception:
        found = None
    return str(found) if found is not None else "cpu"


def tensor(size, device):
    return {"t": "tensor", "shape": [size], "dtype": "uint8", "device": device, "stride": [1]}


@contextmanager
def recording(stop=True):
    """A list of `Ran`, filled while the passes run."""
    import importlib

    from torch._inductor.scheduler import Scheduler

    ran, undo = [], []

    def wrap(name, function):
        def wrapped(nodes, *args, **kwargs):
            running = Running(name, nodes, len(ran))
            after = function(nodes, *args, **kwargs)
            ran.append(running.done(after))
            return after

        return wrapped

    with ExitStack() as stack:
        for module, names in PASSES.items():
            holder = importlib.import_module(module)
            for name in names:
                function = versions.get(f"{module}.{name}")
                if function is not None:
                    undo.append((holder, name, function))
                    setattr(holder, name, wrap(name, function))
        if stop:

            def stopped(self):
                raise Stopped("scheduling is done")

            undo.append((Scheduler, "codegen", Scheduler.codegen))
            Scheduler.codegen = stopped
            stack.enter_context(torch._dynamo.config.patch(suppress_errors=True))
        stack.enter_context(torch._inductor.config.patch(force_disable_caches=True))
        torch._dynamo.reset()
        try:
            yield ran
        finally:
            for holder, name, function in undo:
                setattr(holder, name, function)
            torch._dynamo.reset()
