"""Inductor ends with AssertionError where a region takes a gather of one-row shards, and that was put into a bucket.

Pass bucket_all_gather, PyTorch 2.15.0; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, else 0.

torch.compile as one rank of a fake process group of two. Eager mode, and Inductor without buckets, are fine.
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


@torch.compiler.nested_compile_region
def layer(w, x):
    return torch.relu(x @ w.t())


def step(shard, other, x):
    # A piece of a bucket is a row on each rank, and the rows do not lie side by side.
    w = collectives.all_gather_tensor(shard, 0, GROUP)
    v = collectives.all_gather_tensor(other, 0, GROUP)
    return layer(w, x), layer(x, w), v * 2


arguments = torch.ones(1, 2), torch.ones(1, 2), torch.ones(2, 2)
step(*arguments)
for setting in ("none", "all"):
    torch._dynamo.reset()
    with config.patch({"bucket_all_gathers_fx": setting, "force_disable_caches": True}):
        try:
            torch.compile(step, fullgraph=True)(*arguments)
        except Exception as error:
            if setting == "none":
                raise
            print(f"FAILS: torch.compile raises {type(error).__name__}: {str(error).splitlines()[0]}")
            sys.exit(1)
print("the failure does not show")
