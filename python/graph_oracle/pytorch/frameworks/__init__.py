"""Graph passes of torchtitan, DeepSpeed and AutoParallel as functions to fuzz:
`graph-oracle fuzz rewrite --python graph_oracle.pytorch.frameworks:NAME`.

`PASSES` names each pass after its framework, and calls it as the framework does. The frameworks are imported when a
pass is called: where one is missing, or has no such pass in its version, the case is refused.

What a pass leaves in operators of its framework's own (`dc.*` of DeepSpeed, `ao.*` of PyTorch) is replaced by what
these do, in operators that the judge knows (meaning.py): a gather of a parameter becomes a copy, and memory that is
given back is overwritten with not-a-number, so that whoever reads it afterwards is wrong.

docs/findings/frameworks.md lists the passes, with what was found.
"""

from __future__ import annotations

from typing import Any

from . import autoparallel, deepspeed, torchtitan
from .called import Call, Cut

PASSES: dict[str, Call | Cut] = {**torchtitan.PASSES, **deepspeed.PASSES, **autoparallel.PASSES}


def __getattr__(name: str) -> Any:
    if name in PASSES:
        return PASSES[name]
    raise AttributeError(f"there is no pass {name}; there are {', '.join(PASSES)}")
