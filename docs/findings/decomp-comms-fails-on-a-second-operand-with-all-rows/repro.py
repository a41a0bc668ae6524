"""The decomposition of communication ends with RuntimeError where the gathered rows meet another tensor that has all
rows.

Pass decomp_comms, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

torch.compile as rank 0 of a fake process group of two. After the pass 2 rows are added to 4.
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


def step(x, weights):
    whole = OPS.wait_tensor(OPS.all_gather_into_tensor(x, 2, GROUP))
    first = whole @ (whole.t() @ whole)
    second = first @ (first.t() @ first) + weights
    return second.split(2)[0].clone()


if not hasattr(config.aten_distributed_optimizations, "allow_comms_decompositions"):
    print("this torch has no allow_comms_decompositions")
    sys.exit(2)
for settings in ({}, {"aten_distributed_optimizations.allow_comms_decompositions": True}):
    torch._dynamo.reset()
    with config.patch(settings | {"force_disable_caches": True, "compile_threads": 1}):
        try:
            torch.compile(step, fullgraph=True)(torch.ones(2, 3), torch.ones(4, 3))
        except Exception as error:
            if not settings:
                raise
            print(f"FAILS: torch.compile raises {type(error).__name__}: {str(error).splitlines()[0]}")
            sys.exit(1)
print("the failure does not show")
