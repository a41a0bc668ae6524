"""A region that is called with tied parameters changes the values of an earlier call with two parameters.

torch.compile with torch.compiler.nested_compile_region, against eager mode.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if this torch has no such regions.
"""

import pathlib
import sys

import torch

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from regions import compare, region

class Weighted(torch.nn.Module):
    def __init__(self, one, other):
        super().__init__()
        self.one, self.other = one, other

    def forward(self, x):
        return x * self.one + self.other.sin()


@region
def layer(module, x):
    return module(x)


def step(modules, x):
    return layer(modules[0], x), layer(modules[1], x)


def make():
    one, other, tied = (torch.nn.Parameter(torch.randn(4)) for _ in range(3))
    return torch.nn.ModuleList([Weighted(one, other), Weighted(tied, tied)]), torch.randn(4, requires_grad=True)


compare(step, make)
