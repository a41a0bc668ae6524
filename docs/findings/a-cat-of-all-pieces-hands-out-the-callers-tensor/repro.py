"""cat() of the pieces of split() becomes the tensor that was split: the caller's, which is written afterwards.

Pass splitwithsizes_cat_replace of the post-grad patterns.
torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/aliases.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

Without the write inside, the result still shares the caller's memory.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def given():
    return (torch.ones(2, 3),)


def step(x):
    copy = torch.cat(x.split([1, 2], 1), 1)
    x.add_(1)
    return copy


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
