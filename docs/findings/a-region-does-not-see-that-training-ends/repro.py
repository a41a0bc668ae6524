"""A region is used again though module.eval() was called in between: the second call is in training mode.

torch.compile with torch.compiler.nested_compile_region, against eager mode.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if this torch has no such regions.
"""

import pathlib
import sys

import torch

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from regions import compare, region

@region
def scaled(module, x):
    return module(x) * (2 if module.training else 3)


def step(module, x):
    trained = scaled(module, x)
    module.eval()
    return trained, scaled(module, x)


def make():
    return torch.nn.Linear(4, 4), torch.randn(2, 4, requires_grad=True)


compare(step, make)
