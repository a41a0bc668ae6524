"""A region saves its input for backward; Inductor takes that memory for free and overwrites it: wrong gradients.

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
def region(x):
    return x.sin()


def step(x):
    return region(x) * region(x.cos())


def gradient(function):
    x = torch.tensor([0.1, 0.5, 1.0, 2.0], requires_grad=True)
    function(x).sum().backward()
    return x.grad


expected, found = gradient(step), gradient(torch.compile(step, fullgraph=True))
try:
    assert torch.allclose(found, expected), f"the gradient is {found.tolist()}, and in eager mode {expected.tolist()}"
except AssertionError as failure:
    print(f"FAILS: {failure}")
    sys.exit(1)
print("the failure does not show")
