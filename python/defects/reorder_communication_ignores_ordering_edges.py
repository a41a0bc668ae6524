"""Inductor's reorder_communication_preserving_peak_memory moves a write before a read of the same memory: wrong values.

Plain PyTorch (2.15.0), one process: python reorder_communication_ignores_ordering_edges.py

The pass groups a collective with the nodes that make its input, and swaps the group with whoever stands before it. It
looks at the group's real dependencies alone (`node_dep_sets` leaves out WeakDep with is_fake=True). What holds a write
in place behind the earlier readers of the buffer is such a dependency (Scheduler.compute_dependencies).

Here x is updated in place and then gathered, as a sharded parameter is, while a product before it reads the old x.
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
    z = torch.mm(x, w)
    x.add_(d)
    gathered = torch.ops._c10d_functional.all_gather_into_tensor.default(x, 1, GROUP)
    return z, torch.ops._c10d_functional.wait_tensor.default(gathered) * 2


dist.init_process_group("gloo", init_method=f"file://{tempfile.mktemp()}", rank=0, world_size=1)
GROUP = dist.group.WORLD.group_name
torch.manual_seed(0)
x, w, d = torch.randn(8, 8), torch.randn(8, 8), torch.ones(8, 8)
expected, _ = step(x.clone(), w, d)

# What an earlier run has compiled would hide the pass.
config.force_disable_caches = True
config.reorder_for_compute_comm_overlap = True
config.reorder_for_compute_comm_overlap_passes = ["reorder_communication_preserving_peak_memory"]
# With the memory order on (the default) the list may look different before the pass.
config.reorder_for_peak_memory = False
found, _ = torch.compile(step)(x.clone(), w, d)
dist.destroy_process_group()

wrong = (found - expected).abs().max().item()
late = (found - torch.mm(x + d, w)).abs().max().item()
print(f"z = x @ w is off by {wrong:.3g}; it is within {late:.3g} of (x + d) @ w, the product after the write")
if wrong > 1e-4:
    raise SystemExit("WRONG VALUES: the product was moved behind the write")
print("correct")
