"""The operators of frameworks by what they do, in operators that the judge knows.

Memory that an operator gives back is overwritten: whoever reads it afterwards gets what nobody computed.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx
from torch.fx.passes.shape_prop import _extract_tensor_metadata

from .. import fakes, ordering

_aten = torch.ops.aten


class Rewriter:
    """Replaces calls of a graph one by one, and brings the metadata of what depends on them up to date."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self.new: set[fx.Node] = set()
        modes = (getattr(node.meta.get("val"), "fake_mode", None) for node in graph.nodes)
        self.mode = next((mode for mode in modes if mode is not None), None)

    def call(self, at: fx.Node, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
        with self.graph.inserting_before(at):
            node = self.graph.call_function(target, args, kwargs)
        self.new.add(node)
        return node

    def replace(self, node: fx.Node, other: Any) -> None:
        """Whoever read the node reads the other; the node goes away."""
        if isinstance(other, fx.Node):
            self.new.update(node.users)
            node.replace_all_uses_with(other)
        self.graph.erase_node(node)

    def freed(self, at: fx.Node, memory: fx.Node, value: float = float("nan")) -> None:
        self.call(at, _aten.fill_.Scalar, memory, value)

    def described(self) -> None:
        """Fails where a node does not run on what it is given."""
        changed = set(self.new)
        for node in self.graph.nodes:
            if node.op != "call_function":
                continue
            if node not in changed and not any(read in changed for read in node.all_input_nodes):
                continue
            changed.add(node)
            # What is said of numbers stays: a symbol would get another name.
            told = "val" not in node.meta or isinstance(node.meta["val"], (torch.Tensor, list, tuple))
            if ordering.is_carrier(node) or not told:
                continue
            node.meta["val"] = self._value(node)
            if isinstance(node.meta["val"], torch.Tensor):
                node.meta["tensor_meta"] = _extract_tensor_metadata(node.meta["val"])
        self.graph.lint()

    def _value(self, node: fx.Node) -> Any:
        if node.target is operator.getitem:
            return node.args[0].meta["val"][node.args[1]]  # type: ignore[union-attr]
        run: Any = fakes.run
        try:
            return run(self.mode, node.target, node.args, node.kwargs)
        except Exception as error:
            raise RuntimeError(f"after the pass {node.target} does not run on what it is given: {error}") from error


def by_name(gm: fx.GraphModule, table: Mapping[str, Callable[[Rewriter, fx.Node], None]]) -> None:
    """Replaces every call of an operator of the table, in order."""
    rewriter = Rewriter(gm.graph)
    for node in list(gm.graph.nodes):
        replace = table.get(str(node.target)) if node.op == "call_function" else None
        if replace is not None:
            replace(rewriter, node)
    rewriter.described()


# ---------------------------------------------------------------------------------------------------------------
# ao: activations to the host's memory and back (torch/_functorch/_activation_offloading/offload_ops.py)


def _copied(rewriter: Rewriter, node: fx.Node) -> None:
    rewriter.replace(node, rewriter.call(node, _aten.clone.default, node.args[0]))


def _waited(rewriter: Rewriter, node: fx.Node) -> None:
    """Gives back the memory that was copied from, all of its storage."""
    kept = node.args[1] if len(node.args) > 1 else None
    value = kept.meta.get("val") if isinstance(kept, fx.Node) else None
    if isinstance(value, torch.Tensor):
        storage = value.untyped_storage()
        whole = (one for one in rewriter.graph.nodes if _fills(one, storage))
        freed: Any = next(whole, kept)
        rewriter.freed(node, freed, float("nan") if value.dtype.is_floating_point else 77)
    rewriter.replace(node, node.args[0])


def _fills(node: fx.Node, storage: Any) -> bool:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or any(type(size) is not int for size in value.shape):
        return False
    own = value.untyped_storage()
    return own._cdata == storage._cdata and value.numel() * value.element_size() == own.nbytes()


AO = {"ao.offload.default": _copied, "ao.reload.default": _copied, "ao.wait_tensor.default": _waited}


# ---------------------------------------------------------------------------------------------------------------
# dc: DeepCompile (csrc/compile/z1.cpp, z3.cpp and deepcompile.cpp of DeepSpeed)


def dc(gm: fx.GraphModule, gradients: Mapping[int, int]) -> None:
    """`gradients`: by the number of a parameter, which result of the graph its gradient is."""
    gathered: dict[int, fx.Node] = {}
    released: dict[int, int] = defaultdict(int)
    reduced: dict[int, Any] = {}

    def gather(rewriter: Rewriter, node: fx.Node) -> None:
        """Into memory of its own, in the dtype that it says."""
        given = node.args[0]
        dtype = node.kwargs.get("dtype") or given.meta["val"].dtype  # type: ignore[union-attr]
        same = dtype == given.meta["val"].dtype  # type: ignore[union-attr]
        copy = (_aten.clone.default, given) if same else (torch.ops.prims.convert_element_type.default, given, dtype)
        gathered[node.args[2]] = new = rewriter.call(node, *copy)  # type: ignore[index]
        rewriter.replace(node, new)

    def release(rewriter: Rewriter, node: fx.Node) -> None:
        """The last of its readers gives a gathered parameter back."""
        number, readers = node.args[2], node.args[3]
        released[number] += 1  # type: ignore[index]
        if released[number] == readers:  # type: ignore[index]
            rewriter.freed(node, gathered[number])  # type: ignore[index]
        rewriter.replace(node, node.args[0])

    def reduce(rewriter: Rewriter, node: fx.Node) -> None:
        """Hands the gradient over, and returns an empty tensor."""
        reduced[node.args[2]] = node.args[0]  # type: ignore[index]
        empty = rewriter.call(node, _aten.new_empty.default, node.args[0], [0])
        for number, gradient in reduced.items():
            reduced[number] = empty if gradient is node else gradient
        rewriter.replace(node, empty)

    def passed(rewriter: Rewriter, node: fx.Node) -> None:
        rewriter.replace(node, node.args[0])

    def dropped(rewriter: Rewriter, node: fx.Node) -> None:
        rewriter.graph.erase_node(node)

    table = {
        "allgather_param": gather,
        "wait_allgather": passed,
        "release_param": release,
        "reduce_grad": reduce,
        "prefetch_params_fused": dropped,
        "end_backward": dropped,
        "offload_parameter": dropped,
        "reload_parameter": dropped,
        "offload_tensor": _copied,
        "wait_offload": passed,
        "reload_tensor": _copied,
        "wait_reload": passed,
    }
    # What hands nothing on goes first: it reads what is replaced.
    for node in list(gm.graph.nodes):
        if table.get(_dc_name(node)) is dropped:
            gm.graph.erase_node(node)
    rewriter = Rewriter(gm.graph)
    for node in list(gm.graph.nodes):
        if _dc_name(node) in table:
            table[_dc_name(node)](rewriter, node)
    (output,) = gm.graph.find_nodes(op="output")
    values = list(output.args[0])
    for number, index in gradients.items():
        if number in reduced:
            values[index] = reduced[number]
    output.args = (tuple(values),)
    rewriter.described()


def _dc_name(node: fx.Node) -> str:
    target = node.target
    if isinstance(target, torch._ops.OpOverload) and target.namespace == "dc":
        return target._schema.name.removeprefix("dc::")
    return ""
