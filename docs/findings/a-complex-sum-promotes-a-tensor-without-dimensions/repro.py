"""complex64 plus a complex128 without dimensions is complex64, and complex128 once compiled.

Pass decomposition of add.
torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

Here the dtype of the result is another one.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def given():
    return torch.tensor([1 + 1j]), torch.tensor(1 + 1j, dtype=torch.complex128)


def step(x, y):
    return x + y


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
