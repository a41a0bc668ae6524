"""torch.tanh(cat(), out=buffer) becomes several that write the same buffer: compiling raises RuntimeError.

Pass sink_cat_after_pointwise before gradients.
torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

out= is copied with the other arguments by name.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def given():
    return torch.ones(2), torch.ones(2), torch.zeros(4)


def step(x, y, buffer):
    return torch.tanh(torch.cat([x, y]), out=buffer)


torch._inductor.config.force_disable_caches = True
step(*given())
try:
    torch.compile(step, fullgraph=True)(*given())
except Exception as error:
    print(f"FAILS: torch.compile raises {type(error).__name__}: {' '.join(str(error).split())[:200]}")
    sys.exit(1)
print("the failure does not show")
