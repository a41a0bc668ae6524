"""In the mode custom_ops_multidtype a float32 is put where a buffer of bfloat16 cannot be viewed as float32.

torch.compile on one rank over gloo with torch._inductor.config.bucket_all_gathers_fx = "all" and
bucket_all_gathers_bucket_mode = "custom_ops_multidtype".
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if it cannot be shown with this torch.
"""

import sys
import warnings

import torch
import torch.distributed as dist
from torch._inductor import config

warnings.filterwarnings("ignore")
if not hasattr(config, "bucket_all_gathers_bucket_mode"):
    print("this torch has no bucket_all_gathers_bucket_mode")
    sys.exit(2)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
OPS, GROUP = torch.ops._c10d_functional, dist.group.WORLD.group_name


def gather(x):
    return OPS.wait_tensor(OPS.all_gather_into_tensor(x, 1, GROUP))


def step(a, b):
    return gather(a), gather(b)


def raised(mode):
    torch._dynamo.reset()
    settings = {"bucket_all_gathers_fx": "all", "bucket_all_gathers_bucket_mode": mode, "force_disable_caches": True}
    try:
        with config.patch(settings):
            torch.compile(step, fullgraph=True)(torch.ones(3, dtype=torch.bfloat16), torch.ones(1))
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return None


failure = raised("custom_ops_multidtype")
dist.destroy_process_group()
try:
    assert failure is None, f"in the mode custom_ops_multidtype it raises {failure}"
except AssertionError as error:
    print(f"FAILS: {error}")
    sys.exit(1)
print("the failure does not show")
