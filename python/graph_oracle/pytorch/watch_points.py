"""Where Inductor runs its passes, for `watch`: the functions that are passes, what a pass is called, and no caches."""

from __future__ import annotations

import functools
from typing import Any

import torch

from .hooks import name_of

BUCKETING = {
    "torch._inductor.fx_passes.bucketing": ["bucket_all_gather", "bucket_reduce_scatter", "bucket_all_reduce"],
    "torch._inductor.fx_passes.fsdp": [
        "bucket_fsdp_all_gather",
        "bucket_fsdp_reduce_scatter",
        "bucket_fsdp_all_reduce",
        "pre_bucket_fsdp_collectives",
    ],
}
PARTITIONERS = {
    "torch._functorch.partitioners": ["default_partition", "min_cut_rematerialization_partition"],
}
SORTS = {"torch._inductor.pattern_matcher": ["stable_topological_sort"]}


def without_caches(function: Any) -> Any:
    """A function that compiles, with all caches of compiled graphs off for its time."""
    import torch._functorch.config as functorch

    @functools.wraps(function)
    def uncached(*args: Any, **kwargs: Any) -> Any:
        caches = {"fx_graph_cache": False, "fx_graph_remote_cache": False}
        with torch._inductor.config.patch(caches), functorch.patch(enable_autograd_cache=False):
            return function(*args, **kwargs)

    return uncached


class Named:
    """A callable with a name: objects that are called have none."""

    def __init__(self, function: Any) -> None:
        self.function, self.__name__ = function, name_of(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def observed(observer: Any) -> str:
    """What a pass of the observer is called: with its subsystem, and where a hook has many with the function's name."""
    name = str(observer.passname)
    function = getattr(observer, "_graph_oracle_pass", None)
    if "custom" in name and function is not None:
        own = name_of(function)
        name = f"{name}: {own}" if own != name else name
    return f"{observer.subsystem}.{name}" if getattr(observer, "subsystem", None) else name
