"""A region that asks whether its argument is a Parameter is used again for one that is none.

torch.compile with torch.compiler.nested_compile_region, against eager mode.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if this torch has no such regions.
"""

import pathlib
import sys

import torch

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from regions import compare, region

@region
def scaled(x):
    return x * (2 if isinstance(x, torch.nn.Parameter) else 3)


def step(x, y):
    return scaled(x), scaled(y)


def make():
    return torch.nn.Parameter(torch.randn(4)), torch.randn(4, requires_grad=True)


compare(step, make)
