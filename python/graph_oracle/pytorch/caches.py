"""What torch keeps for ever, thrown away now and then, so that a worker may live for thousands of cases."""

import gc
import linecache
import sys

from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import graph_module

# Results of operators on fake tensors that torch may remember.
_LIMIT = 20_000

# Functions that remember each node they were asked about, and with it its graph.
_OF_NODES = [("torch._inductor.fx_passes.overlap_scheduling", "get_group_name")]


def trim() -> None:
    """Collects garbage (graphs are full of cycles, and collecting each by itself would cost more than it gives back),
    the source text of generated modules, graphs that passes remember, and results on fake tensors beyond a limit."""
    graph_module._loader.eval_cache.clear()
    linecache.clearcache()
    if len(FakeTensorMode.cache) > _LIMIT:
        FakeTensorMode.cache_clear()
    for module, function in _OF_NODES:
        clear = getattr(getattr(sys.modules.get(module), function, None), "cache_clear", None)
        if clear is not None:
            clear()
    gc.collect()
