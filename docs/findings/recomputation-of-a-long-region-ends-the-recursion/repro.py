"""Where torch.autograd.grad is compiled, a checkpointed region of a thousand operators in a row ends with
RecursionError.

Pass rewrite, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

torch.compile of a function that calls torch.autograd.grad. A region of ten operators works.
"""

import sys
import warnings

import torch
from torch.utils.checkpoint import checkpoint

warnings.filterwarnings("ignore")
if not hasattr(torch._dynamo.config, "trace_autograd_ops"):
    print("this torch has no trace_autograd_ops")
    sys.exit(2)


def region(x, length):
    for _ in range(length):
        x = x.sin()
    return x


def step(x, w, length):
    y = checkpoint(region, x * w, length, use_reentrant=False)
    return torch.autograd.grad(y.sum(), w)


for length in (10, 1000):
    torch._dynamo.reset()
    w = torch.ones(4, requires_grad=True)
    with torch._dynamo.config.patch(trace_autograd_ops=True):
        try:
            torch.compile(step, fullgraph=True, backend="aot_eager")(torch.ones(4), w, length)
        except Exception as error:
            if length == 10:
                raise
            print(f"FAILS: torch.compile raises {type(error).__name__}: {str(error).splitlines()[1]}")
            sys.exit(1)
print("the failure does not show")
