"""Texts with places to fill."""

import re
from collections.abc import Iterable, Mapping


def fill(template: str, values: Mapping[str, str]) -> str:
    """`template` with each `@KEY@` replaced by `values[KEY]`. All are filled at once: what a value holds is no
    place."""
    return re.sub("@([A-Z]+)@", lambda place: values[place[1]], template)


def docstring(lines: Iterable[str]) -> str:
    """Lines as they may stand between three quotes."""
    body = "\n".join(lines).replace("\\", "\\\\").replace('"', '\\"')
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in body)
