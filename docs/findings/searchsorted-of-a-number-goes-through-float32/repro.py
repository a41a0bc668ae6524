"""searchsorted and bucketize of a number make it a float32: among float64 it is found in another place.

Pass decomposition of searchsorted.
torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

bucketize(0.1, ordered) likewise.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def given():
    return (torch.tensor([0.1], dtype=torch.float64),)


def step(ordered):
    return torch.searchsorted(ordered, 0.1)


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
