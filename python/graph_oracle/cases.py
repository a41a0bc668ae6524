"""Kept cases: `check_case(path, function)` runs a pass on a case of graph-oracle, and says what it thinks of the
result.

    check_case("tests/deadlock.graph", "mypass.py:my_pass").raise_if_wrong()

`graph-oracle keep` writes tests of this kind.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

from . import arguments
from ._oracle import CannotJudge
from .judge import Verdict, read
from .program import command

# Exit statuses that come with a report: sound, violated, undecided or refused.
STATUSES = (0, 1, 3)


def check_case(
    path: str | os.PathLike[str], function: str | None = None, *, worker: str | None = None, kind: str = ""
) -> Verdict:
    """The Verdict on what a function (FILE.py:FUNCTION or MODULE:FUNCTION) makes of a case, or else a worker's command.

    The function is run by this Python, in a process of its own. `kind` is the pass, where the file does not name it.
    """
    if (function is None) == (worker is None):
        raise CannotJudge("check_case takes a function, or else worker=CMD")
    case = arguments.path_of("check_case(path, ...)", path)
    arguments.demand_text("check_case(kind=...)", kind)
    if function is not None:
        arguments.demand_text("check_case(path, function)", function, "FILE.py:FUNCTION or MODULE:FUNCTION", False)
    else:
        arguments.demand_text("check_case(worker=...)", worker, "a command", False)
    kind = kind or _kind(case)
    who = ["--python", function] if function is not None else ["--worker", str(worker)]
    done = subprocess.run(
        # Importing torch takes minutes where a machine is busy.
        [*command(), "check", kind, case, *who, "--worker-start", "600", "--format", "json"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **_this_python()},
    )
    if done.returncode not in STATUSES or not done.stdout:
        line = (done.stderr or done.stdout).strip().splitlines()
        raise CannotJudge(line[0] if line else f"graph-oracle ended with status {done.returncode}")
    return read(json.loads(done.stdout), kind, os.path.basename(case))


def _kind(case: str) -> str:
    """The pass that a case names."""
    try:
        with open(case, encoding="utf-8", errors="replace") as file:
            found = re.search(r"^pass (\w+)", file.read(), re.MULTILINE)
    except OSError as error:
        raise CannotJudge(f"{case}: {error.strerror}") from None
    if found is None:
        raise CannotJudge(f"{case} names no pass: give kind=")
    return found[1]


def _this_python() -> dict[str, str]:
    """Lets this Python run the function, with the modules that are found here; unless another one is named."""
    if os.environ.get("GRAPH_ORACLE_PYTHON"):
        return {}
    return {"GRAPH_ORACLE_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
