"""Lists of passes of other stacks, judged: `checked_passes(list_of_passes)`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .hooks import checked


def checked_passes(passes: Iterable[Any], **options: Any) -> list[Any]:
    """The passes, each of them judged whenever it runs; `options` as for `checked`."""
    return [checked(one, **options) for one in passes]
