"""Bucketing of reductions ends with AssertionError where a group reduces tensors of the host and of a device.

Pass bucketing of all-reduces and of reduce-scatters, PyTorch 2.15.0; breaks worker/error.
Needs torch alone, and no GPU. Exit status 1 if the failure shows, else 0.

A group with a backend for each device ("cpu:gloo,cuda:nccl", which is the default one) takes both.
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


def sums(*tensors):
    launches = [OPS.all_reduce(tensor, "sum", GROUP) for tensor in tensors]
    return [OPS.wait_tensor(launch) for launch in launches]


def scatters(*tensors):
    launches = [OPS.reduce_scatter_tensor(tensor, "sum", 2, GROUP) for tensor in tensors]
    return [OPS.wait_tensor(launch) for launch in launches]


failures = []
for step, bucket in ((sums, bucketing.bucket_all_reduce), (scatters, bucketing.bucket_reduce_scatter)):
    for places in (["cuda:0", "cuda:0"], ["cuda:0", "cpu"]):
        with FakeTensorMode():
            module = make_fx(step)(*[torch.empty(4, 4, device=place) for place in places])
        try:
            bucket(module, lambda index: 2000.0)
        except Exception as error:
            if places[0] == places[1]:
                raise
            failures.append(f"{step.__name__} on {' and '.join(places)}: {type(error).__name__}: {error}")
for failure in failures:
    print(f"FAILS: {failure}")
if failures:
    sys.exit(1)
print("the failure does not show")
