"""Communication scheduling: the passes of torch/_inductor/comms.py, on mock scheduler nodes (scheduler_nodes.py).

Options, as in the cases of graph-oracle:

- `method`: the name of the pass in comms.py;
- `budget`: by what share of it the peak of memory may grow (the two iterative passes);
- `runtime_mode`: whether the two iterative passes weigh estimated run times.

PyTorch lets the iterative passes change the order of collectives (`reorder_iterative_unsafe_collectives_reorder`, on by
default in 2.15), which is right only if all ranks have the same estimates. Here that is off.
"""

from contextlib import nullcontext

from torch._inductor import comms

from .. import versions
from ..errors import Refused
from ..scheduler_nodes import Program, reordered
from . import register

METHODS = [
    "sink_waits",
    "raise_comms",
    "reorder_compute_for_overlap",
    "reorder_communication_preserving_peak_memory",
    "sink_waits_iterative",
    "simple_overlap",
]
# Those that look at memory, and so need planning information.
PLANNED = METHODS[3:]
# Older versions lack some of them. 2.10 alone puts nodes into groups of its own, which takes more than mock nodes have.
OFFERED = [
    method
    for method in METHODS
    if versions.have(f"torch._inductor.comms.{method}") and not (method in PLANNED and versions.version() == (2, 10))
]


def settings(options, rank):
    """Around a pass: PyTorch's configuration for the options of a case; a list of budgets has one for each rank."""
    budget = options.get("budget", 0.2)
    if isinstance(budget, list):
        if not 0 <= rank < len(budget):
            raise Refused("there is no budget for this rank")
        budget = budget[rank]
    budget = float(budget)
    weighs = str(options.get("runtime_mode", "false")) == "true"
    wanted = {
        "reorder_iterative_peak_memory_budget": budget,
        "sink_iterative_peak_memory_budget": budget,
        "reorder_iterative_use_runtime_estimations": weighs,
        "sink_iterative_use_runtime_estimations": weighs,
        "reorder_iterative_unsafe_collectives_reorder": False,
        "sink_waits_iterative_unsafe_collectives_reorder": False,
    }
    # Older versions lack some of them.
    patch = versions.get("torch._inductor.config_comms.patch")
    return nullcontext() if patch is None else patch(versions.only_known(wanted, "torch._inductor.config_comms"))


def method_of(options):
    method = options.get("method", "sink_waits")
    if method not in OFFERED:
        raise Refused(f"this torch has no pass {method} in comms.py")
    return method


# torch/_inductor/config_comms.py: the budgets of the two iterative passes bound by how much the peak may grow. Of the
# one that moves collectives this is not promised here: where nobody waits for a collective, no model knows the peak
# (docs/rules.md).
PROMISES = [{"when": {"method": ["sink_waits_iterative"]}, "options": {"promises": ["peak"]}}]


@register("schedule", options={"method": OFFERED}, without=["messages"], promises=PROMISES, rebuilds=False)
def run(rebuilt, options):
    method = method_of(options)
    program = Program(rebuilt.document)
    with program.entered(), settings(options, rebuilt.rank):
        if method in PLANNED:
            program.plan()
        with rebuilt.timing() as timing:
            order = getattr(comms, method)(program.nodes)
    return {"seconds": timing.seconds, "repaired": reordered(rebuilt.document, program.names(order))}
