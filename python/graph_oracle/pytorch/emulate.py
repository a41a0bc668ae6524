"""Runs FX graphs with real kernels on the CPU, as all ranks of a world in one process.

Each rank runs its graph until it meets a collective; when all ranks of a group have met one, its results are computed
from their tensors. Reductions go through the ranks in the group's order, in the tensors' own dtype. A collective is
done when it starts; a wait returns its argument. Memory that `empty` returns is filled with a value that shows.

This file needs torch alone: reproductions carry it in their own text.
"""

import torch
from torch import fx

COLLECTIVES = {
    "all_gather_into_tensor",
    "all_gather_into_tensor_out",
    "all_gather_into_tensor_coalesced",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_coalesced",
    "all_reduce",
    "all_reduce_",
    "all_reduce_coalesced",
    "all_to_all_single",
    "broadcast",
    "broadcast_",
}
ALLOCATIONS = ("empty", "new_empty", "empty_strided", "new_empty_strided", "empty_like")
REDUCTIONS = {
    "sum": torch.add,
    "avg": torch.add,
    "product": torch.mul,
    "min": torch.minimum,
    "max": torch.maximum,
    "band": torch.bitwise_and,
    "bor": torch.bitwise_or,
    "bxor": torch.bitwise_xor,
}


def run_ranks(graphs, inputs, groups, seen=None, draws=None, in_order=False):
    """The outputs of each rank. `graphs`: one for each rank; `inputs`: the placeholders' tensors by name, for each
    rank; `groups`: by name, the rank lists of its instances. `seen`: for each rank a dict that gets what every node
    gave, by name. `draws`: for each rank a dict that counts draws of random numbers; runs that share it go on counting.
    `in_order`: each draw takes the next numbers of its rank, as from one generator, and not those of its name."""
    draws = draws or [{} for _ in graphs]
    running = {
        rank: _rank(graph, inputs[rank], seen and seen[rank], draws[rank], in_order)
        for rank, graph in enumerate(graphs)
    }
    outputs, waiting = [None] * len(graphs), {}
    arrived = dict.fromkeys(running)
    while running:
        for rank, value in arrived.items():
            try:
                waiting[rank] = running[rank].send(value)
            except StopIteration as stop:
                outputs[rank] = stop.value
                del running[rank]
        arrived = {}
        for rank, (name, group, _) in sorted(waiting.items()):
            instances = [instance for instance in groups.get(group, []) if rank in instance]
            if not instances:
                raise RuntimeError(f"rank {rank} is in no group {group}")
            ranks = instances[0]
            if rank != ranks[0] or not all(r in waiting and waiting[r][1] == group for r in ranks):
                continue
            names = sorted({waiting[r][0] for r in ranks})
            if len(names) > 1:
                raise RuntimeError(f"the ranks of {group} meet in different collectives: {', '.join(names)}")
            for r, value in zip(ranks, collective(name, [waiting[r][2] for r in ranks])):
                arrived[r] = value
        if running and not arrived:
            where = ", ".join(f"rank {r} in {waiting[r][0]} on {waiting[r][1]}" for r in sorted(running))
            raise RuntimeError(f"the ranks wait for one another: {where}")
        for rank in arrived:
            del waiting[rank]
    return outputs


def _rank(graph, inputs, seen, draws, in_order):
    """One rank: yields what it needs others for, and returns its outputs."""
    values = {}

    def real(value):
        if isinstance(value, fx.Node):
            if value not in values:
                raise RuntimeError(f"{value.name} is read before it is defined")
            return values[value]
        return torch.device("cpu") if isinstance(value, torch.device) else value

    for node in graph.nodes:
        args, kwargs = fx.node.map_aggregate(node.args, real), fx.node.map_aggregate(node.kwargs, real)
        if node.op == "placeholder":
            values[node] = inputs[node.name]
        elif node.op == "get_attr":
            raise NotImplementedError(f"{node.name} is an attribute of the module")
        elif node.op == "output":
            return args[0]
        else:
            target = node.target
            space = getattr(target, "namespace", "")
            name = target._schema.name.split("::")[-1] if space else getattr(target, "__name__", str(target))
            if space == "_c10d_functional" and name in ("wait_tensor", "wait_tensors"):
                values[node] = args[0]
            elif space == "_c10d_functional":
                if name not in COLLECTIVES:
                    raise NotImplementedError(f"collective {name} is not emulated")
                bound = {a.name: v for a, v in zip(target._schema.arguments, args)} | kwargs
                values[node] = yield name, bound["group_name"], bound
            elif isinstance(target, torch._ops.HigherOrderOperator):
                raise NotImplementedError(f"{target} is not emulated")
            else:
                if space and torch.Tag.nondeterministic_seeded in target.tags:
                    # By name: the same numbers for the same node, and other ones when it draws again.
                    key = "" if in_order else node.name
                    draws[key] = draws.get(key, 0) + 1
                    torch.manual_seed(sum(map(ord, key)) * 1000 + draws[key])
                values[node] = target(*args, **kwargs)
                if name in ALLOCATIONS:
                    unwritten(values[node])
        # Views are left out: another may write what they see. So is memory that nobody has written yet.
        if (
            seen is not None
            and isinstance(values[node], torch.Tensor)
            and isinstance(node.target, torch._ops.OpOverload)
        ):
            if not (node.target.is_view or node.target._schema.is_mutable or name in ALLOCATIONS):
                seen[node.name] = values[node].clone()
    return None


def unwritten(tensor):
    """Fills memory that nobody wrote with a value that shows."""
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        tensor.fill_(float("nan"))
    else:
        tensor.fill_(1 if tensor.dtype is torch.bool else 77)


def fresh(tensor):
    """A result of a collective: contiguous, whatever its inputs were."""
    return tensor.clone(memory_format=torch.contiguous_format)


def reduce(tensors, how):
    """Over the ranks, in their order."""
    total = tensors[0].clone()
    for tensor in tensors[1:]:
        total = REDUCTIONS[how](total, tensor)
    return total.div(len(tensors)).to(total.dtype) if how == "avg" else total


def collective(name, calls):
    """The results of a collective, rank by rank; `calls` are the arguments by name, rank by rank."""
    first, size = calls[0], len(calls)
    key = "inputs" if "inputs" in first else "input" if "input" in first else "self"
    how = first.get("reduce_op", "").lower()
    if any(c.get("reduce_op", "").lower() != how for c in calls):
        raise RuntimeError(f"the ranks of {name} reduce in different ways")
    if any(c.get("group_size", size) != size for c in calls):
        raise RuntimeError(f"{name} says another group size than {size}")
    if name.endswith("_coalesced"):
        columns = [
            collective(name.removesuffix("_coalesced"), [c | {key: c[key][i]} for c in calls])
            for i in range(len(first[key]))
        ]
        return [[column[rank] for column in columns] for rank in range(size)]
    tensors = [c[key] for c in calls]
    if name != "all_to_all_single" and len({(t.shape, t.dtype) for t in tensors}) > 1:
        raise RuntimeError(f"the ranks give {name} different tensors: {[tuple(t.shape) for t in tensors]}")
    if name.startswith("all_gather_into_tensor"):
        # What has no dimension is gathered as one element of each rank.
        whole = torch.cat([t.contiguous().reshape(t.shape or (1,)) for t in tensors])
        if name.endswith("_out"):
            return [c["out"].copy_(whole.view(c["out"].shape)) for c in calls]
        return [fresh(whole) for _ in calls]
    if name == "reduce_scatter_tensor":
        total = reduce(tensors, how)
        return [fresh(part) for part in total.chunk(size)] if total.shape[0] else [fresh(total) for _ in calls]
    if name in ("all_reduce", "all_reduce_"):
        total = reduce(tensors, how)
        return [t.copy_(total) if name.endswith("_") else fresh(total) for t in tensors]
    if name in ("broadcast", "broadcast_"):
        source = tensors[first["src"]].clone()
        return [t.copy_(source) if name.endswith("_") else fresh(source) for t in tensors]
    pieces = [t.split(list(c["input_split_sizes"])) for t, c in zip(tensors, calls)]
    for index, c in enumerate(calls):
        if [p[index].shape[0] for p in pieces] != list(c["output_split_sizes"]):
            raise RuntimeError("the ranks of all_to_all_single disagree about the pieces")
    return [torch.cat([p[index] for p in pieces]) for index in range(size)]
