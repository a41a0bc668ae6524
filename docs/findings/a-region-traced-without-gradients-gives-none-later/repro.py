"""A region that runs first under no_grad is used again in grad mode: the result requires no gradient.

torch.compile with torch.compiler.nested_compile_region, against eager mode.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if this torch has no such regions.
"""

import pathlib
import sys

import torch

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from regions import compare, region

@region
def product(x, w):
    return torch.sin(x * w)


def step(x, w):
    with torch.no_grad():
        target = product(x, w)
    return product(x, w), target


def make():
    return torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)


compare(step, make)
