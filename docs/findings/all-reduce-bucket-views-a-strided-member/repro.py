"""A bucket of all-reduces flattens a member with view, which its strides do not allow after all-gathers were bucketed.

Pass bucketing with kind=all mode=coalesced selection=adjacent, PyTorch 2.15.0+cu132; breaks rewrite/metadata.
Needs torch alone. Exit status 1 if the failure shows, else 0.
"""

import operator
import sys
import traceback
import warnings

import torch
import torch.distributed as dist
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed import distributed_c10d
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import CheckpointPolicy
from torch._inductor.fx_passes import bucketing
from torch._inductor.pattern_matcher import stable_topological_sort

warnings.filterwarnings("ignore")
WORLD = 4
GROUPS = {"dp": [[0, 1], [2, 3]], "tp": [[0, 2], [1, 3]], "pp": [[0, 3], [1, 2]]}


def build(mode, more=False):
    """The graph before the pass."""
    graph = fx.Graph()
    x0 = placeholder(graph, mode, 'x0', [1, 1, 9], torch.float64, 'cuda:0')
    x1 = placeholder(graph, mode, 'x1', [7], torch.float64, 'cuda:0')
    x2 = placeholder(graph, mode, 'x2', [2, 2], torch.float64, 'cuda:0')
    x3 = placeholder(graph, mode, 'x3', [2, 2], torch.float64, 'cuda:0')
    x4 = placeholder(graph, mode, 'x4', [2, 2], torch.float64, 'cuda:0')
    x5 = placeholder(graph, mode, 'x5', [1, 5], torch.float64, 'cuda:0')
    x6 = placeholder(graph, mode, 'x6', [1, 5], torch.float64, 'cuda:0')
    x7 = placeholder(graph, mode, 'x7', [1, 5], torch.float64, 'cuda:0')
    g0 = call(graph, mode, 'g0', torch.ops._c10d_functional.all_gather_into_tensor.default, (x0, 2, 'tp'), {})
    g0.meta['custom'] = {'scope': 'a'}
    g0.meta['nn_module_stack'] = {'layers.0': ('layers.0', 'torch.nn.Module')}
    w0 = call(graph, mode, 'w0', torch.ops._c10d_functional.wait_tensor.default, (g0,), {})
    w0.meta['custom'] = {'scope': 'a'}
    w0.meta['nn_module_stack'] = {'layers.0': ('layers.0', 'torch.nn.Module')}
    g1 = call(graph, mode, 'g1', torch.ops._c10d_functional.all_gather_into_tensor.default, (x1, 2, 'tp'), {})
    g1.meta['custom'] = {'scope': 'a'}
    g1.meta['nn_module_stack'] = {'layers.0': ('layers.0', 'torch.nn.Module')}
    w1 = call(graph, mode, 'w1', torch.ops._c10d_functional.wait_tensor.default, (g1,), {})
    w1.meta['custom'] = {'scope': 'a'}
    w1.meta['nn_module_stack'] = {'layers.0': ('layers.0', 'torch.nn.Module')}
    t0 = call(graph, mode, 't0', torch.ops.prims.convert_element_type.default, (w1, torch.float64), {})
    t0.meta['custom'] = {'scope': 'a'}
    t0.meta['nn_module_stack'] = {'layers.0': ('layers.0', 'torch.nn.Module')}
    t2 = call(graph, mode, 't2', torch.ops.aten.mm.default, (x2, x3), {})
    t2.meta['custom'] = {'scope': 'b'}
    t2.meta['nn_module_stack'] = {'layers.0': ('layers.0', 'torch.nn.Module')}
    r0 = call(graph, mode, 'r0', torch.ops._c10d_functional.all_reduce.default, (t2, 'sum', 'tp'), {})
    r0.meta['custom'] = {'scope': 'b'}
    r0.meta['nn_module_stack'] = {'layers.0': ('layers.0', 'torch.nn.Module')}
    w3 = call(graph, mode, 'w3', torch.ops._c10d_functional.wait_tensor.default, (r0,), {})
    w3.meta['custom'] = {'scope': 'b'}
    w3.meta['nn_module_stack'] = {'layers.0': ('layers.0', 'torch.nn.Module')}
    t3 = call(graph, mode, 't3', torch.ops.aten.relu.default, (w3,), {})
    t3.meta['custom'] = {'scope': 'b'}
    t3.meta['nn_module_stack'] = {'layers.0': ('layers.0', 'torch.nn.Module')}
    t4 = call(graph, mode, 't4', torch.ops.aten.mm.default, (t3, x4), {})
    t4.meta['custom'] = {'scope': 'b'}
    t4.meta['nn_module_stack'] = {'layers.1': ('layers.1', 'torch.nn.Module')}
    r1 = call(graph, mode, 'r1', torch.ops._c10d_functional.all_reduce.default, (t4, 'sum', 'tp'), {})
    r1.meta['custom'] = {'scope': 'b'}
    r1.meta['nn_module_stack'] = {'layers.1': ('layers.1', 'torch.nn.Module')}
    w4 = call(graph, mode, 'w4', torch.ops._c10d_functional.wait_tensor.default, (r1,), {})
    w4.meta['custom'] = {'scope': 'b'}
    w4.meta['nn_module_stack'] = {'layers.1': ('layers.1', 'torch.nn.Module')}
    t5 = call(graph, mode, 't5', torch.ops.aten.relu.default, (w4,), {})
    t5.meta['custom'] = {'scope': 'b'}
    t5.meta['nn_module_stack'] = {'layers.1': ('layers.1', 'torch.nn.Module')}
    g2 = call(graph, mode, 'g2', torch.ops._c10d_functional.all_gather_into_tensor.default, (x5, 2, 'tp'), {})
    g2.meta['custom'] = {'scope': 'a'}
    g2.meta['nn_module_stack'] = {'layers.0': ('layers.0', 'torch.nn.Module')}
    w5 = call(graph, mode, 'w5', torch.ops._c10d_functional.wait_tensor.default, (g2,), {})
    w5.meta['custom'] = {'scope': 'a'}
    w5.meta['nn_module_stack'] = {'layers.0': ('layers.0', 'torch.nn.Module')}
    r2 = call(graph, mode, 'r2', torch.ops._c10d_functional.all_reduce.default, (w5, 'sum', 'tp'), {})
    r2.meta['custom'] = {'scope': 'a'}
    r2.meta['nn_module_stack'] = {'layers.0': ('layers.0', 'torch.nn.Module')}
    t6 = call(graph, mode, 't6', torch.ops.aten.mul.Tensor, (w5, 2), {})
    t6.meta['custom'] = {'scope': 'a'}
    t6.meta['nn_module_stack'] = {'layers.0': ('layers.0', 'torch.nn.Module')}
    w6 = call(graph, mode, 'w6', torch.ops._c10d_functional.wait_tensor.default, (r2,), {})
    w6.meta['custom'] = {'scope': 'a'}
    w6.meta['nn_module_stack'] = {'layers.0': ('layers.0', 'torch.nn.Module')}
    g3 = call(graph, mode, 'g3', torch.ops._c10d_functional.all_gather_into_tensor.default, (x6, 2, 'tp'), {})
    g3.meta['custom'] = {'scope': 'a'}
    g3.meta['nn_module_stack'] = {'layers.1': ('layers.1', 'torch.nn.Module')}
    w7 = call(graph, mode, 'w7', torch.ops._c10d_functional.wait_tensor.default, (g3,), {})
    w7.meta['custom'] = {'scope': 'a'}
    w7.meta['nn_module_stack'] = {'layers.1': ('layers.1', 'torch.nn.Module')}
    t7 = call(graph, mode, 't7', torch.ops.aten.mul.Tensor, (w7,), {'other': t6})
    t7.meta['custom'] = {'scope': 'a'}
    t7.meta['nn_module_stack'] = {'layers.1': ('layers.1', 'torch.nn.Module')}
    r3 = call(graph, mode, 'r3', torch.ops._c10d_functional.all_reduce.default, (t7, 'sum', 'tp'), {})
    r3.meta['custom'] = {'scope': 'a'}
    r3.meta['nn_module_stack'] = {'layers.1': ('layers.1', 'torch.nn.Module')}
    t8 = call(graph, mode, 't8', torch.ops.aten.mul.Tensor, (t7, 2), {})
    t8.meta['custom'] = {'scope': 'a'}
    t8.meta['nn_module_stack'] = {'layers.1': ('layers.1', 'torch.nn.Module')}
    w8 = call(graph, mode, 'w8', torch.ops._c10d_functional.wait_tensor.default, (r3,), {})
    w8.meta['custom'] = {'scope': 'a'}
    w8.meta['nn_module_stack'] = {'layers.1': ('layers.1', 'torch.nn.Module')}
    g4 = call(graph, mode, 'g4', torch.ops._c10d_functional.all_gather_into_tensor.default, (x7, 2, 'tp'), {})
    g4.meta['custom'] = {'scope': 'a'}
    g4.meta['nn_module_stack'] = {'layers.2': ('layers.2', 'torch.nn.Module')}
    w9 = call(graph, mode, 'w9', torch.ops._c10d_functional.wait_tensor.default, (g4,), {})
    w9.meta['custom'] = {'scope': 'a'}
    w9.meta['nn_module_stack'] = {'layers.2': ('layers.2', 'torch.nn.Module')}
    t9 = call(graph, mode, 't9', torch.ops.aten.mul.Tensor, (w9, t8), {})
    t9.meta['custom'] = {'scope': 'a'}
    t9.meta['nn_module_stack'] = {'layers.2': ('layers.2', 'torch.nn.Module')}
    r4 = call(graph, mode, 'r4', torch.ops._c10d_functional.all_reduce.default, (t9, 'sum', 'tp'), {})
    r4.meta['custom'] = {'scope': 'a'}
    r4.meta['nn_module_stack'] = {'layers.2': ('layers.2', 'torch.nn.Module')}
    t10 = call(graph, mode, 't10', torch.ops.aten.mul.Tensor, (t9, 2), {})
    t10.meta['custom'] = {'scope': 'a'}
    t10.meta['nn_module_stack'] = {'layers.2': ('layers.2', 'torch.nn.Module')}
    w10 = call(graph, mode, 'w10', torch.ops._c10d_functional.wait_tensor.default, (r4,), {})
    w10.meta['custom'] = {'scope': 'a'}
    w10.meta['nn_module_stack'] = {'layers.2': ('layers.2', 'torch.nn.Module')}
    graph.output(returned(graph, (), more))
    return fx.GraphModule(torch.nn.Module(), graph)


def run_pass(module, mode):
    """PyTorch's pass, as PyTorch calls it."""
    bucketing.deduplicate_wait_tensors(module.graph)
    cap = lambda index: 2000.0  # MB by bucket
    bucketing.bucket_reduce_scatter(module, cap, 'coalesced')
    bucketing.bucket_all_reduce(module, cap, 'coalesced')
    bucketing.bucket_all_gather(module, cap, 'coalesced')
    stable_topological_sort(module.graph)
    return [module]


# ---------------------------------------------------------------------------------------------------------------
# Tools


def placeholder(graph, mode, name, shape, dtype=None, device=None, stride=None):
    node = graph.placeholder(name)
    if dtype is None:
        node.meta["val"] = shape
    else:
        with mode:
            fill = torch.empty_strided(shape, stride, dtype=dtype, device=device) if stride else None
            node.meta["val"] = torch.empty(shape, dtype=dtype, device=device) if fill is None else fill
    return node


def call(graph, mode, name, target, args, kwargs):
    node = graph.create_node("call_function", target, args, kwargs, name)
    value = lambda a: a.meta.get("val") if isinstance(a, fx.Node) else a
    known = [n for n in node.all_input_nodes if "val" in n.meta]
    if len(known) == len(node.all_input_nodes):
        with mode, torch.no_grad():
            node.meta["val"] = target(*fx.node.map_aggregate(args, value), **fx.node.map_aggregate(kwargs, value))
    return node


def returned(graph, values, more):
    """What the graph returns; with `more` also every wait and every value that nobody reads, so that they are compared."""
    if not more:
        return values
    wait = torch.ops._c10d_functional.wait_tensor.default
    calls = graph.find_nodes(op="call_function", target=wait) + [n for n in graph.nodes if n.op == "call_function" and not n.users]
    tensors = [n for n in dict.fromkeys(calls) if isinstance(n.meta.get("val"), torch.Tensor) and n not in flat(values)]
    return (*flat(values), *tensors)


def enter(rank):
    """Makes this process a rank of the world: fake process groups, which resolve and do not communicate."""
    from datetime import timedelta

    if dist.is_initialized():
        dist.destroy_process_group()
    store = FakeStore()
    dist.init_process_group("fake", store=store, rank=rank, world_size=WORLD)
    world = distributed_c10d._get_default_group()
    taken = distributed_c10d._world.pg_names[world]
    if taken in GROUPS and GROUPS[taken] != [list(range(WORLD))]:
        distributed_c10d._unregister_process_group(taken)
        distributed_c10d._world.pg_names[world] = "the world"
    for name, instances in GROUPS.items():
        ranks = next(instance for instance in instances if rank in instance)
        if name != taken or GROUPS[taken] != [list(range(WORLD))]:
            group, _ = distributed_c10d._new_process_group_helper(
                len(ranks), ranks.index(rank), list(ranks), "fake", store, name, timeout=timedelta(minutes=1)
            )
            distributed_c10d._world.pg_group_ranks[group] = {r: index for index, r in enumerate(ranks)}


def fail(line):
    print(f"FAILS: {line}")
    sys.exit(1)


def flat(value):
    return [leaf for v in value for leaf in flat(v)] if isinstance(value, (list, tuple)) else [value]


def random_inputs(module, rank):
    """Tensors for the placeholders, other ones on each rank."""
    generator, found = torch.Generator().manual_seed(1000 + rank), {}
    for node in module.graph.find_nodes(op="placeholder"):
        value = node.meta["val"]
        if isinstance(value, torch.Tensor):
            numbers = torch.randint(-8, 9, value.shape, generator=generator) if value.dtype.is_floating_point else (
                torch.randint(0, 2, value.shape, generator=generator))
            made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
            value = made.copy_(numbers / 4 if value.dtype.is_floating_point else numbers)
        found[node.name] = value
    return found


def clones(inputs):
    return [{k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in given.items()} for given in inputs]


def compare(expected, found):
    for rank, (one, other) in enumerate(zip(expected, found)):
        if len(one) != len(other):
            fail(f"rank {rank} returns {len(other)} values instead of {len(one)}")
        for index, (a, b) in enumerate(zip(one, other)):
            if not same(a, b):
                fail(f"value {index} of rank {rank} is {b}, and before the pass it was {a}".replace("\n", " "))


def compare_nodes(expected, found):
    for rank, (one, other) in enumerate(zip(expected, found)):
        for name, a in one.items():
            if name in other and not same(a, other[name]):
                fail(f"{name} on rank {rank} is {other[name]}, and before the pass it was {a}".replace("\n", " "))


def same(a, b):
    """Equal in all bits, but that not-a-numbers are one."""
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return type(a) is type(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.is_floating_point:
        a, b = (t.to(torch.float64).nan_to_num(12345.0) for t in (a, b))
    return torch.equal(a, b)


COLLECTIVES = {
    "all_gather_into_tensor", "all_gather_into_tensor_out", "all_gather_into_tensor_coalesced",
    "reduce_scatter_tensor", "reduce_scatter_tensor_coalesced", "all_reduce", "all_reduce_", "all_reduce_coalesced",
    "all_to_all_single", "broadcast", "broadcast_",
}
ALLOCATIONS = ("empty", "new_empty", "empty_strided", "new_empty_strided", "empty_like")
REDUCTIONS = {
    "sum": torch.add, "avg": torch.add, "product": torch.mul, "min": torch.minimum, "max": torch.maximum,
    "band": torch.bitwise_and, "bor": torch.bitwise_or, "bxor": torch.bitwise_xor,
}


def run_ranks(graphs, inputs, groups, seen=None, draws=None):
    """The outputs of each rank. `graphs`: one for each rank; `inputs`: the placeholders' tensors by name, for each
    rank; `groups`: by name, the rank lists of its instances. `seen`: for each rank a dict that gets what every node
    gave, by name. `draws`: for each rank a dict that counts draws of random numbers; runs that share it go on counting."""
    draws = draws or [{} for _ in graphs]
    running = {rank: _rank(graph, inputs[rank], seen and seen[rank], draws[rank]) for rank, graph in enumerate(graphs)}
    outputs, waiting = [None] * len(graphs), {}
    arrived = {rank: None for rank in running}
    while running:
        for rank, value in arrived.items():
            try:
                waiting[rank] = running[rank].send(value)
            except StopIteration as stop:
                outputs[rank] = stop.value
                del running[rank]
        arrived = {}
        for rank, (name, group, arguments) in sorted(waiting.items()):
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


def _rank(graph, inputs, seen, draws):
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
                    # The same numbers for the same node, and other ones when it draws again.
                    draws[node.name] = draws.get(node.name, 0) + 1
                    torch.manual_seed(sum(map(ord, node.name)) * 1000 + draws[node.name])
                values[node] = target(*args, **kwargs)
                if name in ALLOCATIONS:
                    unwritten(values[node])
        # Views are left out: another may write what they see. So is memory that nobody has written yet.
        if seen is not None and isinstance(values[node], torch.Tensor) and isinstance(node.target, torch._ops.OpOverload):
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
        columns = [collective(name.removesuffix("_coalesced"), [c | {key: c[key][i]} for c in calls])
                   for i in range(len(first[key]))]
        return [[column[rank] for column in columns] for rank in range(size)]
    tensors = [c[key] for c in calls]
    if name != "all_to_all_single" and len({(t.shape, t.dtype) for t in tensors}) > 1:
        raise RuntimeError(f"the ranks give {name} different tensors: {[tuple(t.shape) for t in tensors]}")
    if name.startswith("all_gather_into_tensor"):
        whole = torch.cat([t.contiguous() for t in tensors])
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


def run(more):
    before, after = [], []
    for rank in range(WORLD):
        enter(rank)
        mode = FakeTensorMode()
        before.append(build(mode, more))
        try:
            after.append(run_pass(build(mode, more), mode))
        except Exception as error:
            traceback.print_exc()
            fail(f"the pass raises {type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}")
        for module in after[-1]:
            try:
                module.graph.lint()
            except Exception as error:
                fail(f"the graph after the pass does not lint: {str(error).strip().splitlines()[0]}")
    seen, seen_after = [{} for _ in range(WORLD)], [{} for _ in range(WORLD)]
    inputs = [random_inputs(before[0], rank) for rank in range(WORLD)]
    try:
        expected = run_ranks([module.graph for module in before], copies := clones(inputs), GROUPS, seen)
    except NotImplementedError as error:
        return print(f"the graphs are well formed; their values are not compared: {error}")
    expected = [[*flat(out), *given.values()] for out, given in zip(expected, copies)]

    try:
        found = run_ranks([modules[0].graph for modules in after], copies := clones(inputs), GROUPS, seen_after)
    except NotImplementedError as error:
        return print(f"the graphs are well formed; their values are not compared: {error}")
    except RuntimeError as error:
        fail(f"after the pass the graph does not run: {error}")
    compare(expected, [[*flat(out), *given.values()] for out, given in zip(found, copies)])
    # Nodes that the pass left in place compute what they did before.
    compare_nodes(seen, seen_after)


for more in (False, True):
    run(more)
print("the failure does not show")
