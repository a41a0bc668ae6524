"""What the reproductions of findings share: it builds a graph node by node, runs a pass on it as every rank of a world
of fake process groups, and runs the graphs before and after with real tensors, all ranks in one process (emulate.py).

A script that `graph-oracle fuzz --repro` writes imports this text, with that of emulate.py in it, as `replay.py`: see
`source` of repro.py. So this file needs torch alone.
"""

import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed import distributed_c10d
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import CheckpointPolicy

from .emulate import run_ranks

Groups = Mapping[str, Sequence[Sequence[int]]]
Tensors = dict[str, Any]


class Builder:
    """Adds nodes to a graph. A node's metadata is what its operator gives for fake tensors."""

    def __init__(self, mode: FakeTensorMode, more: bool = False) -> None:
        self.graph, self.mode, self.more = fx.Graph(), mode, more

    def input(
        self,
        name: str,
        shape: Any,
        dtype: torch.dtype | None = None,
        device: str = "cuda:0",
        stride: Sequence[int] | None = None,
    ) -> fx.Node:
        """A placeholder: a tensor, or without a dtype the number `shape`."""
        node = self.graph.placeholder(name)
        node.meta["val"] = shape
        if dtype is not None:
            with self.mode:
                node.meta["val"] = torch.empty(shape, dtype=dtype, device=device)
                if stride is not None:
                    node.meta["val"] = torch.empty_strided(shape, stride, dtype=dtype, device=device)
        return node

    def __call__(self, name: str, target: Any, /, *args: Any, **kwargs: Any) -> fx.Node:
        node = self.graph.create_node("call_function", target, args, kwargs, name)
        inputs = node.all_input_nodes
        if all("val" in n.meta for n in inputs):
            with self.mode, torch.no_grad():
                result = target(*fx.node.map_aggregate(args, _recorded), **fx.node.map_aggregate(kwargs, _recorded))
            if result is not None:
                node.meta["val"] = result
        return node

    def tag(self, *nodes: fx.Node, recompute: str = "", module: str = "", **meta: Any) -> None:
        """Metadata of nodes: a checkpointing policy by name, the module that they come from, and any other."""
        if recompute:
            meta["recompute"] = CheckpointPolicy[recompute]
        if module:
            meta["nn_module_stack"] = {module: (module, "torch.nn.Module")}
        for node in nodes:
            node.meta.update(meta)

    def output(self, values: Any) -> None:
        """What the graph returns; with `more` also every wait and what nobody reads, so that they are compared."""
        if self.more:
            calls = [n for n in self.graph.nodes if n.op == "call_function"]
            waits = [n for n in calls if n.target is torch.ops._c10d_functional.wait_tensor.default]
            more = dict.fromkeys([*waits, *(n for n in calls if not n.users)])
            values = (*flat(values), *(n for n in more if _is_tensor(n) and n not in flat(values)))
        self.graph.output(values)

    def module(self) -> fx.GraphModule:
        return fx.GraphModule(torch.nn.Module(), self.graph)


def _recorded(value: Any) -> Any:
    return value.meta.get("val") if isinstance(value, fx.Node) else value


def _is_tensor(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def enter(rank: int, world: int, groups: Groups) -> None:
    """Makes this process a rank of the world: fake process groups, which resolve and do not communicate."""
    if dist.is_initialized():
        dist.destroy_process_group()
    store = FakeStore()
    dist.init_process_group("fake", store=store, rank=rank, world_size=world)
    default = distributed_c10d._get_default_group()
    names: dict[Any, Any] = distributed_c10d._world.pg_names
    taken, everyone = names[default], [list(range(world))]
    if taken in groups and groups[taken] != everyone:
        distributed_c10d._unregister_process_group(taken)
        names[default] = "the world"
    name: Any
    for name, instances in groups.items():
        ranks = next(list(instance) for instance in instances if rank in instance)
        if name != taken or groups[taken] != everyone:
            group, _ = distributed_c10d._new_process_group_helper(
                len(ranks), ranks.index(rank), ranks, "fake", store, name, timeout=timedelta(minutes=1)
            )
            distributed_c10d._world.pg_group_ranks[group] = {r: index for index, r in enumerate(ranks)}


def fail(line: str) -> NoReturn:
    print(f"FAILS: {line}".replace("\n", " "))
    sys.exit(1)


def flat(value: Any) -> list[Any]:
    return [leaf for v in value for leaf in flat(v)] if isinstance(value, (list, tuple)) else [value]


def random_inputs(module: fx.GraphModule, rank: int, below: int = 2) -> Tensors:
    """Tensors for the placeholders, other ones on each rank. Integers are smaller than `below`."""
    generator, found = torch.Generator().manual_seed(1000 + rank), {}
    for node in module.graph.find_nodes(op="placeholder"):
        value = node.meta["val"]
        if isinstance(value, torch.Tensor):
            real = value.dtype.is_floating_point
            low, high = (-8, 9) if real else (0, 2 if value.dtype is torch.bool else below)
            numbers = torch.randint(low, high, value.shape, generator=generator)
            value = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
            value.copy_(numbers / 4 if real else numbers)
        found[node.name] = value
    return found


def clones(inputs: Iterable[Tensors]) -> list[Tensors]:
    return [{k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in given.items()} for given in inputs]


def same(a: Any, b: Any) -> bool:
    """Equal in all bits, but that not-a-numbers are one."""
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return type(a) is type(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.is_floating_point:
        a, b = (t.to(torch.float64).nan_to_num(12345.0) for t in (a, b))
    return torch.equal(a, b)


def compare(expected: Sequence[Sequence[Any]], found: Sequence[Sequence[Any]]) -> None:
    for rank, (one, other) in enumerate(zip(expected, found)):
        if len(one) != len(other):
            fail(f"rank {rank} returns {len(other)} values instead of {len(one)}")
        for index, (a, b) in enumerate(zip(one, other)):
            if not same(a, b):
                fail(f"value {index} of rank {rank} is {b}, and before the pass it was {a}")


def replay(
    build: Callable[[Builder], None],
    run_pass: Callable[[fx.GraphModule, FakeTensorMode], list[fx.GraphModule]],
    world: int,
    groups: Groups,
    check: str = "bucketing",
    nothing: str = "the failure does not show",
    below: int = 2,
) -> None:
    """Ends the process with status 1 if a pass fails on a graph, or `check` shows that it changed what is computed.

    `run_pass` returns the graph after, or forward and backward. `check` is "bucketing" (values, with those of the nodes
    that are left in place), "rewrite" (what the graph returns), "partition", or "repair" (whether it is a graph)."""
    warnings.filterwarnings("ignore")
    for more in (False, True) if check == "bucketing" else (False,):
        before, after = [], []
        for rank in range(world):
            enter(rank, world, groups)
            mode = FakeTensorMode()
            builders = [Builder(mode, more) for _ in range(2)]
            for builder in builders:
                build(builder)
            before.append(builders[0].module())
            try:
                after.append(run_pass(builders[1].module(), mode))
            except Exception as error:
                traceback.print_exc()
                fail(f"the pass raises {type(error).__name__}: {_first_line(error)}")
            for module in after[-1]:
                try:
                    module.graph.lint()
                except Exception as error:
                    fail(f"the graph after the pass does not lint: {_first_line(error)}")
        if check != "repair":
            try:
                _values(before, after, groups, check, below)
            except NotImplementedError as error:
                print(f"the graphs are well formed; their values are not compared: {error}")
                sys.exit(0)
    print(nothing)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "")


def _values(
    before: list[fx.GraphModule], after: list[list[fx.GraphModule]], groups: Groups, check: str, below: int
) -> None:
    if check == "partition":
        for forward, _ in after:
            _hands_over_what_has_come(forward)
    # What is rewritten draws in the order of before. Backward may draw again what forward drew.
    in_order = check != "partition"
    inputs = [random_inputs(before[0], rank, below) for rank in range(len(before))]
    seen: list[Tensors] = [{} for _ in before]
    seen_after: list[Tensors] = [{} for _ in before]
    graphs, copies = [module.graph for module in before], clones(inputs)
    returned = run_ranks(graphs, copies, groups, seen, in_order=in_order)
    expected = [[*flat(out), *given.values()] for out, given in zip(returned, copies)]
    copies = clones(inputs)
    try:
        if check == "partition":
            found = _both_parts(after, copies, groups, [len(flat(out)) for out in returned])
        else:
            found = run_ranks([modules[0].graph for modules in after], copies, groups, seen_after, in_order=True)
    except (RuntimeError, KeyError) as error:
        if isinstance(error, NotImplementedError):
            raise
        fail(f"after the pass the graph does not run: {error}")
    # The inputs as they are afterwards, too.
    compare(expected, [[*flat(out), *(given[k] for k in own)] for out, given, own in zip(found, copies, inputs)])
    if check == "bucketing":
        # Nodes that the pass left in place compute what they did before.
        for rank, (one, other) in enumerate(zip(seen, seen_after)):
            for name, a in one.items():
                if name in other and not same(a, other[name]):
                    fail(f"{name} on rank {rank} is {other[name]}, and before the pass it was {a}")


def _hands_over_what_has_come(forward: fx.GraphModule) -> None:
    for value in flat(list(forward.graph.nodes)[-1].args[0]):
        target = getattr(value, "target", None)
        if getattr(target, "namespace", "") == "_c10d_functional" and "wait_tensor" not in str(target):
            fail(f"forward hands over {value.name}, the result of {target}, which nobody has waited for")


def _both_parts(
    after: list[list[fx.GraphModule]], copies: list[Tensors], groups: Groups, counts: list[int]
) -> list[list[Any]]:
    """What forward and then backward return, without what forward saves. `copies` get what is saved, by name."""
    draws: list[dict[str, int]] = [{} for _ in after]
    forward = run_ranks([modules[0].graph for modules in after], copies, groups, draws=draws)
    for given, modules, values in zip(copies, after, forward):
        saved = [getattr(v, "name", "") for v in flat(list(modules[0].graph.nodes)[-1].args[0])]
        given.update({name: value for name, value in zip(saved, values) if name not in given})
    backward = run_ranks([modules[1].graph for modules in after], copies, groups, draws=draws)
    return [[*flat(f)[: n - len(flat(b))], *flat(b)] for f, b, n in zip(forward, backward, counts)]
