"""A region that is run twice, and once without a backward, cannot be compiled: its calls are paired by their number.

torch.compile with torch.compiler.nested_compile_region, against eager mode.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if this torch has no such regions.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")
if not hasattr(torch.compiler, "nested_compile_region"):
    print("this torch has no nested_compile_region")
    sys.exit(2)


@torch.compiler.nested_compile_region
def region(x, w):
    return torch.sin(x * w)


def step(x, z, w):
    target = region(z, w).detach()
    return (region(x, w) - target).pow(2).sum()


def gradients(function):
    torch.manual_seed(0)
    inputs = [torch.randn(4, requires_grad=True) for _ in range(3)]
    function(*inputs).backward()
    return inputs[0].grad, inputs[2].grad


expected = gradients(step)
torch._dynamo.reset()
try:
    found = gradients(torch.compile(step, backend="aot_eager", fullgraph=True))
    assert all(map(torch.allclose, expected, found)), f"the gradients are {found}, and in eager mode {expected}"
except Exception as failure:
    print(f"FAILS: {str(failure).splitlines()[0] or type(failure).__name__}")
    sys.exit(1)
print("the failure does not show")
