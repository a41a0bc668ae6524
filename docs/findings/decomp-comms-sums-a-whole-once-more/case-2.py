"""The decomposition of communication takes the Gram matrix of a Gram matrix for that of shards and sums it over the
ranks.

Pass decomp_comms, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

torch.compile in two processes (gloo). gram is the same on all ranks; the product of it with itself is summed over
the ranks all the same.
"""

import pathlib
import sys

import torch

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from processes import compare

OPS = torch.ops._c10d_functional


def step(x, group, rank):
    whole = OPS.wait_tensor(OPS.all_gather_into_tensor(x, 2, group))
    first = whole @ (whole.t() @ whole)
    gram = first.t() @ first
    second = first @ gram
    second = first @ (gram.t() @ gram)
    return (second.split(2)[rank].clone(),)  # As an optimizer does: each rank keeps its own rows.


if __name__ == "__main__":
    compare(step)
