"""What is cast after it is scaled is cast before: a cast to int64 cuts off what the scale would have kept.

Pass mul_softmax_pattern of the joint graph.
torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

A cast to float16 overflows where the scaled value would not.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def given():
    return (torch.tensor([[1.9, 3.0]]),)


def step(x):
    score = (x * 10).long()
    return score - score.amax(-1, keepdim=True)


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
