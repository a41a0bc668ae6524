"""split() of cat() becomes the tensors before cat(): those of another dtype are not cast.

Pass cat_splitwithsizes_replace of the post-grad patterns.
torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

int64 stays int64, and wraps, where cat() makes it float32.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def given():
    return torch.full((1, 2), 7), torch.ones(1, 2)


def step(x, y):
    first, _ = torch.cat([x, y], 1).split([2, 2], 1)
    return first * 10**18 * 100


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
