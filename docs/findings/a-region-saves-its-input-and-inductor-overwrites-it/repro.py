"""A region saves its input for backward; Inductor takes that memory for free and overwrites it: wrong gradients.

torch.compile with torch.compiler.nested_compile_region, against eager mode.
Needs torch alone. Exit status 1 if the failure shows, else 0; 2 if this torch has no such regions.
"""

import pathlib
import sys

import torch

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from regions import compare, region


@region
def sine(x):
    return x.sin()


def step(x):
    return (sine(x) * sine(x.cos()),)


def make():
    return (torch.tensor([0.1, 0.5, 1.0, 2.0], requires_grad=True),)


compare(step, make, "inductor")
