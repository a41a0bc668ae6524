"""A panic of the judge is an error of the package, with what it failed on."""

from __future__ import annotations

import pathlib

import pytest

import graph_oracle
from graph_oracle import CannotJudge, InternalError
from graph_oracle._oracle import Reader


def panics() -> list[type[BaseException]]:
    """What extensions in Rust raise for a panic. One whose own such error comes out of Python panics again."""
    with pytest.raises(CannotJudge):
        graph_oracle.Graph("no graph")
    return [known for known in BaseException.__subclasses__() if known.__name__ == "PanicException"]


class Broken:
    """A graph whose nodes cannot be read without a panic."""

    def __init__(self, panic: type[BaseException]) -> None:
        self.panic = panic

    @property
    def nodes(self) -> None:
        raise self.panic("index out of bounds")

    def __str__(self) -> str:
        return "a graph with an é"


def test_a_panic_is_an_error_that_keeps_the_case() -> None:
    reader = Reader(Broken, Broken)
    found = []
    for panic in panics():
        try:
            reader.read(Broken(panic), None, None, "", "")
        except InternalError as error:
            found.append(error)
        except panic:
            pass  # of another extension
    (error,) = found
    assert isinstance(error, CannotJudge)
    assert "index out of bounds" in str(error)
    assert error.case is not None
    assert str(error).endswith(f"please report it with {error.case}")
    case = pathlib.Path(error.case)
    assert case.read_text(encoding="utf-8") == "a graph with an é"
    case.unlink()
