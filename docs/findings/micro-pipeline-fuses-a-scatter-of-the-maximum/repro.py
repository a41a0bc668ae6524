"""The fusion of a product with a reduce-scatter takes every reduction, but what it makes knows sum and avg only: with
max it raises when it runs.

Pass micro_pipeline_tp_pass, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

The pass on a traced graph, as one rank of a fake process group of two. The fused operator is as on a GPU.
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
    return OPS.wait_tensor(OPS.reduce_scatter_tensor(x @ weights, "max", 2, group))


inputs = torch.arange(16.0).reshape(4, 4), torch.eye(4)
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
