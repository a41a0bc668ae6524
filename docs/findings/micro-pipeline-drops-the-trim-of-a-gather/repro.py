"""The fusion of a gather with a product takes a slice that trims the gathered dimension away: the product after it
gets too many columns and raises.

Pass micro_pipeline_tp_pass, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

The pass on a traced graph, as one rank of a fake process group of two. Padding is cut off after the gather: 2000 of
2048 columns are multiplied.
"""

import sys
import warnings

import torch
import torch.distributed as dist
from torch._inductor.fx_passes.micro_pipeline_tp import micro_pipeline_tp_pass
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed import _symmetric_memory as symmetric
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.distributed.fake_pg import FakeStore

warnings.filterwarnings("ignore")
OPS, ATEN = torch.ops._c10d_functional, torch.ops.aten
CPU = torch.library.Library("symm_mem", "IMPL")
CPU.impl("fused_all_gather_matmul", symmetric._fused_all_gather_matmul_fallback, "CPU")
CPU.impl("fused_matmul_reduce_scatter", symmetric._fused_matmul_reduce_scatter, "CPU")
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
group = dist.group.WORLD.group_name


def step(x, weights):
    whole = OPS.wait_tensor(OPS.all_gather_into_tensor(x, 2, group))
    slices = [ATEN.slice.Tensor(whole, 0, 0, 2), ATEN.slice.Tensor(whole, 0, 2, 4)]
    return ATEN.slice.Tensor(ATEN.cat.default(slices, 1), 1, 0, 2000) @ weights


inputs = torch.arange(2 * 1024.0).reshape(2, 1024) / 1024, torch.arange(2000.0).reshape(2000, 1) / 1024
with FakeTensorMode() as mode:
    module = make_fx(step)(*map(mode.from_tensor, inputs))
module(*inputs)
with symmetric._test_mode():  # No memory that devices share is needed.
    micro_pipeline_tp_pass(module.graph)
module.recompile()
try:
    module(*inputs)
except (RuntimeError, ValueError) as error:
    print(f"FAILS: after the pass the graph raises {type(error).__name__}: {error}".splitlines()[0])
    sys.exit(1)
print("the failure does not show")
