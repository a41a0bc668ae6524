"""The default partitioner puts an all-reduce whose result nobody reads into forward and into backward: it is sent twice.

torch.compile with backend="aot_eager_default_partitioner", as one rank of a fake process group of two.
Needs torch alone. Exit status 1 if the failure shows, else 0.
"""

import sys
import warnings

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

warnings.filterwarnings("ignore")
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
OPS, GROUP = torch.ops._c10d_functional, dist.group.WORLD.group_name
sent = []


class Counted(TorchDispatchMode):
    """Notes each all-reduce."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "all_reduce" in str(function):
            sent.append(str(function))
        return function(*args, **kwargs or {})


def step(x, w):
    OPS.wait_tensor(OPS.all_reduce(w.detach(), "sum", GROUP))
    return (x * w).sin()


def backward_sends(function):
    given = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
    result = function(*given).sum()
    sent.clear()
    with Counted():
        result.backward()
    return len(sent)


assert backward_sends(step) == 0
compiled = torch.compile(step, backend="aot_eager_default_partitioner", fullgraph=True)
if count := backward_sends(compiled):
    print(f"FAILS: backward sends {count} all-reduce, which forward has sent")
    sys.exit(1)
print("the failure does not show")
