"""Which versions of torch this package works with."""

import os

# Tested: the package's tests and a campaign of each pass ran on it.
TESTED = ["2.15.0"]
FIRST, LAST = (2, 9), (2, 15)


def missing():
    """One line that says what to do where torch cannot be used, else None. Nothing is imported but torch."""
    try:
        import torch
    except ImportError as error:
        if getattr(error, "name", None) == "torch":
            return (
                "graph-oracle: there is no torch in this Python; install one (pip install torch) or start the worker "
                "with the Python that has it"
            )
        return f"graph-oracle: torch cannot be imported: {str(error).splitlines()[0]}"
    found = torch.__version__.split("+")[0]
    try:
        version = tuple(int(part) for part in found.split(".")[:2])
    except ValueError:
        version = None
    if version is not None and FIRST <= version <= LAST:
        return None
    if os.environ.get("GRAPH_ORACLE_ANY_TORCH") == "1":
        return None
    return (
        f"graph-oracle: torch {found} is outside {'.'.join(map(str, FIRST))} to {'.'.join(map(str, LAST))} (tested: "
        f"{', '.join(TESTED)}); install one of these, or set GRAPH_ORACLE_ANY_TORCH=1 to try"
    )
