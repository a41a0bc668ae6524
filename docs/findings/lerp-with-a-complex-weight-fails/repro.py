"""torch.lerp with a complex number as weight compiles to TypeError: the decomposition compares it with 0.5.

Pass decomposition of lerp.
torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

_foreach_lerp_scalar of the same file has the case.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def given():
    return torch.tensor([1 + 1j]), torch.tensor([2 + 1j])


def step(start, end):
    return torch.lerp(start, end, 0.5 + 0.5j)


torch._inductor.config.force_disable_caches = True
step(*given())
try:
    torch.compile(step, fullgraph=True)(*given())
except Exception as error:
    print(f"FAILS: torch.compile raises {type(error).__name__}: {' '.join(str(error).split())[:200]}")
    sys.exit(1)
print("the failure does not show")
