"""The overlap scheduler ends with AssertionError where it has started a coalesced gather early: it waits for it before its items are taken.

Pass schedule_overlap_bucketing, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, else 0.

torch.compile as one rank of a fake process group of two.
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


def step(a, b, w):
    # The coalesced gather is needed at the end only, and started while a @ w runs.
    product = OPS.wait_tensor(OPS.all_gather_into_tensor(a @ w, 2, GROUP)) @ w
    first, second = OPS.all_gather_into_tensor_coalesced([b, b + 1], 2, GROUP)
    return product, OPS.wait_tensor(first), OPS.wait_tensor(second)


def estimate(node, size=None):
    return 1.0


PREFIX = "aten_distributed_optimizations"


for setting in (False, True):
    torch._dynamo.reset()
    with config.patch({f"{PREFIX}.enable_overlap_scheduling": setting, f"{PREFIX}.custom_runtime_estimation": estimate, "force_disable_caches": True}):
        try:
            torch.compile(step, fullgraph=True)(torch.ones(4, 4), torch.ones(4), torch.ones(4, 4))
        except Exception as error:
            if not setting:
                raise
            print(f"FAILS: torch.compile raises {type(error).__name__}: {str(error).splitlines()[0]}")
            sys.exit(1)
print("the failure does not show")
