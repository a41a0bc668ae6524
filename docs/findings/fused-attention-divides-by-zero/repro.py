"""Attention whose scores are divided by 0 compiles to ZeroDivisionError: the pattern computes 1 / 0 in Python.

Pass _sfdp_pattern_1 of fuse_attention, as torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, else 0.

Any other divisor compiles.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")
given = torch.ones(3, 1, 1, 2, 4).unbind()


def step(q, k, v, divisor):
    return torch.softmax(q @ k.transpose(-2, -1) / divisor, dim=-1) @ v


for divisor in (2.0, 0.0):
    torch._dynamo.reset()
    step(*given, divisor)
    try:
        torch.compile(step, fullgraph=True, dynamic=False)(*given, divisor)
    except Exception as error:
        if divisor:
            raise
        print(f"FAILS: torch.compile raises {type(error).__name__}: {str(error).splitlines()[1]}")
        sys.exit(1)
print("the failure does not show")
