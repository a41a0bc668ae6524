"""Of two waits of one collective the one that was made first is kept, wherever it stands: the graph after fails.

Passes reorder_for_locality and deduplicate_wait_tensors, as torch.compile runs them by default, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, else 0.

torch.compile as one rank of a fake process group of two. Without reorder_for_locality it compiles.
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


def step(x):
    total = OPS.all_reduce(x, "sum", GROUP)
    first, second = OPS.wait_tensor(total), OPS.wait_tensor(total)
    return first, OPS.wait_tensor(OPS.all_gather_into_tensor(second * 2, 2, GROUP))


for setting in (False, True):
    torch._dynamo.reset()
    with config.patch({"reorder_for_locality": setting, "force_disable_caches": True}):
        try:
            torch.compile(step, fullgraph=True)(torch.ones(4))
        except Exception as error:
            if not setting:
                raise
            print(f"FAILS: torch.compile raises {type(error).__name__}: {str(error).splitlines()[0]}")
            sys.exit(1)
print("the failure does not show")
