"""PyTorch's side of graph-oracle.

`python -m graph_oracle.pytorch worker` serves PyTorch's graph passes over the worker protocol (docs/protocol.md).

Importing the package does not import torch: that takes seconds, and a missing torch is to be told in one line.
"""

__version__ = "0.1.0"

# What is offered besides: check_pair(before, after, pass_kind), watch(), recording(), and the classes of their answers.
_OFFERED = {"check_pair": "judge", "Verdict": "judge", "NoOracle": "judge", "check_case": "cases", "watch": "pytorch.watch", "recording": "pytorch.capture"}


def __getattr__(name):
    if name not in _OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    # Importing a submodule binds its name here; the function of the same name is put in its place.
    found = getattr(importlib.import_module(f"{__name__}.{_OFFERED[name]}"), name)
    globals()[name] = found
    return found
