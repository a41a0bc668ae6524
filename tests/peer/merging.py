"""What PyTorch's `fx_graph_cse` merges and what it takes for a draw, where the reference decides otherwise.

    python tests/peer/merging.py

Prints a line for each small graph and ends with status 1 if PyTorch does something else than is said of it in
oracle/references/passes/partition/common_subexpressions.rs, hazards.rs and docs/findings/partition.md.
"""

import operator
import sys

import torch
from torch import fx
from torch._functorch import partitioners
from torch._functorch.compile_utils import fx_graph_cse
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

aten, wrappers = torch.ops.aten, torch.ops.higher_order


class Maker:
    def __init__(self):
        self.graph, self.mode = fx.Graph(), FakeTensorMode()

    def input(self, name, *shape):
        node = self.graph.placeholder(name)
        with self.mode:
            node.meta["val"] = torch.empty(*shape)
        return node

    def call(self, target, *args, value=None):
        node = self.graph.call_function(target, args)
        with self.mode:
            known = fx.node.map_aggregate(args, lambda a: a.meta["val"] if isinstance(a, fx.Node) else a)
            node.meta["val"] = target(*known) if value is None else value
        return node

    def sum(self, a, b):
        return self.call(aten.add.Tensor, a, b)


def drawn(m):
    x = m.input("x", 4)
    return m.sum(m.call(aten.rand_like.default, x), m.call(aten.rand_like.default, x))


def wrapped_draw(m):
    x = m.input("x", 4)
    with m.mode:
        value = (torch.empty(16, dtype=torch.uint8), torch.empty(4))
    both = [m.call(wrappers.run_and_save_rng_state, aten.rand_like.default, x, value=value) for _ in range(2)]
    return m.sum(*[m.call(operator.getitem, draw, 1, value=value[1]) for draw in both])


def replayed_draw(m):
    x, state = m.input("x", 4), m.input("state", 16)
    with m.mode:
        value = torch.empty(4)
    args = (wrappers.run_with_rng_state, state, aten.rand_like.default, x)
    return m.sum(*[m.call(*args, value=value) for _ in range(2)])


def uninitialised(m):
    m.input("x", 4)
    return m.sum(m.call(aten.empty.memory_format, [4]), m.call(aten.empty.memory_format, [4]))


def written_later(m):
    x = m.input("x", 4)
    one, other = m.call(aten.clone.default, x), m.call(aten.clone.default, x)
    m.call(aten.add_.Tensor, one, x)
    return m.call(aten.sin.default, other)


def written_between(m):
    x = m.input("x", 4)
    one = m.call(aten.clone.default, x)
    m.call(aten.add_.Tensor, one, x)
    return m.call(aten.sin.default, m.call(aten.clone.default, x))


def unbacked(m):
    x, number = m.input("x", 1), ShapeEnv().create_unbacked_symint()
    items = [m.call(aten._local_scalar_dense.default, x, value=number) for _ in range(2)]
    return m.call(operator.add, *items, value=number + number)


# How many of the two equal nodes are left.
EXPECTED = {drawn: 2, wrapped_draw: 1, replayed_draw: 1, uninitialised: 2, written_later: 1, written_between: 2, unbacked: 1}
COUNTED = {"rand_like", "run_and_save_rng_state", "run_with_rng_state", "empty", "clone", "_local_scalar_dense"}


def main():
    wrong = False
    for build, expected in EXPECTED.items():
        maker = Maker()
        maker.graph.output((build(maker),))
        calls = [node for node in fx_graph_cse(maker.graph).nodes if node.op == "call_function"]
        left = sum(str(node.target).removeprefix("aten.").split(".")[0] in COUNTED for node in calls)
        draws = [node for node in calls if "recompute" in node.meta or partitioners.is_rng_op(node)]
        print(f"{build.__name__}: {left} of 2 left, {len(draws)} draws seen")
        wrong |= left != expected or (build in (wrapped_draw, replayed_draw) and bool(draws))
    return wrong


sys.exit(main())
