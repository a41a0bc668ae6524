"""A region that is run twice, and once without a backward, cannot be compiled: its calls are paired by their number.

torch.compile with torch.compiler.nested_compile_region, against eager mode.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if this torch has no such regions.
"""

import pathlib
import sys

import torch

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from regions import compare, region


@region
def sine(x, w):
    return torch.sin(x * w)


def step(x, z, w):
    target = sine(z, w).detach()
    return ((sine(x, w) - target).pow(2).sum(),)


def make():
    return tuple(torch.randn(4, requires_grad=True) for _ in range(3))


compare(step, make)
