"""Buckets of reduce-scatters and then of gathers make a cycle: the list is not sorted in between, and independence is asked in one direction only.

Pass bucketing with kind=all mode=default selection=adjacent, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, else 0.

torch.compile of four collectives as one rank of a fake process group of two. Each of Inductor's two options alone compiles it.
"""

import sys
import warnings

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from torch._inductor import config
from torch.testing._internal.distributed.fake_pg import FakeStore

warnings.filterwarnings("ignore")
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
GROUP = dist.group.WORLD


def step(a, b):
    scattered = collectives.wait_tensor(collectives.reduce_scatter_tensor(a, "sum", 0, GROUP))
    first = collectives.wait_tensor(collectives.all_gather_tensor(scattered, 0, GROUP))
    gathered = collectives.wait_tensor(collectives.all_gather_tensor(b, 0, GROUP))
    second = collectives.wait_tensor(collectives.reduce_scatter_tensor(gathered, "sum", 0, GROUP))
    return first, second


for scatters, gathers in (("all", "none"), ("none", "all"), ("all", "all")):
    torch._dynamo.reset()
    options = {"bucket_reduce_scatters_fx": scatters, "bucket_all_gathers_fx": gathers, "force_disable_caches": True}
    with config.patch(options):
        try:
            torch.compile(step, fullgraph=True)(torch.ones(2, 3), torch.ones(2, 3))
        except Exception as error:
            if (scatters, gathers) != ("all", "all"):
                raise
            print(f"FAILS: with both options torch.compile raises {type(error).__name__}: {str(error).splitlines()[0]}")
            sys.exit(1)
print("the failure does not show")
