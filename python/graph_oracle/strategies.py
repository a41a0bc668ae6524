"""Hypothesis strategies over graph-oracle's generator, whose failing examples its reducer makes small.

    from hypothesis import given
    import graph_oracle

    @given(graph_oracle.joint_graphs())
    def test_my_partitioner(joint):
        with graph_oracle.rebuilt(joint) as module:
            parts = my_partitioner(module, (), num_fwd_outputs=joint.num_fwd_outputs)
            graph_oracle.check_pair(module, parts, "partition").raise_if_wrong()

A strategy draws a seed; the graph is made of it. Then it asks for one bit for each of the reducer's edits (drop this
node, make that size smaller, ...): whether it is left. When an example is found they are nearly all left; when
Hypothesis shrinks it, it turns bits, and so makes the edits that keep the test failing.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.strategies import SearchStrategy

from . import _oracle
from ._oracle import Graph
from .arguments import demand, texts_of
from .judge import demand_kind

# What torch has no form for; docs/protocol.md says what the words mean.
_NOT_IN_TORCH = ("barriers", "messages", "ordering-edges", "random-draws")
# Symbolic sizes have one, and are made where a test asks for them: such graphs are seldom made small.
_PLAIN = (*_NOT_IN_TORCH, "symbolic-sizes")
# Nor what AOTAutograd leaves in a joint graph: writes, but for copies into inputs at the end, and it says which nodes
# are of forward.
_NOT_TRACED = (*_NOT_IN_TORCH, "untagged", "writes")
# Rounds of edits, as many for each graph: Hypothesis takes an example with fewer draws for a smaller one, so that to
# make an edit must not ask for further ones.
_ROUNDS = 2
# Edits that are asked about at most; a graph has a few hundred.
_MOST = 3000


class _Graphs(SearchStrategy[Graph]):
    def __init__(self, kind: str, without: Sequence[str], max_ranks: int | None) -> None:
        super().__init__()
        demand_kind(kind)
        self._kind = kind
        self._without = texts_of("graphs(without=...)", without, 'a list of words, such as ["writes"]')
        is_number = max_ranks is None or (type(max_ranks) is int and 1 <= max_ranks < 2**32)
        demand(is_number, "graphs(max_ranks=...)", "the ranks of the largest world, at least one", max_ranks)
        self._max_ranks = max_ranks

    def do_draw(self, data: ConjectureData) -> Graph:
        seed = data.draw(st.integers(0, 2**64 - 1))
        shrinking = _oracle.Shrinking(_oracle.generate(self._kind, seed, 0, self._without, self._max_ranks))
        asked = 0
        for _ in range(_ROUNDS):
            while asked < _MOST and shrinking.propose():
                asked += 1
                if not data.draw_boolean(1 - 2**-10):
                    shrinking.take()
            shrinking.again()
        return shrinking.graph()


def graphs(
    kind: str = "rewrite", *, without: Sequence[str] = _PLAIN, max_ranks: int | None = None
) -> SearchStrategy[Graph]:
    """Graphs for a kind of pass ("rewrite", "bucketing", "schedule", "repair", "partition").

    `without`: what they must not have (docs/protocol.md); by default, what torch has no form for, and symbolic sizes.
    `max_ranks`: the largest world.
    """
    return _Graphs(kind, without, max_ranks)


def joint_graphs(*, without: Sequence[str] = _NOT_TRACED, max_ranks: int | None = None) -> SearchStrategy[Graph]:
    """Joint graphs, for partitioners; `num_fwd_outputs` of the graph says how many of its outputs are forward's."""
    return graphs("partition", without=without, max_ranks=max_ranks)
