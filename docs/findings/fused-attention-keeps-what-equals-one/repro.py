"""A mask that is 0 where attention is hidden keeps only what equals 1 once it is fused: 2 is hidden too.

Pass _sfdp_pattern_15 of fuse_attention.
torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

Masks of packed sequences number them 1, 2, 3. All is attended to here, and the mean is 1.5.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def given():
    query, key, value = torch.zeros(3, 2, 4, 3, 8).unbind()
    return query, key, value + torch.arange(4.0).view(4, 1, 1), torch.tensor([[1, 1, 2, 2], [1, 1, 2, 2]])


def step(query, key, value, mask):
    query, key, value = (x.permute(0, 2, 1, 3) for x in (query, key, value))
    scores = (query @ key.transpose(-2, -1)).div(8**0.5)
    hidden = (mask == 0).view(mask.size(0), 1, 1, key.size(-2)).expand_as(scores)
    fill = torch.full((), -float("inf"), dtype=query.dtype, device=query.device)
    return (torch.softmax(scores.masked_fill(hidden, fill), dim=-1) @ value).mean()


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
