"""cumsum of full() sums the number given, and not what it is in the tensor's dtype.

Pass pointless_cumsum_replacement of the post-grad patterns.
torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

float32 does not hold 2**24 + 1. Also -1 in uint8, which is 255.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def given():
    return (torch.zeros(3, dtype=torch.int64),)


def step(x):
    return x + torch.full((3,), 2.0**24 + 1, dtype=torch.float32).cumsum(0, dtype=torch.int64)


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
