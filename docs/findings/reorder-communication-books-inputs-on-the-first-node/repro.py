"""reorder_communication_preserving_peak_memory books the bytes of freeable inputs on the first node, and moves them with it.

torch.compile as the rank of a fake process group of one, with torch._inductor.config.reorder_for_compute_comm_overlap and
that pass. What backward saves is an input of its graph that may be freed. After each swap the account is compared.
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
OPS, GROUP, PARTED = torch.ops._c10d_functional, dist.group.WORLD.group_name, []
define = torch.library.custom_op
both = define("defects::both", torch.add, mutates_args=(), schema="(Tensor a, Tensor b) -> Tensor")
both.register_fake(lambda a, b: torch.empty_like(a))


class Sharded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        h = both(x, x)
        ctx.save_for_backward(h, w)
        return torch.mm(h, w)

    @staticmethod
    def backward(ctx, g):
        h, w = ctx.saved_tensors
        first = torch.mm(h.t(), g)
        return torch.mm(OPS.wait_tensor(OPS.all_gather_into_tensor(g, 1, GROUP)), w.t()), first


def compared(candidate, group, names, nodes, inputs, outputs, peak, account, *rest):
    """At the place of PyTorch's own check: the account after a swap, and all of it computed again."""
    for node, held in zip(nodes, estimate_peak_memory_allocfree(nodes, inputs, outputs)[1]):
        if account[node] != held:
            where = f"after {candidate.get_name()} was swapped with {names}, at {node.get_name()}"
            PARTED.append(f"{where}: {account[node]} bytes by the account, {held} when all is counted")
    return False


comms_debug._debug_iterative_memory_recompute = compared
config.force_disable_caches = config.reorder_for_compute_comm_overlap = True
config.reorder_for_peak_memory = config.reorder_for_locality = False
config.reorder_for_compute_comm_overlap_passes = ["reorder_communication_preserving_peak_memory"]
config_comms.reorder_iterative_debug_memory_recompute = True
config_comms.reorder_iterative_peak_memory_budget = 10.0
inputs = [torch.randn(64, 64, requires_grad=True) for _ in range(2)]
torch.compile(Sharded.apply)(*inputs).sum().backward()
dist.destroy_process_group()
print(f"FAILS: {PARTED[0]}" if PARTED else "the failure does not show")
sys.exit(bool(PARTED))
