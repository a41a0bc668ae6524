"""The judge in this process, compiled from Rust (python/src)."""

import os
from collections.abc import Sequence
from typing import Any, final

__all__ = ["CannotJudge", "Graph", "InternalError", "Pair", "Reader", "Shrinking", "command", "generate"]

class CannotJudge(ValueError):
    """What was given cannot be judged; the message says what is wrong with it."""

class InternalError(CannotJudge):
    """graph-oracle itself failed.

    `case` is the path of a file with what it failed on, or None if none could be written.
    """

    case: str | None

@final
class Graph:
    """A graph. Read from a file with `load`, from text with `Graph(text)`, from PyTorch with `graph_oracle.graph`."""

    def __new__(cls, text: str) -> Graph: ...
    @staticmethod
    def load(path: str | os.PathLike[str]) -> Graph:
        """A graph from a file, which may be compressed with gzip."""
    @property
    def names(self) -> list[str]:
        """The names of its nodes, in list order."""
    @property
    def kind(self) -> str:
        """What it is: "forward", "backward", "joint", ... or empty."""
    @property
    def ranks(self) -> int | None:
        """How many ranks there are, where that is known."""
    @property
    def num_fwd_outputs(self) -> int | None:
        """Of a joint graph: how many of its outputs are forward's, where that is known."""
    def json(self) -> str:
        """As exchange JSON."""
    def text(self) -> str:
        """As a text case."""
    def __len__(self) -> int: ...

@final
class Pair:
    """A graph before a pass, the graphs after it, and the arguments of `graph-oracle check`: the kind, then options."""

    def __new__(
        cls, before: Graph, after: Sequence[Graph], arguments: Sequence[str], unrepaired: Graph | None = None
    ) -> Pair: ...
    def judge(self) -> dict[str, Any]:
        """The report, as `graph-oracle check --format json` prints it."""
    def page(self) -> str:
        """The report as a page for a browser."""

@final
class Reader:
    """Reads graphs of `torch.fx`; what several of them share is read once."""

    def __new__(cls, node_type: type, tensor_type: type) -> Reader: ...
    def read(self, graph: Any, owner: Any, knowledge: Any, name: str, kind: str) -> Graph:
        """The graph of a `torch.fx.Graph`; `knowledge` is asked about torch."""

@final
class Shrinking:
    """A walk over the reducer's proposals for a case: each is taken or left."""

    def __new__(cls, graph: Graph) -> Shrinking: ...
    def propose(self) -> bool:
        """Whether there is another proposal in this round."""
    def take(self) -> None:
        """Takes the proposal."""
    def again(self) -> None:
        """Begins another round."""
    def graph(self) -> Graph:
        """The case as it is."""

def generate(kind: str, seed: int, number: int, without: Sequence[str] = ..., max_ranks: int | None = None) -> Graph:
    """Case `number` of the campaign `seed` for a kind of pass."""

def command(arguments: Sequence[str | os.PathLike[str]]) -> int:
    """Runs the command line on the arguments (the program's name first) and returns its exit status."""
