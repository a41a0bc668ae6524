"""Bucketing fails with RuntimeError where one gather casts from one float8 type to another.

torch.compile as a rank of a fake process group with torch._inductor.config.bucket_all_gathers_fx = "all".
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if it cannot be shown with this torch.
"""

import logging
import sys
import warnings

import torch
import torch.distributed as dist
from torch._inductor import config
from torch.testing._internal.distributed.fake_pg import FakeStore

warnings.filterwarnings("ignore")
if not hasattr(config, "bucket_all_gathers_fx"):
    print("this torch has no bucket_all_gathers_fx")
    sys.exit(2)
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
OPS, GROUP = torch.ops._c10d_functional, dist.group.WORLD.group_name


def gather(x):
    return OPS.wait_tensor(OPS.all_gather_into_tensor(x, 2, GROUP))


def step(a, b):
    return gather(a.to(torch.float8_e4m3fn)), gather(b)


def raised(setting):
    torch._dynamo.reset()
    with config.patch(bucket_all_gathers_fx=setting, force_disable_caches=True):
        try:
            torch.compile(step, fullgraph=True)(torch.ones(4).to(torch.float8_e5m2), torch.ones(4).to(torch.float8_e4m3fn))
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return None


logging.disable()
if without := raised("none"):
    print(f"without buckets torch.compile raises {without}")
    sys.exit(2)
failure = raised("all")
try:
    assert failure is None, f"with buckets torch.compile raises {failure}"
except AssertionError as error:
    print(f"FAILS: {error}")
    sys.exit(1)
print("the failure does not show")
