"""Bucketing of gathers ends with AssertionError where the batch is dynamic and backward asks how large a gather is.

Pass bucket_all_gather, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, else 0.

torch.compile as one rank of a fake process group of two. Eager mode and fixed sizes are fine.
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


def step(x, y):
    total = collectives.all_gather_tensor(y, 0, GROUP).sum()
    return collectives.all_gather_tensor(x, 0, GROUP) * 2, total


x, y = (torch.ones(6, 4, requires_grad=True) for _ in range(2))
step(x, y)
for dynamic in (False, True):
    torch._dynamo.reset()
    with config.patch({"bucket_all_gathers_fx": "all", "force_disable_caches": True}):
        try:
            torch.compile(step, dynamic=dynamic, fullgraph=True)(x, y)
        except Exception as error:
            if not dynamic:
                raise
            print(f"FAILS: torch.compile raises {type(error).__name__}: {str(error).splitlines()[0]}")
            sys.exit(1)
print("the failure does not show")
