"""A region that is first called with one module for two arguments takes one of two modules for both later.

torch.compile with torch.compiler.nested_compile_region, against eager mode.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if this torch has no such regions.
"""

import pathlib
import sys

import torch

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from regions import compare, region

@region
def difference(x, one, other):
    return one(x) - 2 * other(x)


def step(x, modules):
    return difference(x, modules[0], modules[0]), difference(x, modules[0], modules[1])


def make():
    return torch.randn(2, 4, requires_grad=True), torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(2))


compare(step, make)
