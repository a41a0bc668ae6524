"""relu under no_grad() of a cat() outside moves to the cat(): gradients flow that eager mode cuts off.

Pass sink_cat_after_pointwise before gradients.
torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

The gradient of x[0] alone is 4, which is right; the others come through relu.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def given():
    return (torch.ones(2, requires_grad=True),)


def step(x):
    both = torch.cat([x, x])
    with torch.no_grad():
        weight = both.relu()
    return (weight * x[0]).sum()


def told(function):
    (x,) = given()
    function(x).backward()
    return x.grad.tolist()


torch._inductor.config.force_disable_caches = True
eager = told(step)
try:
    compiled = told(torch.compile(step, fullgraph=True))
except Exception as error:
    print(f"it cannot be shown: torch.compile raises {type(error).__name__}: {' '.join(str(error).split())[:200]}")
    sys.exit(2)
if eager != compiled:
    print(f"FAILS: the gradient is {compiled} with torch.compile, and {eager} in eager mode")
    sys.exit(1)
print("the failure does not show")
