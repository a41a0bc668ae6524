"""A bucket of gathers takes values before the copy that brings them from the host: it is made, and sent, on the host.

Pass bucketing of all-gathers, PyTorch 2.15.0; breaks bucket/homogeneous.
Needs torch alone, and no GPU. Exit status 1 if the failure shows, else 0.

Parameters on the host, copied to the device and gathered, as with FSDP and offloaded parameters.
"""

import sys
import warnings

import torch
import torch.distributed as dist
from torch._inductor.fx_passes import bucketing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.distributed.fake_pg import FakeStore

warnings.filterwarnings("ignore")
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
GROUP = dist.group.WORLD.group_name
OPS = torch.ops._c10d_functional


def step(*shards):
    moved = [shard.to("cuda:0", torch.float32) for shard in shards]
    gathers = [OPS.all_gather_into_tensor(shard, 2, GROUP) for shard in moved]
    return [OPS.wait_tensor(gather) for gather in gathers]


def devices(places):
    """Where the collective runs after the pass, with shards in these places."""
    with FakeTensorMode():
        shards = [torch.empty(4, dtype=torch.bfloat16, device=place) for place in places]
        module = make_fx(step)(*shards)
    bucketing.bucket_all_gather(module, lambda index: 2000.0)
    gathers = [node for node in module.graph.nodes if "all_gather_into_tensor" in str(node.target)]
    return {str(node.meta["val"].device) for node in gathers}


failures = []
for places in (["cpu", "cpu"], ["cuda:0", "cpu"]):
    try:
        found = devices(places)
        if found != {"cuda:0"}:
            failures.append(f"with shards on {' and '.join(places)} the bucket is gathered on {', '.join(found)}")
    except Exception as error:
        failures.append(f"with shards on {' and '.join(places)} {type(error).__name__}: {str(error).splitlines()[-1]}")
for failure in failures:
    print(f"FAILS: {failure}")
if failures:
    sys.exit(1)
print("the failure does not show")
