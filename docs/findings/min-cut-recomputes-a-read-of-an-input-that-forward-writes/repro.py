"""The min-cut partitioner recomputes in backward a read of an input that forward has written since: wrong gradients.

torch.compile as it is, without any setting, against eager mode: forward reads a buffer and then adds to it. Backward
computes sin(buffer) again, of the buffer as it is by then.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if it cannot be shown with this torch.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def step(x, buffer):
    y = x * buffer.sin()
    buffer.add_(1)
    return y


def gradient(function):
    x, buffer = torch.ones(4, requires_grad=True), torch.ones(4)
    function(x, buffer).sum().backward()
    return x.grad


torch._inductor.config.force_disable_caches = True
expected, found = gradient(step), gradient(torch.compile(step, fullgraph=True))
try:
    assert torch.allclose(found, expected), f"the gradient is {found.tolist()}, and in eager mode {expected.tolist()}"
except AssertionError as failure:
    print(f"FAILS: {failure}")
    sys.exit(1)
print("the failure does not show")
