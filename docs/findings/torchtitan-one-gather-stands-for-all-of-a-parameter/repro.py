"""The deduplication of FSDP's gathers takes all that is computed from one parameter for the same value.

torchtitan 0.3.0 and PyTorch 2.15.0. Exit status 1 if the failure shows, 0 if not, 2 if it cannot be shown here.

A layer scales its weight for one product and not for the other. Two ranks (gloo) run the traced step before and after
the pass, which graph_trainer runs by default.
"""

import sys
import tempfile
import warnings

import torch
import torch.distributed as dist

warnings.filterwarnings("ignore")
try:
    from torch.distributed.device_mesh import init_device_mesh
    from torchtitan.experiments.graph_trainer.fsdp_passes import deduplicate_fsdp_unshard_chains_pass
    from torchtitan.experiments.graph_trainer.make_fx_tracer import minimal_fx_tracer, run_traced
    from torchtitan.experiments.graph_trainer.simple_fsdp import data_parallel
except ImportError as error:
    print(f"not shown: {error}")
    sys.exit(2)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(4))

    def forward(self, x):
        return (x @ self.weight + x @ (self.weight * 0.5)).sum()


def rank(number, path, results):
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=number, world_size=2)
    model = data_parallel(Layer(), init_device_mesh("cpu", (2,), mesh_dim_names=("fsdp",)), "fully_shard")
    x = torch.ones(2, 4)

    def step(x):
        loss = model(x)
        return [loss, *torch.autograd.grad(loss, list(model.parameters()))]

    traced = minimal_fx_tracer(step, module=model)(x)
    before = run_traced(traced, module=model)(x)
    deduplicate_fsdp_unshard_chains_pass(traced.gm)
    after = run_traced(traced, module=model)(x)
    results[number] = (before[0].item(), after[0].item())


if __name__ == "__main__":
    with torch.multiprocessing.Manager() as manager, tempfile.TemporaryDirectory() as folder:
        results = manager.dict()
        torch.multiprocessing.spawn(rank, (f"{folder}/store", results), nprocs=2)
        before, after = results[0]
    if before != after:
        print(f"FAILS: the loss is {after}, and before the pass it was {before}")
        sys.exit(1)
    print("the failure does not show")
