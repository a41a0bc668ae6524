"""addmm with beta=0 and one row multiplies its input by 0: NaN stays NaN, where eager mode ignores the input.

Pass decomposition of addmm.
torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

The documentation of addmm: if beta is 0, the input is ignored, and nan and inf in it are not propagated.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def given():
    return torch.tensor([float("nan")]), torch.ones(1, 3), torch.ones(3, 4)


def step(bias, x, y):
    return torch.addmm(bias, x, y, beta=0)


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
