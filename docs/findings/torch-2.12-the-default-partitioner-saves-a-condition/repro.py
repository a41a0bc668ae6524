"""The default partitioner hands a condition over to backward that only an assertion reads: a SymBool is saved.

torch.compile with the default partitioner; the forward part is looked at.
Needs torch alone. Exit status 1 if the failure shows, else 0.
"""

import sys
import warnings

import torch
from functorch.compile import nop
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition

warnings.filterwarnings("ignore")
torch._dynamo.config.capture_scalar_outputs = True
saved = []


def partition(module, *args, **kwargs):
    """The partitioner, and what its forward part hands over beyond the one output of the function."""
    forward, backward = default_partition(module, *args, **kwargs)
    output = next(node for node in forward.graph.nodes if node.op == "output")
    saved.extend(node.meta["val"] for node in output.args[0][1:])
    return forward, backward


def step(x, count):
    rows = count.item()
    torch._assert_scalar(rows >= 2, "two rows at least")
    torch._check(rows >= 0)
    torch._check(rows <= x.shape[0])
    return (x.narrow(0, 0, rows).sin() * rows).sin()


backend = aot_autograd(fw_compiler=nop, bw_compiler=nop, partition_fn=partition)
torch.compile(step, backend=backend, fullgraph=True)(torch.ones(4, 3, requires_grad=True), torch.tensor(3))
assert any(isinstance(value, torch.Tensor) for value in saved)
if conditions := [value for value in saved if isinstance(value, torch.SymBool)]:
    print(f"FAILS: backward is given {', '.join(map(str, conditions))}, which it does not read")
    sys.exit(1)
print("the failure does not show")
