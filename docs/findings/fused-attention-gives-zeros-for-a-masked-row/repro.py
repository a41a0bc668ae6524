"""Attention with a row that is masked throughout is NaN in eager mode and 0 once it is fused.

Pass _sfdp_pattern_5 of fuse_attention, as torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0.

A mask of -inf throughout, as padding makes it.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def step(q, k, v, mask):
    return torch.softmax(q @ k.transpose(-2, -1) / 2.0 + mask, dim=-1) @ v


torch._inductor.config.force_disable_caches = True
given = [*torch.ones(3, 1, 1, 2, 4).unbind(), torch.tensor([[0.0, 0.0], [-torch.inf, -torch.inf]])]
eager, compiled = step(*given), torch.compile(step, fullgraph=True)(*given)
if not torch.allclose(eager, compiled, equal_nan=True):
    print(f"FAILS: torch.compile returns {compiled.tolist()}, and eager mode {eager.tolist()}")
    sys.exit(1)
print("the failure does not show")
