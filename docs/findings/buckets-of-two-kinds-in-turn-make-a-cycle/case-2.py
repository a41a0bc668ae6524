"""In the mode custom_ops buckets that depend on each other raise nothing: reduce-scatters send what gathers have yet to bring.

Pass bucketing with kind=all mode=custom_ops, PyTorch 2.15.0; breaks bucket/contracted-acyclic.
Needs torch alone. Exit status 1 if the failure shows, else 0.

torch.compile of four collectives on two processes over gloo, with Inductor's options to bucket, against eager mode.
"""

import sys
import tempfile
import warnings

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
import torch.multiprocessing as multiprocessing
from torch._inductor import config

warnings.filterwarnings("ignore")


def step(a, b):
    group = dist.group.WORLD
    scattered = collectives.wait_tensor(collectives.reduce_scatter_tensor(a, "sum", 0, group))
    first = collectives.wait_tensor(collectives.all_gather_tensor(scattered, 0, group))
    gathered = collectives.wait_tensor(collectives.all_gather_tensor(b, 0, group))
    second = collectives.wait_tensor(collectives.reduce_scatter_tensor(gathered, "sum", 0, group))
    return first, second


def process(rank, store, told):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    options = {"bucket_reduce_scatters_fx": "all", "bucket_all_gathers_fx": "all", "force_disable_caches": True}
    with config.patch(options | {"bucket_all_gathers_bucket_mode": "custom_ops"}):
        compiled = torch.compile(step, fullgraph=True)
        # Values that have not been in memory before.
        for start in (1.0, 10.0, 100.0):
            a, b = torch.full([2, 3], start + rank), torch.full([2, 3], 5 * start + rank)
            for index, (x, y) in enumerate(zip(compiled(a, b), step(a, b))):
                if not torch.equal(x, y):
                    told.put(f"value {index} is {x.tolist()}, and eager mode gives {y.tolist()}")
    dist.destroy_process_group()


if __name__ == "__main__":
    if not hasattr(config, "bucket_all_gathers_bucket_mode"):
        print("this torch has no bucket_all_gathers_bucket_mode")
        sys.exit(2)
    told = multiprocessing.get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(process, (f"{folder}/store", told), nprocs=2)
    if not told.empty():
        print(f"FAILS: {told.get()}")
        sys.exit(1)
    print("the failure does not show")
