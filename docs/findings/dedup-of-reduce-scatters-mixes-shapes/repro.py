"""dedup_fsdp_reduce_scatter adds the inputs of two reduce-scatters of different shapes: they broadcast in another way
than the results do.

Pass dedup_fsdp_reduce_scatter, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

torch.compile in two processes (gloo). Each rank adds its one element of the first to its row of the second; after
the pass the two elements are spread over the columns before they are scattered.
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
SETTINGS = {"dedup_reduce_scatters": True}


def scatter(x, group):
    return OPS.wait_tensor(OPS.reduce_scatter_tensor(x, "sum", 2, group))


def step(x, y, group):
    return (scatter(x, group) + scatter(y, group),)


def run(rank, path, failed):
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
    inputs = torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dist.group.WORLD.group_name
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
    if not hasattr(config, "dedup_reduce_scatters"):
        print("this torch has no dedup_reduce_scatters")
        sys.exit(2)
    with tempfile.TemporaryDirectory() as folder, mp.Manager() as manager:
        failed = manager.dict()
        mp.spawn(run, (f"{folder}/store", failed), nprocs=2)
        if failed:
            sys.exit(1)
    print("the failure does not show")
