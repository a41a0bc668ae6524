"""Inductor's sink_waits_iterative moves a write before a read of the same memory: wrong values.

Plain PyTorch (2.15.0), one process: python sink_waits_iterative_ignores_ordering_edges.py

The pass groups a wait with the nodes that use its value, and swaps the group with whoever stands behind it. It looks
at real dependencies alone (`node_dep_sets` leaves out WeakDep with is_fake=True), and what holds a write behind the
earlier readers of the buffer is no such dependency: the write goes before the group, and the group reads what was
written. It is the mirror image of reorder_communication_ignores_ordering_edges.py.
"""

import os
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives  # noqa: F401 (registers the operators)
from torch._inductor import config


def step(x, w, d):
    gathered = torch.ops._c10d_functional.all_gather_into_tensor.default(w, 1, GROUP)
    whole = torch.ops._c10d_functional.wait_tensor.default(gathered)
    z = torch.cumsum(whole, 0) + torch.flip(x, [0])
    x.add_(d)
    return z


dist.init_process_group("gloo", init_method=f"file://{tempfile.mktemp()}", rank=0, world_size=1)
GROUP = dist.group.WORLD.group_name
torch.manual_seed(0)
x, w, d = torch.randn(8, 8), torch.randn(8, 8), torch.ones(8, 8)
expected = step(x.clone(), w, d)

# What an earlier run has compiled would hide the pass.
config.force_disable_caches = True
config.reorder_for_compute_comm_overlap = True
config.reorder_for_compute_comm_overlap_passes = ["sink_waits_iterative"]
config.reorder_for_peak_memory = False
found = torch.compile(step)(x.clone(), w, d)
dist.destroy_process_group()

wrong = (found - expected).abs().max().item()
print(f"z is off by {wrong:.3g} (the write adds 1)")
if wrong > 1e-4:
    raise SystemExit("WRONG VALUES: the write was moved before the read")
print("correct")
