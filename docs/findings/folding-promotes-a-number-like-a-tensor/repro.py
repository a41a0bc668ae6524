"""Constants of no dimensions are folded as ones of one dimension: they promote, and float16 does not overflow.

Pass constant_fold_uniform_value of the joint graph.
torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

A sum of float16 and a float32 without dimensions is float16, and infinite here; integers wrap likewise.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def given():
    return (torch.zeros(3),)


def step(x):
    large = torch.full((3,), 60000.0, dtype=torch.float16)
    return x + (large + torch.full((), 60000.0)) * 0.5


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
