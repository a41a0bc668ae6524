"""A region that is first called with one tensor for both arguments ignores the second argument of later calls.

torch.compile with torch.compiler.nested_compile_region, against eager mode.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if this torch has no such regions.
"""

import pathlib
import sys

import torch

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from regions import compare, region

@region
def weighted(x, y):
    return x * 2 + y.sin()


def step(x, y):
    return weighted(x, x), weighted(x, y)


def make():
    return torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)


compare(step, make)
