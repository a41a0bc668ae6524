"""A bucket takes a float8 value before its cast to float32 and concatenates it with float32, which PyTorch does not promote.

torch.compile on one rank over gloo with a compiler that buckets the aten graph and leaves it to eager kernels. Inductor's
own lowering of cat() promotes what the operator does not.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if it cannot be shown with this torch.
"""

import sys
import warnings

import torch
import torch.distributed as dist
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.fx_passes import bucketing
from torch._inductor.pattern_matcher import stable_topological_sort

warnings.filterwarnings("ignore")
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
OPS, GROUP = torch.ops._c10d_functional, dist.group.WORLD.group_name


def gather(x):
    return OPS.wait_tensor(OPS.all_gather_into_tensor(x, 1, GROUP))


def step(floats, eighths):
    return gather(floats), gather(eighths.float())


def raised(bucket):
    def compiler(module, example_inputs):
        if bucket:
            bucketing.bucket_all_gather(module, lambda index: 2000.0, "default")
            stable_topological_sort(module.graph)
            module.recompile()
        return make_boxed_func(module.forward)

    torch._dynamo.reset()
    try:
        compiled = torch.compile(step, backend=aot_autograd(fw_compiler=compiler), fullgraph=True)
        compiled(torch.ones(4), torch.ones(4).to(torch.float8_e4m3fn))
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return None


if without := raised(False):
    print(f"without the bucket it raises {without}")
    sys.exit(2)
failure = raised(True)
dist.destroy_process_group()
try:
    assert failure is None, f"with the bucket it raises {failure}"
except AssertionError as error:
    print(f"FAILS: {error}")
    sys.exit(1)
print("the failure does not show")
