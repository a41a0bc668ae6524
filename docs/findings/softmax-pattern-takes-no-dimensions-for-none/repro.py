"""amax over dim=() is over all dimensions, and the softmax pattern takes a factor for constant over none of them.

Pass mul_softmax_pattern of the joint graph.
torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

The factor differs between rows, and the maximum is taken over both.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def given():
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0], [-5.0]])


def step(x, factor):
    score = x * factor
    return score - score.amax((), keepdim=True)


def told(value):
    return f"{value.dtype} {value.tolist()}"


torch._inductor.config.force_disable_caches = True
eager = told(step(*given()))
try:
    compiled = told(torch.compile(step, fullgraph=True)(*given()))
except Exception as error:
    print(f"it cannot be shown: torch.compile raises {type(error).__name__}: {' '.join(str(error).split())[:200]}")
    sys.exit(2)
if eager != compiled:
    print(f"FAILS: torch.compile returns {compiled}, and eager mode {eager}")
    sys.exit(1)
print("the failure does not show")
