"""A small transformer in the manner of Llama (RMS norms, rotary embedding, grouped heads, gated MLP), one training
step.

python -m graph_oracle.pytorch capture examples/llama.py:sharded --ranks 4 -o graphs
"""

import os
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, os.path.dirname(__file__))
from sharding import shard, world_mesh  # noqa: E402

DIM, HEADS, GROUPS, HIDDEN, WORDS, TOKENS = 16, 4, 2, 32, 32, 8


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(DIM))

    def forward(self, x):
        scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5)
        return (x.float() * scale).type_as(x) * self.weight


def rotated(x, cos, sin):
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2).type_as(x)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        head = DIM // HEADS
        self.q = nn.Linear(DIM, DIM, bias=False)
        self.k = nn.Linear(DIM, GROUPS * head, bias=False)
        self.v = nn.Linear(DIM, GROUPS * head, bias=False)
        self.o = nn.Linear(DIM, DIM, bias=False)

    def forward(self, x, cos, sin):
        batch, tokens, _ = x.shape
        q = rotated(self.q(x).view(batch, tokens, HEADS, -1).transpose(1, 2), cos, sin)
        k = rotated(self.k(x).view(batch, tokens, GROUPS, -1).transpose(1, 2), cos, sin)
        v = self.v(x).view(batch, tokens, GROUPS, -1).transpose(1, 2)
        k, v = (part.repeat_interleave(HEADS // GROUPS, 1) for part in (k, v))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(seen.transpose(1, 2).reshape(batch, tokens, DIM))


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(DIM, HIDDEN, bias=False)
        self.up = nn.Linear(DIM, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.mlp, self.before, self.between = Attention(), Gated(), Norm(), Norm()

    def forward(self, x, cos, sin):
        x = x + self.attention(self.before(x), cos, sin)
        return x + self.mlp(self.between(x))


class Llama(nn.Module):
    def __init__(self, layers=2, recompute=True):
        super().__init__()
        self.words = nn.Embedding(WORDS, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm, self.head = Norm(), nn.Linear(DIM, WORDS, bias=False)
        self.recompute = recompute
        angles = torch.outer(torch.arange(TOKENS), 1.0 / 100 ** (torch.arange(0, DIM // HEADS, 2) / (DIM // HEADS)))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, tokens):
        x = self.words(tokens)
        for block in self.blocks:
            if self.recompute:
                x = checkpoint(block, x, self.cos, self.sin, use_reentrant=False)
            else:
                x = block(x, self.cos, self.sin)
        return self.head(self.norm(x))


def step(model):
    tokens = torch.randint(0, WORDS, (2, TOKENS))

    @torch.compile(fullgraph=True)
    def loss(tokens):
        return F.cross_entropy(model(tokens).flatten(0, 1).float(), tokens.flatten())

    loss(tokens).backward()


def single():
    """On one rank."""
    step(Llama())


def sharded():
    """Sharded over all ranks, computed in bfloat16; each layer is recomputed in the backward."""
    step(shard(Llama(), world_mesh(), torch.bfloat16))


def sharded_saved():
    """The same without recomputation, in float32."""
    step(shard(Llama(recompute=False), world_mesh()))
