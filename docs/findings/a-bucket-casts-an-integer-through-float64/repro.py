"""A bucket of gathers concatenates int64 with a float64 that is cast: the integers go through float64.

Pass bucketing with kind=all_gather mode=default selection=adjacent, PyTorch 2.15.0+cu132; breaks bucket/users-rewired.
Needs torch alone. Exit status 1 if the failure shows, else 0.

One rank over gloo. Both gathers give one dtype; the second gathers what is cast to it from float64. Inductor's own option
bucket_all_gathers_fx, and the pass alone with eager kernels.
"""

import os
import sys
import tempfile
import warnings

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._inductor import config
from torch._inductor.fx_passes import bucketing
from torch._inductor.pattern_matcher import stable_topological_sort

warnings.filterwarnings("ignore")
# 2^53 + 1 is no float64. Above the middle of two float32s, and of two bfloat16s, by less than float64 can say.
NUMBERS = [2**53 + 1, 2**60 + 2**36 + 1, 2**60 + 2**52 + 2**36 + 1]


def gather(tensor):
    return collectives.wait_tensor(collectives.all_gather_tensor(tensor, 0, dist.group.WORLD))


def step(integers, floats, dtype):
    return gather(integers.to(dtype)), gather(floats.to(dtype))


def eager_kernels(module, example_inputs):
    bucketing.bucket_all_gather(module, lambda index: 2000.0, "default")
    stable_topological_sort(module.graph)
    module.recompile()
    return make_boxed_func(module.forward)


def compiled(backend, dtype):
    torch._dynamo.reset()
    with config.patch(bucket_all_gathers_fx="all", force_disable_caches=True):
        return torch.compile(step, backend=backend, fullgraph=True)(*inputs(), dtype)


def inputs():
    return torch.tensor(NUMBERS), torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)


failed = False
with tempfile.TemporaryDirectory() as folder:
    dist.init_process_group("gloo", init_method=f"file://{os.path.join(folder, 'store')}", rank=0, world_size=1)
    for dtype in (torch.int64, torch.float32, torch.bfloat16):
        expected = step(*inputs(), dtype)[0]
        for name, backend in (("eager kernels", aot_autograd(fw_compiler=eager_kernels)), ("inductor", "inductor")):
            found = compiled(backend, dtype)[0]
            if not torch.equal(expected, found):
                failed = True
                numbers = [t.to(torch.float64 if t.is_floating_point() else torch.int64).tolist() for t in (found, expected)]
                print(f"FAILS: {name}: the gathered {dtype} are {numbers[0]}, and without the bucket {numbers[1]}")
    dist.destroy_process_group()
if failed:
    sys.exit(1)
print("the failure does not show")
