"""Execution with real kernels on the CPU, as all ranks at once.

The ranks are processes that communicate through gloo (`local_group.py`). Where gloo has no form of a collective, or
there is one rank, they run in this process, with their collectives computed from the ranks' tensors (`emulate.py`). The
outcome says which it was (`through`: gloo, emulated or alone).
"""

import torch

from .. import local_group
from ..emulate import run_ranks
from ..errors import Refused
from ..groups import groups_of, world_size
from ..options import known
from ..rebuild import dtype_of
from . import register


# The same draws cannot be made elsewhere; a barrier takes a process group as an object.
@register("execute", without=["random-draws", "barriers"], after="ignored")
def run(rebuilt, options):
    """`inputs` of the request: for each rank the placeholders' tensors by name. Outcome: `results`, rank by rank, and
    `inputs`: what the placeholders hold afterwards."""
    known(options, ())
    document, given = rebuilt.document, rebuilt.request.get("inputs")
    size = world_size(document)
    if not isinstance(given, list) or len(given) != size:
        raise Refused(f"the request gives no inputs for {size} ranks")
    for node in rebuilt.graph.nodes:
        tags = getattr(node.target, "tags", ())
        if torch.Tag.nondeterministic_seeded in tags:
            raise Refused(f"{node.name} draws random numbers")
        if node.op == "get_attr":
            raise Refused(f"{node.name} is an attribute, whose value the request does not give")
    # What the ranks are not given is refused here, before others would wait for them.
    inputs = [Inputs(rebuilt, by_name, rank).tensors() for rank, by_name in enumerate(given)]
    with rebuilt.timing() as timing:
        ranks = local_group.run(rebuilt, given) if size > 1 else None
    if ranks is not None:
        return {"seconds": timing.seconds, "through": "gloo", **outcome(ranks)}
    groups = {name: group["ranks"] for name, group in groups_of(document).items()}
    with rebuilt.timing() as timing, torch.no_grad():
        outputs = run_ranks([rebuilt.graph] * size, inputs, groups)
    ranks = [told(rebuilt, out, tensors) for out, tensors in zip(outputs, inputs)]
    return {"seconds": timing.seconds, "through": "emulated" if size > 1 else "alone", **outcome(ranks)}


def run_rank(rebuilt, given, rank, execute):
    """One rank by itself: `execute` runs a graph on tensors by name."""
    inputs = Inputs(rebuilt, given, rank).tensors()
    with torch.no_grad():
        return told(rebuilt, execute(rebuilt.graph, inputs), inputs)


def told(rebuilt, outputs, inputs):
    """What a rank returns, and what its placeholders hold."""
    left = {rebuilt.names[name]: encode(value) for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    return [encode(value) for value in flat(outputs)], left


def outcome(ranks):
    return {"results": [results for results, _ in ranks], "inputs": [inputs for _, inputs in ranks]}


def flat(value):
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in flat(v)]
    return [value]


class Inputs:
    """The tensors of one rank, with the recorded strides and storages."""

    def __init__(self, rebuilt, given, rank):
        self.rebuilt, self.given, self.rank, self.storages = rebuilt, given, rank, {}

    def tensors(self):
        found = {}
        for entry in self.rebuilt.document["nodes"]:
            if entry["op"] != "placeholder":
                continue
            node = self.rebuilt.nodes[entry["name"]]
            value = node.meta["val"]
            if isinstance(value, torch.Tensor):
                found[node.name] = self.tensor(entry, value)
            elif type(value) is int or value is None:
                found[node.name] = value
            else:
                raise Refused(f"{entry['name']} is no tensor of known size")
        return found

    def tensor(self, entry, like):
        name = entry["name"]
        if name not in self.given:
            raise Refused(f"rank {self.rank} is given no {name}")
        value = decode(self.given[name])
        if value.dtype != like.dtype or value.shape != like.shape:
            raise Refused(f"{name} of rank {self.rank} is given with another shape or dtype than the graph records")
        storage = like.untyped_storage()
        memory = self.storages.get(storage._cdata)
        if memory is None:
            memory = self.storages[storage._cdata] = torch.zeros(storage.nbytes(), dtype=torch.uint8).untyped_storage()
        made = torch.empty(0, dtype=like.dtype).set_(memory, like.storage_offset(), like.shape, like.stride())
        if 0 in like.stride() and like.numel() > 1:
            # Elements that lie on one another: they must be given equal.
            for index in torch.cartesian_prod(*[torch.arange(n) for n in like.shape]).view(-1, like.dim()).tolist():
                made[tuple(index)] = value[tuple(index)]
        else:
            made.copy_(value)
        if not torch.equal(bits(made), bits(value)):
            raise Refused(f"{name} of rank {self.rank} is given other values where its elements share memory")
        return made


def bits(tensor):
    """The elements as integers."""
    return tensor.contiguous().view(-1).view(torch.uint8)


def decode(value):
    """A tensor from the bits of its elements. Of a complex number the real part comes first."""
    dtype, shape = dtype_of(value["dtype"]), value["shape"]
    part = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    data = bytearray()
    for digits in value["bits"]:
        raw = bytes.fromhex(digits)
        if len(raw) != dtype.itemsize:
            raise Refused(f"{digits} is no element of {dtype}")
        for start in range(0, len(raw), part):
            data += raw[start : start + part][::-1]
    count = 1
    for n in shape:
        count *= n
    if count != len(value["bits"]):
        raise Refused(f"{len(value['bits'])} elements are given for shape {shape}")
    if not count:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(data, dtype=torch.uint8).clone().view(dtype).view(shape)


def encode(value):
    """The bits of a tensor's elements; null for what is no tensor."""
    if not isinstance(value, torch.Tensor):
        return None
    # Contiguous in all its strides: along a size of 1 a tensor may have any, which `view` of another dtype does not
    # take.
    value = value.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    size = value.dtype.itemsize
    part = size // 2 if value.dtype.is_complex else size
    raw = bytes(value.view(-1).view(torch.uint8).tolist()) if value.numel() else b""
    found = []
    for start in range(0, len(raw), size):
        found.append(b"".join(raw[at : at + part][::-1] for at in range(start, start + size, part)).hex())
    return {"dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape), "bits": found}
