"""The fusion of products with communication fails where one product both takes a gather and feeds a scatter of sums.

Pass micro_pipeline_tp_pass, PyTorch 2.15.0; a crash on a valid graph.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

The pass on a traced graph, on one rank of gloo. The gather is fused first and takes the product with it; the scatter was
matched before, and asks for a product that is gone.
"""

import sys
import warnings

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

warnings.filterwarnings("ignore")
try:
    from torch._inductor.fx_passes.micro_pipeline_tp import micro_pipeline_tp_pass
    from torch.distributed import _symmetric_memory as symmetric
except ImportError as error:
    print(f"this torch has no such pass: {error}")
    sys.exit(2)
OPS = torch.ops._c10d_functional
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
GROUP = dist.group.WORLD.group_name


def step(x, weights):
    product = OPS.wait_tensor(OPS.all_gather_into_tensor(x, 1, GROUP)) @ weights
    return OPS.wait_tensor(OPS.reduce_scatter_tensor(product, "sum", 1, GROUP))


with FakeTensorMode():
    module = make_fx(step)(torch.empty(2, 1024), torch.empty(1024, 2))
try:
    with symmetric._test_mode():  # As in PyTorch's own tests: fallbacks, and no memory that devices share.
        micro_pipeline_tp_pass(module.graph)
    module.graph.lint()
except Exception as failure:
    print(f"FAILS: {type(failure).__name__}: {failure}")
    sys.exit(1)
finally:
    dist.destroy_process_group()
print("the failure does not show")
