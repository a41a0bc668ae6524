"""A small mixture of experts: each rank holds one expert, tokens travel to it and back; everything else is sharded.

python -m graph_oracle.pytorch capture examples/experts.py:sharded --ranks 4 -o graphs
"""

import os
import sys

import torch
from torch import nn
from torch.distributed._functional_collectives import all_to_all_single_autograd
from torch.nn import functional as F

sys.path.insert(0, os.path.dirname(__file__))
from sharding import shard, world_mesh  # noqa: E402

DIM, HIDDEN, TOKENS = 16, 32, 16


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(DIM, HIDDEN), nn.Linear(HIDDEN, DIM)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Experts(nn.Module):
    """Every expert gets the same number of tokens: those that score highest for it."""

    def __init__(self, mesh):
        super().__init__()
        self.mesh, self.ranks = mesh, mesh.size()
        self.router, self.expert, self.shared = nn.Linear(DIM, mesh.size(), bias=False), Expert(), Expert()

    def forward(self, x):
        scores = self.router(x).softmax(-1)
        each = TOKENS // self.ranks
        best, chosen = scores.t().topk(each, -1)
        sent = x[chosen.flatten()]
        splits = [each] * self.ranks
        received = all_to_all_single_autograd(sent, splits, splits, self.mesh)
        returned = all_to_all_single_autograd(self.expert(received), splits, splits, self.mesh)
        weighted = returned * best.flatten().unsqueeze(-1)
        return x + self.shared(x) + torch.zeros_like(x).index_add(0, chosen.flatten(), weighted)


class Model(nn.Module):
    def __init__(self, mesh, layers=2):
        super().__init__()
        self.layers = nn.ModuleList(Experts(mesh) for _ in range(layers))
        self.norm = nn.LayerNorm(DIM)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


def sharded():
    mesh = world_mesh()
    model = Model(mesh)
    # The experts differ from rank to rank and stay whole; the rest is the same everywhere.
    for layer in model.layers:
        shard(layer.router, mesh)
        shard(layer.shared, mesh)
    shard(model.norm, mesh)

    @torch.compile(fullgraph=True)
    def loss(x):
        return model(x).square().mean()

    loss(torch.randn(TOKENS, DIM, requires_grad=True)).backward()
