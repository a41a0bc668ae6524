"""The fusion of a gather with a product takes the pieces of the gather in whatever order they are concatenated for
that of the ranks.

Pass micro_pipeline_tp_pass, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

The pass on a traced graph, run in two processes (gloo). The pieces are concatenated in the opposite order; after
the pass they are in that of the ranks.
"""

import sys
import tempfile
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch._inductor.fx_passes.micro_pipeline_tp import micro_pipeline_tp_pass
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed import _symmetric_memory as symmetric
from torch.fx.experimental.proxy_tensor import make_fx

warnings.filterwarnings("ignore")
OPS, ATEN = torch.ops._c10d_functional, torch.ops.aten
CPU = torch.library.Library("symm_mem", "IMPL")
CPU.impl("fused_all_gather_matmul", symmetric._fused_all_gather_matmul, "CPU")
CPU.impl("fused_matmul_reduce_scatter", symmetric._fused_matmul_reduce_scatter, "CPU")


def step(x, weights, group):
    first, second = OPS.wait_tensor(OPS.all_gather_into_tensor(x, 2, group)).split(2)
    return ATEN.cat.default([second, first], 1) @ weights


def run(rank, path, failed):
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
    group = dist.group.WORLD.group_name
    inputs = torch.arange(2 * 1024.0).reshape(2, 1024) / 1024 + rank, torch.arange(2048.0).reshape(2048, 1) / 1024
    with FakeTensorMode() as mode:
        module = make_fx(lambda *args: step(*args, group))(*map(mode.from_tensor, inputs))
    eager = module(*inputs)
    with symmetric._test_mode():  # As in PyTorch's own tests: fallbacks, and no memory that devices share.
        micro_pipeline_tp_pass(module.graph)
        module.recompile()
        found = module(*inputs)
    if not torch.allclose(eager, found):
        print(f"FAILS: rank {rank} gets {found.tolist()}, and before the pass {eager.tolist()}", flush=True)
        failed[rank] = True
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, mp.Manager() as manager:
        failed = manager.dict()
        mp.spawn(run, (f"{folder}/store", failed), nprocs=2)
        if failed:
            sys.exit(1)
    print("the failure does not show")
