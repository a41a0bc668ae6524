"""The fusion of DDP's communication puts all-reduces with different operations into one, with the operation of the
last: a maximum becomes a sum.

Pass fuse_ddp_communication, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

torch.compile in two processes (gloo).
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
SETTINGS = {"_fuse_ddp_communication": True}


def step(x, y, group):
    first = OPS.all_reduce(x / 2, "max", group)
    second = OPS.all_reduce(y / 2, "sum", group)
    return OPS.wait_tensor(first), OPS.wait_tensor(second)


def run(rank, path, failed):
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
    inputs = torch.ones(4) * (rank + 1), torch.ones(3), dist.group.WORLD.group_name
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
    if not hasattr(config, "_fuse_ddp_communication"):
        print("this torch has no _fuse_ddp_communication")
        sys.exit(2)
    with tempfile.TemporaryDirectory() as folder, mp.Manager() as manager:
        failed = manager.dict()
        mp.spawn(run, (f"{folder}/store", failed), nprocs=2)
        if failed:
            sys.exit(1)
    print("the failure does not show")
