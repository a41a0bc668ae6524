"""The world of a case: its ranks and its process groups, as fake process groups.

`enter(document, rank)` makes this process rank `rank` of the world that the document describes, with a process group
under each of the recorded names, so that operators resolve them. Nothing communicates. The groups stay as they are
until another world or another rank is asked for: changing them takes less than a millisecond.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeAlias

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d
from torch.testing._internal.distributed.fake_pg import FakeStore

from .errors import Refused

# By group name, its ranks in order.
Groups: TypeAlias = dict[str, tuple[int, ...]]


def groups_of(document: dict[str, Any]) -> dict[str, Any]:
    """The process groups of a document. None if no node names one and the world is not known: they were those of the
    process that the graph was recorded in, and nothing depends on them."""
    groups: dict[str, Any] = document.get("groups") or {}
    is_known = (document.get("world") or {}).get("ranks") is not None
    if is_known or any(_names(node.get(key), groups) for node in document["nodes"] for key in ("args", "kwargs")):
        return groups
    return {}


def _names(value: Any, groups: dict[str, Any]) -> bool:
    """Whether a group is named among the arguments."""
    if isinstance(value, (list, dict)):
        return any(_names(one, groups) for one in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and value in groups


def world_size(document: dict[str, Any]) -> int:
    """How many ranks there are."""
    ranks = (document.get("world") or {}).get("ranks")
    if ranks is None and not groups_of(document):
        return 1
    if ranks is None:
        raise Refused("the graph does not say how many ranks there are (world)")
    if type(ranks) is not int or ranks < 1:
        raise Refused(f"a world of {ranks} ranks")
    return ranks


def members(document: dict[str, Any], rank: int) -> Groups:
    """By group name, the ranks of the instance that holds `rank`, in order."""
    size = world_size(document)
    found: Groups = {}
    if not 0 <= rank < size:
        raise Refused(f"rank {rank} is not one of the {size} ranks of the world")
    for name, group in groups_of(document).items():
        instances = group.get("ranks")
        if instances is None:
            raise Refused(f"group {name} has no rank lists")
        seen = [r for instance in instances for r in instance]
        if len(set(seen)) != len(seen):
            raise Refused(f"group {name} lists a rank twice")
        if any(not 0 <= r < size for r in seen):
            raise Refused(f"group {name} has ranks that the world has not")
        if "size" in group and any(len(instance) != group["size"] for instance in instances):
            raise Refused(f"group {name} says size {group['size']} and lists other sizes")
        own = [instance for instance in instances if rank in instance]
        # A rank outside a group may hold graphs that do not use it; a use is refused where it is met.
        if own:
            found[name] = tuple(own[0])
    return found


_current: tuple[int, int, tuple[tuple[str, tuple[int, ...]], ...]] | None = None
_instances: dict[str, list[list[int]]] = {}


def enter(document: dict[str, Any], rank: int) -> Groups:
    """Makes this process `rank` of the document's world. Returns the groups by name, as `members`."""
    global _current, _instances
    size, groups = world_size(document), members(document, rank)
    key = (size, rank, tuple(sorted(groups.items())))
    if key != _current:
        leave()
        _make(size, rank, groups)
        _current = key
        _instances = {name: group["ranks"] for name, group in groups_of(document).items()}
    return groups


def instances(name: str) -> list[list[int]] | None:
    """All instances of a group of the world that `enter` made; None for any other group."""
    return _instances.get(name) if _current is not None else None


def are_ours() -> bool:
    """Whether the process groups that there are were made by `enter`."""
    return _current is not None


def leave() -> None:
    """Ends the process groups that `enter` made."""
    global _current, _instances
    _current, _instances = None, {}
    if dist.is_initialized():
        dist.destroy_process_group()


def _make(size: int, rank: int, groups: Groups) -> None:
    store = FakeStore()
    dist.init_process_group("fake", store=store, rank=rank, world_size=size)
    # Names are a type of their own to PyTorch, in some versions.
    world: Any = c10d._world
    make: Any = c10d._new_process_group_helper
    default = c10d._get_default_group()
    taken = world.pg_names[default]
    if taken in groups:
        # The whole world has a name of its own, which a recorded group may have too.
        if groups[taken] == tuple(range(size)):
            groups = {name: ranks for name, ranks in groups.items() if name != taken}
        else:
            c10d._unregister_process_group(taken)
            world.pg_names[default] = "graph-oracle: the world"
    for name, ranks in groups.items():
        # `new_group` would choose the name, and sort the ranks.
        group, _ = make(len(ranks), ranks.index(rank), list(ranks), "fake", store, name, timeout=timedelta(minutes=1))
        world.pg_group_ranks[group] = {r: index for index, r in enumerate(ranks)}
