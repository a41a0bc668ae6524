"""Attention with a mask of one dimension, which adds to every row, compiles to IndexError once it is fused.

Pass _sfdp_pattern_5 of fuse_attention.
torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

In eager mode it is broadcast.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def given():
    query, key, value = torch.ones(3, 1, 3, 4, 8).unbind()
    return query, key, value, torch.zeros(4)


def step(query, key, value, mask):
    return torch.softmax(query @ key.transpose(-2, -1) / 8**0.5 + mask, dim=-1) @ value


torch._inductor.config.force_disable_caches = True
step(*given())
try:
    torch.compile(step, fullgraph=True)(*given())
except Exception as error:
    print(f"FAILS: torch.compile raises {type(error).__name__}: {' '.join(str(error).split())[:200]}")
    sys.exit(1)
print("the failure does not show")
