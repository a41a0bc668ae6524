"""A region that is called with and without autocast is compiled once: one of the calls has the other's dtypes.

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
    return torch.mm(x, w).sin()


def step(x, w):
    plain = product(x, w)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = product(x, w)
    return plain, cast


def make():
    return torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)


compare(step, make)
