"""manual_overlap_bucketing ends with AssertionError where a coalesced gather is waited for item by item: it takes the item for the collective.

Pass manual_overlap_bucketing, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, else 0.

The pass on a traced graph, as one rank of a fake process group of two. Without the coalesced gather it works.
"""

import sys
import warnings

import torch
import torch.distributed as dist
from torch._inductor.fx_passes.overlap_manual_scheduling import manual_overlap_bucketing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.distributed.fake_pg import FakeStore

warnings.filterwarnings("ignore")
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
GROUP = dist.group.WORLD.group_name
OPS = torch.ops._c10d_functional


def one_by_one(a, b):
    return [OPS.wait_tensor(OPS.all_gather_into_tensor(x, 2, GROUP)) for x in (a, b)]


def coalesced(a, b):
    return [OPS.wait_tensor(item) for item in OPS.all_gather_into_tensor_coalesced([a, b], 2, GROUP)]


for function in (one_by_one, coalesced):
    with FakeTensorMode():
        module = make_fx(function)(torch.ones(4), torch.ones(4))
    try:
        manual_overlap_bucketing(module, [["layer"]])
    except (AssertionError, AttributeError) as error:
        if function is one_by_one:
            raise
        print(f"FAILS: manual_overlap_bucketing raises {type(error).__name__}: {error}")
        sys.exit(1)
print("the failure does not show")
