"""A bucket of gathers concatenates int64 with a float64 that is cast: the integers go through float64.

torch.compile on one rank over gloo with torch._inductor.config.bucket_all_gathers_fx = "all", against eager mode.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if it cannot be shown with this torch.
"""

import sys
import warnings

import torch
import torch.distributed as dist
from torch._inductor import config

warnings.filterwarnings("ignore")
if not hasattr(config, "bucket_all_gathers_fx"):
    print("this torch has no bucket_all_gathers_fx")
    sys.exit(2)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
OPS, GROUP = torch.ops._c10d_functional, dist.group.WORLD.group_name


def gather(x):
    return OPS.wait_tensor(OPS.all_gather_into_tensor(x, 1, GROUP))


def step(integers, floats):
    return gather(integers), gather(floats.long())


inputs = torch.tensor([1, 2**53 + 1, 2**60 + 1]), torch.ones(3, dtype=torch.float64)
expected = step(*inputs)[0]
with config.patch(bucket_all_gathers_fx="all", force_disable_caches=True):
    found = torch.compile(step, fullgraph=True)(*inputs)[0]
dist.destroy_process_group()
try:
    assert torch.equal(found, expected), f"{found.tolist()} is gathered, and in eager mode {expected.tolist()}"
except AssertionError as failure:
    print(f"FAILS: {failure}")
    sys.exit(1)
print("the failure does not show")
