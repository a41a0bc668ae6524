"""A region that is called both alone and inside another region cannot be compiled.

torch.compile with torch.compiler.nested_compile_region, against eager mode.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if this torch has no such regions.
"""

import pathlib
import sys

import torch

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from regions import compare, region

@region
def inner(x):
    return x.sin()


@region
def outer(x):
    return inner(x) * inner(x.cos())


def step(x):
    return outer(x), inner(x), outer(outer(x))


def make():
    return (torch.randn(4, requires_grad=True),)


compare(step, make)
