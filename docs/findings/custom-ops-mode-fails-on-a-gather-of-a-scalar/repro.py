"""Bucketing fails with IndexError on an all-gather of a tensor without dimensions.

torch.compile as a rank of a fake process group, with and without torch._inductor.config.bucket_all_gathers_fx = "all",
in the modes custom_ops and default.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if it cannot be shown with this torch.
"""

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
    return gather(a), gather(b)


def raised(setting, mode):
    torch._dynamo.reset()
    settings = {"bucket_all_gathers_fx": setting, "force_disable_caches": True}
    if hasattr(config, "bucket_all_gathers_bucket_mode"):
        settings["bucket_all_gathers_bucket_mode"] = mode
    try:
        with config.patch(settings):
            torch.compile(step, fullgraph=True)(torch.ones(3), torch.ones(()))
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return None


if without := raised("none", "default"):
    print(f"without buckets it raises {without}")
    sys.exit(2)
failed = {mode: failure for mode in ("default", "custom_ops") if (failure := raised("all", mode))}
for mode, failure in failed.items():
    print(f"FAILS: in the mode {mode} it raises {failure}")
if failed:
    sys.exit(1)
print("the failure does not show")
