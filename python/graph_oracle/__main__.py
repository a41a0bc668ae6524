"""`graph-oracle`, and `python -m graph_oracle`: the command line, in this process.

`jobs` is Python's own (jobs.py); everything else is the program that `cargo install` gives too.
"""

from __future__ import annotations

import os
import sys

from ._oracle import InternalError, command


def main() -> int:
    """Runs the command line and returns its exit status."""
    if sys.argv[1:2] == ["jobs"]:
        from .jobs import main as jobs

        return jobs(sys.argv[2:])
    # Functions and clusters are for the Python that has the package: this one.
    os.environ.setdefault("GRAPH_ORACLE_PYTHON", sys.executable)
    try:
        return command(["graph-oracle", *sys.argv[1:]])
    except InternalError as error:
        # 1 would say that something is violated.
        print(f"graph-oracle: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
