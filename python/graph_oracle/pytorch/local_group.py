"""All ranks of a world as processes of this machine that communicate through gloo: real kernels and real collectives.

    outcomes = run(rebuilt, inputs)       # rank by rank; None where gloo has no form of a collective that the graph has

The processes are forked once, and stay: a world of fewer ranks uses the first of them. A process group is made once for
each list of ranks, and then known by the names that a graph uses. At the start the processes try which collectives gloo
has for which dtypes, so that no rank fails in the middle of a graph while others wait.

Results of `empty` are filled with a value that shows, as in emulate.py.
"""

import atexit
import multiprocessing.connection
import os
import shutil
import tempfile
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import fx
from torch.distributed import distributed_c10d as c10d

from .emulate import ALLOCATIONS, unwritten
from .groups import leave, members

# Seconds for one graph on all ranks.
_PATIENCE = 60.0
# The largest world: a process is a copy of this one, which shares its memory until it writes to it.
MOST_RANKS = 8
_DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
)
_REDUCTIONS = ("sum", "avg", "product", "min", "max", "band", "bor", "bxor")
_pool = None


class RankFailed(Exception):
    """A rank ended in an exception: its class, its message and its traceback."""

    def __init__(self, rank, kind, message, trace):
        super().__init__(f"rank {rank}: {kind}: {message}")
        self.trace = trace


def run(rebuilt, inputs):
    """What each rank's `execute.run_rank` gives; `inputs` are those of the request."""
    global _pool
    size = rebuilt.world
    if size > MOST_RANKS:
        return None
    if _pool is None or _pool.size < size:
        close()
        _pool = _Pool(max(size, 4))
    if not _pool.has(rebuilt):
        return None
    try:
        return _pool.run(rebuilt.document, inputs)
    except Exception:
        # Other ranks may wait for the one that failed.
        close()
        raise


def close():
    """Ends the processes."""
    global _pool
    if _pool is not None:
        _pool.close()
        _pool = None


atexit.register(close)


class _Pool:
    def __init__(self, size):
        self.size, self.folder = size, tempfile.mkdtemp(prefix="graph-oracle-gloo-")
        self.ends, self.processes = [], []
        path = os.path.join(self.folder, "store")
        for rank in range(size):
            mine, theirs = multiprocessing.connection.Pipe()
            process = os.fork()
            if process == 0:
                _serve(rank, size, path, theirs)
            theirs.close()
            self.ends.append(mine)
            self.processes.append(process)
        self.known = self.answers(range(size))[0]

    def has(self, rebuilt):
        """Whether gloo has every collective of a graph."""
        return all(key in self.known for key in collectives(rebuilt))

    def run(self, document, inputs):
        ranks = range(len(inputs))
        for rank in ranks:
            self.ends[rank].send((document, inputs[rank]))
        return self.answers(ranks)

    def answers(self, ranks):
        found = []
        for rank in ranks:
            if not self.ends[rank].poll(_PATIENCE):
                raise RankFailed(rank, "Timeout", f"no result within {_PATIENCE:g} s", "")
            kind, *rest = self.ends[rank].recv()
            if kind == "failed":
                raise RankFailed(rank, *rest)
            found.append(rest[0])
        return found

    def close(self):
        for end in self.ends:
            end.close()
        for process in self.processes:
            try:
                os.kill(process, 9)
                os.waitpid(process, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        shutil.rmtree(self.folder, ignore_errors=True)


def collectives(rebuilt):
    """What a graph asks gloo for: operator, reduction, dtype."""
    for node in rebuilt.graph.nodes:
        if getattr(node.target, "namespace", "") != "_c10d_functional":
            continue
        name = node.target._schema.name.split("::")[-1]
        if name in ("wait_tensor", "wait_tensors"):
            continue
        arguments = [*node.args, *node.kwargs.values()]
        how = next((a.lower() for a in arguments if isinstance(a, str) and a.lower() in _REDUCTIONS), None)
        given = arguments[0] if isinstance(arguments[0], (list, tuple)) else [arguments[0]]
        values = [one.meta["val"] for one in given]
        # Gathers know no tensor without dimensions: gloo makes all of them of its coalesced form.
        is_gather = name.startswith("all_gather") or name.endswith("_coalesced")
        scalars = is_gather and any(value.dim() == 0 for value in values)
        yield name, how, None if scalars else _name(values[0].dtype)


# ---------------------------------------------------------------------------------------------------------------
# In the process of a rank


def _serve(rank, size, path, end):
    """The life of a rank's process."""
    status = 1
    try:
        # Descriptors of the worker, of which the driver watches the ends.
        for number in os.listdir("/proc/self/fd"):
            if int(number) > 2 and int(number) != end.fileno():
                try:
                    os.close(int(number))
                except OSError:
                    pass
        leave()
        store = dist.FileStore(path, size)
        patience = timedelta(seconds=_PATIENCE)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=patience)
        groups = _Groups(rank, store)
        end.send(("done", _probe(rank, size, groups)))
        while True:
            document, inputs = end.recv()
            end.send(_answer(document, inputs, rank, groups))
    except (EOFError, BrokenPipeError):
        status = 0
    except BaseException as error:
        try:
            end.send(_failed(error))
        except OSError:
            pass
    finally:
        os._exit(status)


def _failed(error):
    return "failed", type(error).__name__, str(error), "".join(traceback.format_exception(error))


def _answer(document, inputs, rank, groups):
    from .passes.execute import run_rank
    from .rebuild import rebuild

    try:
        rebuilt = rebuild(document, rank, after="ignored", enter=False)
        groups.name(members(document, rank))
        return "done", run_rank(rebuilt, inputs, rank, execute)
    except Exception as error:
        return _failed(error)


def execute(graph, inputs):
    """Runs a graph from top to bottom, on tensors of the CPU."""
    values = {}

    def real(value):
        if isinstance(value, fx.Node):
            return values[value]
        return torch.device("cpu") if isinstance(value, torch.device) else value

    for node in graph.nodes:
        args, kwargs = fx.node.map_aggregate(node.args, real), fx.node.map_aggregate(node.kwargs, real)
        if node.op == "placeholder":
            values[node] = inputs[node.name]
        elif node.op == "output":
            return args[0]
        else:
            values[node] = node.target(*args, **kwargs)
            if getattr(node.target, "namespace", "") and node.target._schema.name.split("::")[-1] in ALLOCATIONS:
                unwritten(values[node])
    return None


class _Groups:
    """gloo groups by their ranks, and the names under which they are known."""

    def __init__(self, rank, store):
        self.rank, self.store, self.made, self.names = rank, store, {}, []
        self.default = c10d._get_default_group()

    def get(self, ranks):
        group = self.made.get(ranks)
        if group is None:
            name = "graph-oracle:" + ",".join(map(str, ranks))
            group, _ = c10d._new_process_group_helper(
                len(ranks),
                ranks.index(self.rank),
                list(ranks),
                "gloo",
                dist.PrefixStore(name, self.store),
                name,
                timeout=timedelta(seconds=_PATIENCE),
            )
            c10d._world.pg_group_ranks[group] = {r: index for index, r in enumerate(ranks)}
            self.made[ranks] = group
        return group

    def name(self, wanted):
        """Makes the groups of a graph known: `wanted` are the ranks by name."""
        for name in self.names:
            c10d._unregister_process_group(name)
        self.names = []
        taken = c10d._world.pg_names[self.default]
        if taken in wanted:
            c10d._unregister_process_group(taken)
            c10d._world.pg_names[self.default] = "graph-oracle: the world"
        # In one order on all ranks: making a group waits for its other members.
        for ranks in sorted(set(wanted.values())):
            self.get(ranks)
        for name, ranks in wanted.items():
            c10d._register_process_group(name, self.get(ranks))
            self.names.append(name)


def _probe(rank, size, groups):
    """Which collectives gloo has: operator, reduction, dtype."""
    groups.name({"probe": tuple(range(size))})
    found, ops = set(), torch.ops._c10d_functional
    for dtype in _DTYPES:
        x = torch.ones(size, 2).to(dtype)
        plain = {
            "all_gather_into_tensor": lambda: ops.all_gather_into_tensor(x, size, "probe"),
            "all_gather_into_tensor_out": lambda: ops.all_gather_into_tensor_out(
                x, size, "probe", out=torch.zeros(size * size, 2).to(dtype)
            ),
            "all_gather_into_tensor_coalesced": lambda: ops.all_gather_into_tensor_coalesced([x, x], size, "probe"),
            "all_to_all_single": lambda: ops.all_to_all_single(x, [1] * size, [1] * size, "probe"),
            "broadcast": lambda: ops.broadcast(x, 0, "probe"),
            "broadcast_": lambda: ops.broadcast_(x.clone(), 0, "probe"),
        }
        for name, call in plain.items():
            if _works(call):
                found.add((name, None, _name(dtype)))
        for how in _REDUCTIONS:
            reducing = {
                "reduce_scatter_tensor": lambda: ops.reduce_scatter_tensor(x, how, size, "probe"),
                "reduce_scatter_tensor_coalesced": lambda: ops.reduce_scatter_tensor_coalesced(
                    [x, x], how, size, "probe"
                ),
                "all_reduce": lambda: ops.all_reduce(x, how, "probe"),
                "all_reduce_": lambda: ops.all_reduce_(x.clone(), how, "probe"),
                "all_reduce_coalesced": lambda: ops.all_reduce_coalesced([x, x], how, "probe"),
            }
            for name, call in reducing.items():
                # Gloo of torch 2.8 scatters the sum where the average is asked for.
                if _works(call, 1 if how == "avg" else None):
                    found.add((name, how, _name(dtype)))
    return found


def _works(call, expected=None):
    """Whether a collective on ones runs, and gives the number that is expected."""
    try:
        value = call()
        results = value if isinstance(value, (list, tuple)) else [value]
        results = [torch.ops._c10d_functional.wait_tensor(one) for one in results]
        return expected is None or all(bool((one == expected).all()) for one in results)
    except (RuntimeError, ValueError, NotImplementedError):
        # On all ranks alike: it is the operator that has no form for the dtype.
        return False


def _name(dtype):
    return str(dtype).removeprefix("torch.")
