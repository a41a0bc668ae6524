"""graph-oracle: says whether a graph pass of distributed training did its job, and why not.

    import graph_oracle

    verdict = graph_oracle.check_pair(before, after)      # graphs of torch.fx, of files, or of our own
    verdict.raise_if_wrong()

Importing the package does not import torch: that takes seconds, and other stacks do without.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._oracle import CannotJudge, Graph, InternalError
from .judge import Finding, Reason, Verdict, WrongPass, check_pair, graph, load

if TYPE_CHECKING:
    from .campaign import CampaignResult, campaign
    from .cases import check_case
    from .pytorch.capture import recording
    from .pytorch.hooks import checked, pass_check
    from .pytorch.stacks import checked_passes
    from .pytorch.watch import watch
    from .pytorch.worlds import fake_world, rebuilt
    from .strategies import graphs, joint_graphs

__version__ = "0.1.0"

# Offered besides, by the module that has it: these import torch, or another package that is optional.
_OFFERED = {
    "CampaignResult": "campaign",
    "campaign": "campaign",
    "check_case": "cases",
    "checked": "pytorch.hooks",
    "checked_passes": "pytorch.stacks",
    "fake_world": "pytorch.worlds",
    "graphs": "strategies",
    "joint_graphs": "strategies",
    "pass_check": "pytorch.hooks",
    "rebuilt": "pytorch.worlds",
    "recording": "pytorch.capture",
    "watch": "pytorch.watch",
}

__all__ = [
    "CannotJudge",
    "Finding",
    "Graph",
    "InternalError",
    "Reason",
    "Verdict",
    "WrongPass",
    "check_pair",
    "graph",
    "load",
    *_OFFERED,
]


def __getattr__(name: str) -> Any:
    if name not in _OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Importing a submodule binds its name here; the function of the same name is put in its place.
    found = getattr(importlib.import_module(f"{__name__}.{_OFFERED[name]}"), name)
    globals()[name] = found
    return found
