"""Fully sharded data parallelism that torch.compile sees: each parameter is a DTensor shard that is gathered where it
is used (as in SimpleFSDP of torchtitan). FSDP2's own hooks run outside of the compiled graphs."""

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from torch.nn.utils import parametrize


class Gathered(nn.Module):
    """What a module sees of a sharded parameter: all of it, in the dtype to compute with."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, shard):
        if self.dtype is not None:
            shard = shard.to(self.dtype)
        whole = shard.redistribute(placements=[Replicate()])
        return whole.to_local(grad_placements=[Partial("avg")])


def shard(model, mesh, dtype=None):
    """Shards every parameter of a model over a mesh of one axis."""
    for module in list(model.modules()):
        if isinstance(module, Gathered) or parametrize.is_parametrized(module):
            continue
        for name, parameter in list(module.named_parameters(recurse=False)):
            sharded = distribute_tensor(parameter.detach(), mesh, [Shard(0)])
            module.register_parameter(name, nn.Parameter(sharded, requires_grad=parameter.requires_grad))
            # The parametrized value is no DTensor, which register_parametrization would refuse without `unsafe`.
            parametrize.register_parametrization(module, name, Gathered(dtype), unsafe=True)
    return model


def mesh(ranks):
    return init_device_mesh("cpu", (ranks,), mesh_dim_names=("dp",))


def world_mesh():
    return mesh(torch.distributed.get_world_size())
