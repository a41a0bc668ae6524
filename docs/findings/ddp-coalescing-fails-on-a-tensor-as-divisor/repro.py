"""fuse_ddp_with_coalesced_op ends with RuntimeError where gradients are divided by a tensor: it hands it to
_foreach_div.Scalar.

Pass fuse_ddp_communication, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

torch.compile as rank 0 of a fake process group of two. The gradients are divided by a number of tokens, which is a
tensor.
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


COALESCED = {"_fuse_ddp_communication": True, "_fuse_ddp_communication_passes": ["fuse_ddp_with_coalesced_op"]}


def step(x, y, tokens):
    first = OPS.all_reduce(x / tokens, "sum", GROUP)
    second = OPS.all_reduce(y / tokens, "sum", GROUP)
    return OPS.wait_tensor(first), OPS.wait_tensor(second)


if not hasattr(config, "_fuse_ddp_communication"):
    print("this torch has no _fuse_ddp_communication")
    sys.exit(2)
for settings in ({}, COALESCED):
    torch._dynamo.reset()
    with config.patch(settings | {"force_disable_caches": True, "compile_threads": 1}):
        try:
            torch.compile(step, fullgraph=True)(torch.ones(4), torch.ones(3), torch.tensor(2.0))
        except Exception as error:
            if not settings:
                raise
            print(f"FAILS: torch.compile raises {type(error).__name__}: {str(error).splitlines()[0]}")
            sys.exit(1)
print("the failure does not show")
