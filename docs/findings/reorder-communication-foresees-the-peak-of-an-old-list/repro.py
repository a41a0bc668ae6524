"""reorder_communication_preserving_peak_memory compares the budget with the peak of a group as it was before earlier swaps.

torch.compile as the rank of a fake process group of one, with torch._inductor.config.reorder_for_compute_comm_overlap and
that pass. What it foresees of a swap is compared with what the moved nodes hold afterwards.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if it cannot be shown with this torch.
"""

import sys

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

try:
    from torch._inductor import comms, comms_debug, config, config_comms
    from torch._inductor.memory import estimate_peak_memory_allocfree
except ImportError as missing:
    print(f"this torch has no account to compare with: {missing}")
    sys.exit(2)
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=1)
OPS, GROUP, PARTED, FORESEEN = torch.ops._c10d_functional, dist.group.WORLD.group_name, [], []
define = torch.library.custom_op
both = define("defects::both", torch.add, mutates_args=(), schema="(Tensor a, Tensor b) -> Tensor")
both.register_fake(lambda a, b: torch.empty_like(a))


corner = define("defects::corner", lambda a: a[:1, :1].clone(), mutates_args=(), schema="(Tensor a) -> Tensor")
corner.register_fake(lambda a: a.new_empty(1, 1))


def step(x, v, w):
    first, second, other = both(x, x), both(w, w), both(v, v)
    small, gathered = corner(first), OPS.all_gather_into_tensor(corner(second), 1, GROUP)
    return OPS.wait_tensor(gathered), other, small


def foreseeing(*args, known=comms._calculate_potential_peak_memory_reorder):
    FORESEEN[:] = known(*args)[:1]
    return known(*args)


def compared(candidate, group, names, nodes, inputs, outputs, *rest):
    held = dict(zip(nodes, estimate_peak_memory_allocfree(nodes, inputs, outputs)[1]))
    peak = max(held[node][0] for node in (candidate, *group))
    if peak != FORESEEN[0]:
        PARTED.append(f"{FORESEEN[0]} bytes are foreseen where {candidate.get_name()} moves past {names}, then {peak}")
    return False


comms_debug._debug_iterative_memory_recompute = compared
comms._calculate_potential_peak_memory_reorder = foreseeing
config.force_disable_caches = config.reorder_for_compute_comm_overlap = True
config.reorder_for_peak_memory = config.reorder_for_locality = False
config.reorder_for_compute_comm_overlap_passes = ["reorder_communication_preserving_peak_memory"]
config_comms.reorder_iterative_debug_memory_recompute = True
config_comms.reorder_iterative_peak_memory_budget = 10.0
torch.compile(step)(torch.randn(64, 64), torch.randn(8, 8), torch.randn(64, 64))
dist.destroy_process_group()
print(f"FAILS: {PARTED[0]}" if PARTED else "the failure does not show")
sys.exit(bool(PARTED))
