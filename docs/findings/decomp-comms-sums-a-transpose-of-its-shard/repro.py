"""The decomposition of communication takes dimension 0 for the sharded one behind a transpose too: a sum over the rows
of a transpose stays that of one shard.

Pass decomp_comms, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

torch.compile in two processes (gloo). The sum goes over all gathered rows; after the pass each rank has that of its
own rows.
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
    second = second * whole.t().sum(1)
    return (second.split(2)[rank].clone(),)  # As an optimizer does: each rank keeps its own rows.


if __name__ == "__main__":
    compare(step)
