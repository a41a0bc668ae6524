"""The decomposition of communication rewrites the graph of the rank whose piece is taken and leaves those of the
others: one rank reduces, the others gather, and all wait for ever.

Pass decomp_comms, PyTorch 2.15.0+cu132; breaks rewrite/collectives.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

The pass on a traced graph, as each rank of a fake process group. All ranks take the rows of rank 0.
"""

import sys
import warnings

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.distributed.fake_pg import FakeStore

try:
    from torch._inductor.fx_passes.decomp_comms import decomp_comms
except ImportError as error:
    print(f"this torch has no such pass: {error}")
    sys.exit(2)

warnings.filterwarnings("ignore")
OPS = torch.ops._c10d_functional


def step(x, group):
    whole = OPS.wait_tensor(OPS.all_gather_into_tensor(x, 2, group))
    first = whole @ (whole.t() @ whole)
    second = first @ (first.t() @ first)
    return second.split(2)[0].clone()


def collectives(rank):
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=2)
    group = dist.group.WORLD.group_name
    with FakeTensorMode():
        module = make_fx(lambda x: step(x, group))(torch.ones(2, 3))
    decomp_comms(module)
    dist.destroy_process_group()
    names = [str(node.target) for node in module.graph.nodes if node.op == "call_function"]
    return [name for name in names if name.startswith("_c10d_functional") and "wait" not in name]


first, second = collectives(0), collectives(1)
if first != second:
    print(f"FAILS: rank 0 starts {first}, rank 1 {second}")
    sys.exit(1)
print("the failure does not show")
