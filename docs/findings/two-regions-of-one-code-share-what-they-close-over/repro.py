"""Two modules of one class, each made a region: the second computes with the weights of the first.

torch.compile with torch.compiler.nested_compile_region, against eager mode.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if this torch has no such regions.
"""

import pathlib
import sys

import torch

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from regions import compare, region

torch.manual_seed(1)
first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
one, other = region(first), region(second)


def step(x):
    return one(x), other(x)


def make():
    return (torch.randn(2, 4, requires_grad=True),)


compare(step, make)
