"""tanh behind view(torch.int32) moves before it: tanh of the floats, and then their bits.

Pass sink_cat_after_pointwise before gradients.
torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

Any view counts as one that keeps the elements.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def given():
    return torch.ones(2), torch.ones(2)


def step(x, y):
    return torch.cat([x, y]).view(torch.int32).tanh()


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
