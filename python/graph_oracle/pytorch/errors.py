"""What can go wrong, and whose fault it is."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """The case is not taken: it cannot be rebuilt, or the implementation declines by a documented answer."""

    def __init__(self, reason: str, left_behind: dict[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.left_behind = left_behind


class PassFailed(Exception):
    """The implementation raised an exception, which is the cause. Whether it had reason to is not for the adapter to
    say."""

    def __init__(self, cause: Exception, left_behind: dict[str, Any] | None = None) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.left_behind = left_behind
