"""What the scripts on `decomp_comms` share: a function compiled in two processes (gloo), against eager mode in each.

Needs torch alone. A script calls `compare(step, ...)` under `if __name__ == "__main__"`: the processes import it anew.
"""

import sys
import tempfile
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch._inductor import config

warnings.filterwarnings("ignore")
SETTINGS = {"aten_distributed_optimizations.allow_comms_decompositions": True}


def run(rank, path, failed, step):
    """One rank: `step` takes its tensor, the name of the group, and the rank, and returns tensors."""
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


def compare(step):
    """Ends with status 1 if a rank gets something else than in eager mode, 2 if this torch has not the pass."""
    if not hasattr(config.aten_distributed_optimizations, "allow_comms_decompositions"):
        print("this torch has no allow_comms_decompositions")
        sys.exit(2)
    with tempfile.TemporaryDirectory() as folder, mp.Manager() as manager:
        failed = manager.dict()
        mp.spawn(run, (f"{folder}/store", failed, step), nprocs=2)
        if failed:
            sys.exit(1)
    print("the failure does not show")
