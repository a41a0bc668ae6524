"""The program `graph-oracle` for callers that want a process of its own: campaigns, and tests of findings."""

from __future__ import annotations

import os
import shutil
import sys

from ._oracle import CannotJudge


def command() -> list[str]:
    """The command: the program that GRAPH_ORACLE names, or else the one in this package. Raises CannotJudge."""
    named = os.environ.get("GRAPH_ORACLE")
    if not named:
        return [sys.executable, "-m", "graph_oracle"]
    found = shutil.which(named)
    if found is None:
        raise CannotJudge(f"GRAPH_ORACLE={named} is no program")
    return [found]
