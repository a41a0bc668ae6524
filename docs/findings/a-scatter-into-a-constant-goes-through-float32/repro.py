"""A scatter of a number into a constant becomes where() of two numbers: float64 and int64 go through float32.

Pass scatter_upon_const_tensor, as torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0.

A whole number is off by one.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def step(index):
    return torch.full((1, 2), 2**30 + 1, dtype=torch.int64).scatter(1, index, 1.0)


torch._inductor.config.force_disable_caches = True
eager = step(torch.tensor([[0]]))
compiled = torch.compile(step, fullgraph=True)(torch.tensor([[0]]))
if eager.tolist() != compiled.tolist():
    print(f"FAILS: torch.compile returns {compiled.tolist()}, and eager mode {eager.tolist()}")
    sys.exit(1)
print("the failure does not show")
