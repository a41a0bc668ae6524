"""The softmax of bytes divided by a number subtracts the maximum from the bytes: the difference wraps.

Pass div_softmax_pattern of the joint graph.
torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

Integers times a number go the same way; int64 where the product overflows.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def given():
    return (torch.tensor([[10, 200, 30, 250]], dtype=torch.uint8),)


def step(image):
    return (torch.softmax(image / 255, -1) * 8).round()


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
