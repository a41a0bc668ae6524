"""The decomposition of communication ends with AttributeError where a piece of chunk() or split() is multiplied.

Pass decomp_comms, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, else 0.

torch.compile of two products.
"""

import sys
import warnings

import torch
from torch._inductor import config

warnings.filterwarnings("ignore")


def step(x, w):
    first, second = x.chunk(2, dim=1)
    return first @ w, second @ w


for setting in (False, True):
    torch._dynamo.reset()
    with config.patch({"aten_distributed_optimizations.allow_comms_decompositions": setting, "force_disable_caches": True}):
        try:
            torch.compile(step, fullgraph=True)(torch.ones(4, 4), torch.ones(2, 2))
        except Exception as error:
            if not setting:
                raise
            print(f"FAILS: torch.compile raises {type(error).__name__}: {str(error).splitlines()[0]}")
            sys.exit(1)
print("the failure does not show")
