"""The passes that the worker serves.

A pass is a function `run(rebuilt, options) -> dict`. It gets the rebuilt graph (`rebuild.Rebuilt`: the module, the
rank, the world, the document and the request it came from) and the options of the request (strings, or lists of
strings). It returns the keys of the protocol's outcome other than `type` and `id`:

    from . import register
    from ..errors import Refused

    @register("repair")
    def run(rebuilt, options):
        with rebuilt.timing() as timing:         # the implementation itself and nothing else
            stable_topological_sort(rebuilt.module.graph)
        return {"seconds": timing.seconds, "repaired": rebuilt.export()}

- An exception raised inside `rebuilt.timing()` is the implementation's: the answer is `error`.
- `Refused(reason)`, raised anywhere: the pass does not take this case, or declines by a documented answer. If the
  implementation may have touched the graph: `Refused(reason, left_behind=rebuilt.export())`.
- Any other exception is the adapter's own fault and is answered as an `error` of the class `AdapterFault`.

What the pass is able to do is declared in `register`; it becomes `passes.NAME` of the hello message.
"""

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .. import versions


@dataclass(frozen=True)
class Pass:
    """One pass: its name in the protocol, its function, and what it declares about itself."""

    name: str
    run: Callable[..., dict]
    capabilities: dict[str, Any] = field(default_factory=dict)
    # How the graph is rebuilt for it: with values (fake tensors); without, which takes unsorted graphs; or not at all,
    # for passes that read `rebuilt.document` themselves (`rebuilt.module` is None then).
    rebuilds: bool = True
    values: bool = True
    # What becomes of ordering edges when the graph is rebuilt for it (rebuild.py).
    after: str | None = None


_passes: dict[str, Pass] = {}

# Modules that register passes when they are imported.
MODULES = ["bucketing", "repair", "partition", "memory", "schedule", "execute"]
# What of torch a pass cannot do without: 2.8 has no bucketing, and its scheduler takes no mock nodes.
_ORDERED_ONLY = "torch._inductor.dependencies.WeakDep.is_fake"
NEEDS = {
    "bucketing": "torch._inductor.fx_passes.bucketing.bucket_all_gather",
    "memory": _ORDERED_ONLY,
    "schedule": _ORDERED_ONLY,
}


def register(
    name,
    *,
    options=None,
    targets=None,
    max_ranks=None,
    without=None,
    promises=None,
    rebuilds=True,
    values=True,
    after=None,
):
    """Declares a pass.

    `options`: by option, the values understood (an option not listed may have any value). `targets`: operators that
    can be rebuilt (None: all are tried). `max_ranks`: the largest world (None: any). `without`: what graphs must not
    have. `promises`: what PyTorch's own documentation promises, with its source (docs/protocol.md).
    """
    stated = {
        "options": options,
        "targets": targets,
        "max_ranks": max_ranks,
        "without": without,
        "promises": promises,
    }
    capabilities = {key: value for key, value in stated.items() if value is not None}

    def decorate(run):
        _passes[name] = Pass(name, run, capabilities, rebuilds, values, after)
        return run

    return decorate


def load():
    """All passes by name. A pass whose module is absent is not offered, nor one that this torch has not."""
    for module in MODULES:
        full = f"{__name__}.{module}"
        there = module not in NEEDS or versions.have(NEEDS[module])
        if there and importlib.util.find_spec(full) is not None:
            importlib.import_module(full)
    return dict(_passes)
