"""Arguments of public functions: what cannot be meant is refused in one line that says what is taken.

It looks at what kind of thing is given, and not into it: of a graph or a file, its reader says what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ._oracle import CannotJudge


def demand(right: bool, where: str, taken: str, given: object) -> None:
    """Raises CannotJudge if what is given is not right: `where` takes `taken`."""
    if not right:
        raise CannotJudge(f"{where} takes {taken}, not {described(given)}")


def demand_text(where: str, given: object, taken: str = "a string", empty: bool = True) -> None:
    demand(isinstance(given, str) and (empty or given != ""), where, taken, given)


def demand_flag(where: str, given: object) -> None:
    demand(isinstance(given, bool), where, "True or False", given)


def demand_number(where: str, given: object, low: int) -> None:
    demand(type(given) is int and given >= low, where, f"a whole number from {low}", given)


def demand_one_of(where: str, given: object, known: Sequence[str]) -> None:
    demand(isinstance(given, str) and given in known, where, f"one of {', '.join(known)}", given)


def path_of(where: str, given: Any) -> str:
    """The path of a file or folder as a string."""
    demand(isinstance(given, (str, os.PathLike)) and given != "", where, "the path of a file or folder", given)
    found = os.fspath(given)
    demand(isinstance(found, str), where, "a path that is a string", found)
    return str(found)


def texts_of(where: str, given: Any, taken: str) -> list[str]:
    """A list of strings; a string is none."""
    is_list = isinstance(given, (list, tuple, set, frozenset))
    demand(is_list and all(isinstance(one, str) for one in given), where, taken, given)
    return list(given)


def paths_of(where: str, given: Any) -> list[str]:
    """A list of paths; a path is none."""
    demand(isinstance(given, (list, tuple)), where, "a list of paths", given)
    return [path_of(where, one) for one in given]


def described(given: object) -> str:
    """What is given, in few words."""
    if given is None or isinstance(given, (bool, int, float)):
        return repr(given)
    if isinstance(given, str):
        return f"the string {given[:40]!r}"
    if isinstance(given, (list, tuple)):
        return f"a {type(given).__name__} of {len(given)}"
    name = type(given).__name__
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"
