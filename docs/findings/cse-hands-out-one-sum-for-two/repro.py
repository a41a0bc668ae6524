"""Two equal all-reduces whose results are both returned become one: the two results share memory, and a write to one shows in the other.

Pass fx_graph_cse, as torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/aliases.
Needs torch alone. Exit status 1 if the failure shows, else 0.

torch.compile as one rank of a fake process group of two.
"""

import sys
import warnings

import torch
import torch.distributed as dist
from torch._inductor import config
from torch.testing._internal.distributed.fake_pg import FakeStore

warnings.filterwarnings("ignore")
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
GROUP = dist.group.WORLD.group_name
OPS = torch.ops._c10d_functional


def step(x, weight):
    first, second = (OPS.wait_tensor(OPS.all_reduce(x, "sum", GROUP)) for _ in range(2))
    return first, second, weight * 2


def afterwards(function):
    first, second, _ = function(torch.ones(3), torch.ones(3, requires_grad=True))
    first.add_(1)
    return second


with config.patch(force_disable_caches=True):
    eager, compiled = afterwards(step), afterwards(torch.compile(step, fullgraph=True))
if not torch.equal(eager, compiled):
    print(f"FAILS: after a write to the first sum the second is {compiled.tolist()}, and in eager mode {eager.tolist()}")
    sys.exit(1)
print("the failure does not show")
