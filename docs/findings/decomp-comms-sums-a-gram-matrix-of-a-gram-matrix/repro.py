"""The decomposition of communication takes the Gram matrix of a Gram matrix for that of shards and sums it over the
ranks.

Pass decomp_comms, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

torch.compile in two processes (gloo). gram is the same on all ranks; the product of it with itself is summed over
the ranks all the same.
"""

import sys
import tempfile
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch._inductor import config

warnings.filterwarnings("ignore")
OPS = torch.ops._c10d_functional
SETTINGS = {"aten_distributed_optimizations.allow_comms_decompositions": True}


def step(x, group, rank):
    whole = OPS.wait_tensor(OPS.all_gather_into_tensor(x, 2, group))
    first = whole @ (whole.t() @ whole)
    gram = first.t() @ first
    second = first @ gram
    second = first @ (gram.t() @ gram)
    return (second.split(2)[rank].clone(),)  # As an optimizer does: each rank keeps its own rows.


def run(rank, path, failed):
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
    inputs = torch.arange(1.0, 7).reshape(2, 3) / 8 * (rank + 1), dist.group.WORLD.group_name, rank
    eager = step(*inputs)
    with config.patch(SETTINGS | {"force_disable_caches": True, "compile_threads": 1}):
        found = torch.compile(step, fullgraph=True)(*inputs)
    for one, other in zip(eager, found):
        if one.dtype != other.dtype or not torch.allclose(one, other):
            print(f"FAILS: rank {rank} gets {other}, in eager mode {one}".replace("\n", ""), flush=True)
            failed[rank] = True
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    if not hasattr(config.aten_distributed_optimizations, "allow_comms_decompositions"):
        print("this torch has no allow_comms_decompositions")
        sys.exit(2)
    with tempfile.TemporaryDirectory() as folder, mp.Manager() as manager:
        failed = manager.dict()
        mp.spawn(run, (f"{folder}/store", failed), nprocs=2)
        if failed:
            sys.exit(1)
    print("the failure does not show")
