"""The overlap scheduler ends with AssertionError where a parameter gathered in a bucket is read through two views.

Pass schedule_overlap_bucketing, PyTorch 2.15.0; breaks worker/error.
Needs torch alone, and no GPU. Exit status 1 if the failure shows, else 0.

A weight as FSDP gathers it, of which a row is read, and the whole, turned. Nothing is bucketed before the scheduling if
pre_bucketing_fsdp_collectives is off, and then all is well.
"""

import sys
import warnings

import torch
import torch.distributed as dist
from torch._inductor.fx_passes.overlap_scheduling import schedule_overlap_bucketing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.distributed.fake_pg import FakeStore

warnings.filterwarnings("ignore")
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
GROUP = dist.group.WORLD.group_name
OPS = torch.ops._c10d_functional


def step(shard, other, scale):
    weight, bias = (OPS.wait_tensor(OPS.all_gather_into_tensor(s, 2, GROUP)) for s in (shard, other))
    row = weight.select(0, 0).neg()
    total = OPS.reduce_scatter_tensor(weight.t() * scale, "sum", 2, GROUP)
    return OPS.wait_tensor(total), row, bias * 2


for setting in (False, True):
    with FakeTensorMode():
        module = make_fx(step)(*(torch.empty(64, n, device="cuda") for n in (64, 64, 1)))
    try:
        schedule_overlap_bucketing(
            module,
            collective_bucketing=True,
            custom_runtime_estimation=lambda node, size=None: 1.0,
            pre_bucketing_fsdp_collectives=setting,
        )
    except AssertionError as error:
        if not setting:
            raise
        print(f"FAILS: schedule_overlap_bucketing raises AssertionError: {error}")
        sys.exit(1)
print("the failure does not show")
