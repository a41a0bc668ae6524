"""Mock nodes of Inductor's scheduler for an exchange graph, so that its passes run without lowering and kernels.

    program = Program(document)
    with program.entered():                    # a graph handler that knows the buffers
        order = comms.sink_waits(program.nodes)
    names = program.names(order)               # the calls of the graph in the new order

They are stand-ins, and the README says so: the passes are PyTorch's own, what they work on is made here. One node
for each call (one for a cluster). Its dependencies are those that `Scheduler.compute_dependencies` makes:

- a real dependency on the current name of every buffer that it reads or writes;
- for a write, an ordering-only one on what the earlier readers of the buffer made (real, where that is a view of it);
- a wait also reads what its collective reads, and gives the collective's result a new name;
- ordering-only ones for ordering edges, and between consecutive collectives (`decide_global_ordering_of_comms`).

Random draws and effects are kept in order by ordering-only dependencies, whatever Inductor would do with them: what is
judged is what a pass does with the dependencies that it is given. Views are nodes of their own, without memory and
time; the elements of a tuple live as long as any of them, as in an FX graph.
"""

import types
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch._inductor import comms, ir, memory
from torch._inductor.dependencies import StarDep, WeakDep
from torch._inductor.scheduler import GroupedSchedulerNode
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

from .errors import Refused
from .storages import Storages


class _Stub:
    """An ir node of which the scheduler asks only the layout and the size."""

    def __init__(self, layout, size):
        self.layout, self.size = layout, size

    def get_numel(self):
        return self.size

    def get_dtype(self):
        return torch.uint8


class _Element(ir.MultiOutput):
    def __new__(cls, *args):
        return object.__new__(cls)

    def __init__(self, layout, size):
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "size", size)

    def get_numel(self):
        return self.size

    def get_dtype(self):
        return torch.uint8


def _plain(cls):
    """An instance without its constructor: passes ask for the type alone."""
    return object.__new__(cls)


class _Gemm:
    python_kernel_name = "extern_kernels.mm"


class _Compute:
    python_kernel_name = None


class _SynchronousCollective(ir._CollectiveKernel):
    python_kernel_name = "torch.ops._dtensor.shard_dim_alltoall.default"


class Buffer:
    """What PyTorch calls a SchedulerBuffer."""

    def __init__(self, name, node):
        self.name, self.node, self.users = name, node, []
        self.aliases = ()

    def get_name(self):
        return self.name

    def get_aliases(self):
        return self.aliases

    def debug_str(self):
        return self.name


class Node:
    """What PyTorch calls a BaseSchedulerNode."""

    def __init__(self, call):
        self.call, self.name = call, call.name
        self.outs, self.unmet_dependencies = [], OrderedSet()
        self.read_writes = types.SimpleNamespace(reads=OrderedSet())
        self.ancestors, self.seconds = OrderedSet(), 0.0
        self.node = _Gemm() if call.is_gemm else _Compute()
        if call.is_wait:
            self.node = _plain(ir._WaitKernel)
        elif call.is_synchronous:
            self.node = _plain(_SynchronousCollective)
        elif call.is_launch:
            self.node = _plain(ir._CollectiveKernel)

    def get_name(self):
        return self.name

    get_first_name = get_name

    def get_outputs(self):
        return self.outs

    def get_buffer_names(self):
        return OrderedSet(buffer.name for buffer in self.outs)

    def get_operation_names(self):
        return OrderedSet([self.name])

    def get_nodes(self):
        return [self]

    def get_estimated_runtime(self):
        return self.seconds * 1e9

    def add_fake_dep(self, dep):
        self.read_writes.reads.add(dep)
        self.unmet_dependencies.add(dep)

    def debug_str(self):
        return self.name

    def calls(self):
        return [self.call]

    def __repr__(self):
        return self.name


class Group(GroupedSchedulerNode):
    """A cluster: several nodes as one, as GroupedSchedulerNode has them."""

    def __init__(self, members):
        self.snodes, self.temp_grouping = members, False
        self.name = "_".join(node.name for node in members)
        self.outs = [buffer for node in members for buffer in node.outs]
        own = OrderedSet(buffer.name for buffer in self.outs)
        self.unmet_dependencies = OrderedSet(
            dep for node in members for dep in node.unmet_dependencies if dep.name not in own
        )
        reads = OrderedSet(dep for node in members for dep in node.read_writes.reads if dep.name not in own)
        self.read_writes = types.SimpleNamespace(reads=reads)
        self.ancestors, self.node = OrderedSet(), None
        self.seconds = sum(node.seconds for node in members)

    get_name: Any = Node.get_name
    get_first_name: Any = Node.get_name
    get_outputs = Node.get_outputs
    get_buffer_names: Any = Node.get_buffer_names
    get_estimated_runtime = Node.get_estimated_runtime
    debug_str = Node.debug_str
    __repr__ = Node.__repr__

    def get_operation_names(self):
        return OrderedSet(node.name for node in self.snodes)

    def get_nodes(self):
        return list(self.snodes)

    def calls(self):
        return [node.call for node in self.snodes]


class _Hints:
    @staticmethod
    def optimization_hint(value, fallback=None):
        return value

    # Its name in torch 2.9.
    size_hint = optimization_hint


class Program:
    """The nodes of a document. `callers_inputs`: every input belongs to the caller, whatever its name says."""

    def __init__(self, document, callers_inputs=False):
        self.storages = Storages(document)
        self.callers_inputs = callers_inputs
        self.real, self.renames = {}, {}
        self.buffers, self.input_bytes, self.input_names = {}, {}, {}
        # By storage the name of its first buffer; by buffer its users; by node what it shows, and all that it makes.
        self.root, self.users, self.own, self.made = {}, {}, {}, {}
        self.outputs = OrderedSet()
        self.singles = []
        last = {}
        for call in self.storages.calls:
            if call.op in ("placeholder", "get_attr"):
                self.input(call)
            elif call.op == "output":
                for source in call.inputs:
                    self.outputs.update(self.root[s.index] for s in source.shows)
            else:
                self.singles.append(self.node(call, last))
        comms_nodes = comms.decide_global_ordering_of_comms(list(self.singles), self.buffers, {})
        if comms_nodes != self.singles:
            raise Refused("decide_global_ordering_of_comms moves nodes")
        self.nodes = self.grouped(document)
        self.ancestors()
        inputs = OrderedSet(self.input_bytes)
        # What is told of the graph outputs are original names, never those of a mutation.
        self.handler = types.SimpleNamespace(
            name="",
            scheduler=types.SimpleNamespace(mutation_real_name=self.real, mutation_renames=self.renames),
            sizevars=_Hints,
            get_dep_size_hint=lambda dep: self.input_bytes.get(dep.name, 0),
            graph_inputs=dict.fromkeys(inputs),
            get_output_names=lambda: list(self.outputs),
        )
        self.inputs = inputs
        self.fused = {node.get_name(): node for node in self.nodes}

    # -- building

    def input(self, call):
        for storage in call.shows:
            if storage.index in self.root:
                continue
            name = call.name if len(call.shows) == 1 else f"{call.name}.{storage.place}"
            if call.op == "get_attr" or self.callers_inputs:
                # A name by which Inductor knows what it must never free.
                name = f"arg_{len(self.input_bytes)}_{name}"
            self.root[storage.index] = name
            self.input_bytes[name] = storage.bytes if self.storages.counts(storage) else 0
            self.users[name] = []
        self.own[call.name] = []

    def current(self, name):
        while name in self.renames:
            name = self.renames[name]
        return name

    def buffer(self, node, layout, size, cls=_Stub, aliases=()):
        buffer = Buffer(f"buf{len(self.buffers)}", cls(_plain(layout), size))
        buffer.aliases = aliases
        self.buffers[buffer.name] = buffer
        self.users[buffer.name] = []
        node.outs.append(buffer)
        return buffer

    def read(self, node, name):
        """A real dependency on the current name of a buffer."""
        name = self.current(name)
        dep = StarDep(name)
        node.read_writes.reads.add(dep)
        if name not in self.input_bytes:
            node.unmet_dependencies.add(dep)
        if node not in self.users[name]:
            self.users[name].append(node)

    def fake(self, node, name, real=False):
        if name in self.input_bytes:
            return
        if any(buffer.name == name for buffer in node.outs):
            return
        node.add_fake_dep(WeakDep(name, mutating_buf=node.outs[0].name if node.outs else node.name, is_fake=not real))

    def node(self, call, last):
        node = Node(call)
        node.seconds = self.seconds(call)
        counts = self.storages.counts
        fresh = set(map(id, call.fresh))
        mutated = [s for s in dict.fromkeys(call.writes) if id(s) not in fresh]
        # Values, elements of tuples, views.
        if call.is_tuple and fresh:
            parent = self.buffer(node, ir.MultiOutputLayout, 0)
            parent.users.append(types.SimpleNamespace(node=node))
            for storage in call.shows:
                if id(storage) in fresh:
                    size = storage.bytes if counts(storage) else 0
                    element = self.buffer(node, ir.FixedLayout, size, _Element)
                    self.root[storage.index] = element.name
        else:
            for storage in call.shows:
                if id(storage) in fresh:
                    size = storage.bytes if counts(storage) else 0
                    self.root[storage.index] = self.buffer(node, ir.FixedLayout, size).name
                elif storage not in mutated:
                    root = self.root[storage.index]
                    self.buffer(node, ir.NoneLayout, 0, aliases=(root, self.current(root)))
        names = []
        for storage in mutated:
            renamed = self.buffer(node, ir.NoneLayout, 0, aliases=(self.root[storage.index],))
            names.append((self.root[storage.index], renamed.name))
        if not node.outs:
            self.buffer(node, ir.NoneLayout, 0)
        # Whoever wrote or read before a write.
        for root, _ in names:
            name = self.current(root)
            self.read(node, name)
            for user in list(self.users[name]):
                if user is node:
                    continue
                for buffer in user.outs:
                    self.fake(node, self.current(buffer.name), real=name in buffer.aliases)
        # What it reads: the memory, and the node that shows it.
        for source in call.inputs:
            for storage in source.shows:
                self.read(node, self.root[storage.index])
            for buffer in self.own[source.name]:
                self.read(node, buffer.name)
        for storage in call.releases:
            self.read(node, self.root[storage.index])
        if call.launch is not None:
            for buffer in self.own[call.launch.name]:
                self.read(node, buffer.name)
        for name in call.after:
            for buffer in self.made.get(name, ()):
                self.fake(node, buffer.name)
        for kind, has in (("draw", call.draws), ("effect", call.effect)):
            if has:
                for buffer in last[kind].outs if kind in last else ():
                    self.fake(node, buffer.name)
                last[kind] = node
        for root, renamed in names:
            name = self.current(root)
            self.renames[name] = renamed
            self.renames[root] = renamed
            self.real[renamed] = root
        self.made[call.name] = node.outs
        # A new name of somebody else's buffer is found through that buffer.
        self.own[call.name] = [b for b in node.outs if b.name not in self.real]
        return node

    def seconds(self, call):
        """A plain model: 3 TB/s of memory, 100 GB/s and 10 us for communication; views and waits take nothing."""
        if call.is_wait or (not call.fresh and not call.writes):
            return 0.0
        moved = sum(s.bytes for s in {id(s): s for i in [call, *call.inputs] for s in i.shows}.values())
        if call.is_launch or call.is_synchronous:
            return 1e-5 + moved / 1e11
        return moved / 3e12

    def grouped(self, document):
        clusters = document.get("clusters") or []
        if not clusters:
            return list(self.singles)
        member_of = {}
        for index, cluster in enumerate(clusters):
            for name in cluster["members"]:
                if member_of.setdefault(name, index) != index:
                    raise Refused(f"{name} is in two clusters")
        nodes, places = [], {}
        for node in self.singles:
            index = member_of.get(node.name)
            if index is None:
                nodes.append(node)
            elif index not in places:
                places[index] = len(nodes)
                nodes.append([node])
            elif places[index] == len(nodes) - 1:
                nodes[-1].append(node)
            else:
                raise Refused(f"the members of cluster {clusters[index]['name']} do not stand together")
        return [Group(node) if isinstance(node, list) else node for node in nodes]

    def ancestors(self):
        """As `Scheduler.compute_ancestors`: names of operations, by all dependencies."""
        maker = {buffer.name: node for node in self.nodes for buffer in node.outs}
        for node in self.nodes:
            for dep in node.unmet_dependencies:
                before = maker[dep.name]
                node.ancestors.update(before.get_operation_names())
                node.ancestors.update(before.ancestors)

    # -- running

    @contextmanager
    def entered(self):
        """PyTorch's graph handler, with planning information on every buffer and node."""
        with ExitStack() as stack:
            stack.enter_context(V.set_graph_handler(self.handler))
            yield self

    def plan(self):
        """`prepare_planning_info`: the peak of the given order, and the inputs that are freed."""
        return memory.prepare_planning_info(self.nodes, self.buffers, self.fused, self.inputs, self.outputs)

    def names(self, order):
        """The calls of the graph in the order of `order`."""
        return [call.name for node in order for call in node.calls()]

    def kept_bytes(self):
        """Bytes of the inputs that Inductor never counts, because the caller keeps them."""
        kept = ("primals_", "arg", "fwd_rng_state", "bwd_rng_state", "tangents")
        return sum(size for name, size in self.input_bytes.items() if name.startswith(kept))


def reordered(document, names):
    """The document with its calls in another order; inputs stay first, the output last."""
    entries = {entry["name"]: entry for entry in document["nodes"]}
    first = [e for e in document["nodes"] if e["op"] in ("placeholder", "get_attr")]
    last = [e for e in document["nodes"] if e["op"] == "output"]
    calls = [entries[name] for name in names]
    return {**document, "nodes": [*first, *calls, *last]}
