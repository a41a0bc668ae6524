"""The overlap scheduler ends with RuntimeError because of a cycle that its own extra dependencies make.

torch.compile as a rank of a fake process group, with aten_distributed_optimizations.enable_overlap_scheduling (and no
fusion regions, no buckets beforehand). Two casts hide a gather, with a sin between them, and are taken into one bucket.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if it cannot be shown with this torch.
"""

import sys
import warnings

import torch
import torch.distributed as dist
from torch._inductor import config
from torch.testing._internal.distributed.fake_pg import FakeStore

warnings.filterwarnings("ignore")
if not hasattr(config, "aten_distributed_optimizations"):
    print("this torch has no overlap scheduler")
    sys.exit(2)
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
OPS, GROUP = torch.ops._c10d_functional, dist.group.WORLD.group_name


def step(a, b, c):
    values = (a, b.bfloat16(), c.sin().bfloat16())
    return [OPS.wait_tensor(g) for g in [OPS.all_gather_into_tensor(v, 2, GROUP) for v in values]]


def estimate(node, size=None):
    return 10.0 if getattr(node.target, "namespace", "") == "_c10d_functional" else 1.0


def raised():
    torch._dynamo.reset()
    settings = {"enable_overlap_scheduling": True, "collective_bucketing": True, "custom_runtime_estimation": estimate}
    settings |= {"enable_fusion_regions": False, "pre_bucketing_fsdp_collectives": False}
    settings = {k: v for k, v in settings.items() if hasattr(config.aten_distributed_optimizations, k)}
    settings = {f"aten_distributed_optimizations.{k}": v for k, v in settings.items()}
    try:
        with config.patch({"force_disable_caches": True, **settings}):
            torch.compile(step, fullgraph=True)(*(torch.ones(4, 4) for _ in range(3)))
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return None


failure = raised()
try:
    assert failure is None, f"torch.compile raises {failure}"
except AssertionError as error:
    print(f"FAILS: {error}")
    sys.exit(1)
print("the failure does not show")
