"""The fusion of DDP's communication ends with an error where the divisor gives the quotient a larger shape: it
concatenates dividends and splits by quotients.

Pass fuse_ddp_communication, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

torch.compile as rank 0 of a fake process group of two. The divisor is a column, so the quotients are matrices.
"""

import sys
import warnings

import torch
import torch.distributed as dist
from torch._inductor import config
from torch.testing._internal.distributed.fake_pg import FakeStore

warnings.filterwarnings("ignore")
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
GROUP = dist.group.WORLD.group_name
OPS = torch.ops._c10d_functional


def step(x, y, counts):
    first = OPS.all_reduce(x / counts, "sum", GROUP)
    second = OPS.all_reduce(y / counts, "sum", GROUP)
    return OPS.wait_tensor(first), OPS.wait_tensor(second)


if not hasattr(config, "_fuse_ddp_communication"):
    print("this torch has no _fuse_ddp_communication")
    sys.exit(2)
for settings in ({}, {"_fuse_ddp_communication": True}):
    torch._dynamo.reset()
    with config.patch(settings | {"force_disable_caches": True, "compile_threads": 1}):
        try:
            torch.compile(step, fullgraph=True)(torch.ones(4), torch.ones(4), torch.ones(3, 1))
        except Exception as error:
            if not settings:
                raise
            print(f"FAILS: torch.compile raises {type(error).__name__}: {str(error).splitlines()[0]}")
            sys.exit(1)
print("the failure does not show")
