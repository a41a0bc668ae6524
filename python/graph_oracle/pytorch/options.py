"""Options of a request: strings, or lists of strings (docs/case_format.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar, overload

from .errors import Refused

T = TypeVar("T")

_UNITS = {"": 1.0, "B": 1 / 2**20, "KB": 1 / 2**10, "MB": 1.0, "GB": 2.0**10, "TB": 2.0**20}


def text(value: object) -> str:
    """An option as one string."""
    if isinstance(value, list):
        return ",".join(map(text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).strip()


def words(value: object) -> list[str]:
    """An option as a list of words."""
    return [word.strip() for word in text(value).split(",") if word.strip()]


def choose(key: str, value: object, names: Mapping[str, T]) -> T:
    """What `names` has under the value."""
    value = text(value)
    if value not in names:
        raise Refused(f"option {key}={value}: this worker knows {', '.join(names)}")
    return names[value]


def yes(key: str, value: object) -> bool:
    return choose(key, value, {"yes": True, "no": False, "true": True, "false": False})


@overload
def number(key: str, value: object) -> int: ...
@overload
def number(key: str, value: object, kind: type[T]) -> T: ...
def number(key: str, value: object, kind: Any = int) -> Any:
    """An option as a number of a kind."""
    try:
        return kind(text(value))
    except ValueError:
        raise Refused(f"option {key}={text(value)} is no number") from None


def megabytes(key: str, value: object) -> list[float]:
    """Sizes as MB of 1024 * 1024 bytes: `64MiB`, `200B`, or a bare number of MB. A list of them."""
    found = []
    for word in words(value):
        digits = word.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
        factor = _UNITS.get(word[len(digits) :].replace("iB", "B"))
        if factor is None:
            raise Refused(f"option {key}={word} is no size")
        found.append(number(key, digits, float) * factor)
    return found


def known(options: Iterable[str], keys: Collection[str]) -> None:
    """Refused where an option is given that is not among `keys`."""
    for key in options:
        if key not in keys:
            raise Refused(f"option {key} is not one that this worker knows ({', '.join(keys)})")
