"""Graphs of the oracle as modules of torch, in the world that they name.

with rebuilt(graph) as module:          # a GraphModule with fake tensors, as rank 0 of a fake process group
    my_pass(module)

with fake_world(ranks=8, rank=3):       # this process as one of eight ranks; nothing communicates
    torch.compile(model)(x)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed as dist
from torch import fx

from .._oracle import CannotJudge, Graph
from ..judge import load
from . import groups, rebuild
from .capture import fake_world
from .errors import Refused

__all__ = ["fake_world", "rebuilt"]


@contextmanager
def rebuilt(graph: Graph | str | os.PathLike[str], rank: int = 0) -> Iterator[fx.GraphModule]:
    """The graph as a GraphModule with fake tensors as metadata, as `rank` of the world that it names; of a world of
    one, where it names none and no node uses a process group.

    The process groups of that world exist until the block ends. Raises CannotJudge where this torch cannot hold the
    graph, and where this process has process groups already.
    """
    if dist.is_initialized() and not groups.are_ours():
        raise CannotJudge(
            "this process has a process group: a graph is rebuilt in one of its own (destroy_process_group)"
        )
    if type(rank) is not int:
        raise CannotJudge(f"the rank is a number, and not {rank!r}")
    given = graph if isinstance(graph, Graph) else load(graph)
    try:
        try:
            made = rebuild.rebuild(json.loads(given.json()), rank, after="carried")
        except Refused as refused:
            raise CannotJudge(f"the graph cannot be rebuilt: {refused.reason}") from None
        yield made.module
    finally:
        groups.leave()
