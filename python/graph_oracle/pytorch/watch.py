"""Judges the passes of a running torch.compile: `watch()`.

    with graph_oracle.watch() as seen:
        torch.compile(model)(x).sum().backward()
    assert seen

Watched are, wherever Inductor and AOTAutograd call them: the bucketing passes (with the sort that must repair what they
leave), the partitioners, and `stable_topological_sort` where it changes the order. Nothing else is
changed: the passes get and give what they always did. At the end a report goes to standard error.
"""

import sys
from contextlib import contextmanager

from ..judge import CannotJudge, check_pair

BUCKETING = {
    "torch._inductor.fx_passes.bucketing": ["bucket_all_gather", "bucket_reduce_scatter", "bucket_all_reduce"],
    "torch._inductor.fx_passes.fsdp": [
        "bucket_fsdp_all_gather", "bucket_fsdp_reduce_scatter", "bucket_fsdp_all_reduce", "pre_bucket_fsdp_collectives",
    ],
}
PARTITIONERS = {
    "torch._functorch.partitioners": ["default_partition", "min_cut_rematerialization_partition"],
}
SORTS = {"torch._inductor.pattern_matcher": ["stable_topological_sort"]}


class Seen:
    """`verdicts` of all passes that ran: `violated` those that found something, `undecided` those that could not tell (a refusal
    is among them). `problems`: what could not be judged. True if each pass that ran was found sound.
    """

    def __init__(self):
        self.verdicts, self.problems = [], []

    @property
    def violated(self):
        return [verdict for verdict in self.verdicts if verdict.verdict == "violated"]

    @property
    def undecided(self):
        return [verdict for verdict in self.verdicts if not verdict.decided]

    def __bool__(self):
        return bool(self.verdicts) and all(self.verdicts) and not self.problems

    def __str__(self):
        head = f"graph-oracle watched {len(self.verdicts)} passes, {len(self.violated)} of them wrong"
        if self.undecided:
            head += f", {len(self.undecided)} undecided"
        if self.problems:
            head += f", {len(self.problems)} could not be judged"
        told = [str(verdict) for verdict in self.violated + self.undecided]
        told += [f"graph-oracle: {subject} could not be judged: {problem}" for subject, problem in self.problems]
        return "\n\n".join([head, *told])


@contextmanager
def watch(report=True):
    """Judges each watched pass that runs inside. `report`: whether to print what was seen at the end."""
    seen, undo = Seen(), []
    depth = [0]

    def judged(subject, kind, before, after, **extra):
        try:
            seen.verdicts.append(check_pair(before(), after(), kind, subject=f"by {subject}", **extra))
        except CannotJudge as error:
            seen.problems.append((subject, str(error)))
        except Exception as error:
            seen.problems.append((subject, f"{type(error).__name__}: {error}"))

    def snapshot(module, kind):
        from .document import document

        try:
            return document(module, kind=kind)
        except Exception as error:
            return error

    def given(value):
        def get():
            if isinstance(value, Exception):
                raise value
            return value

        return get

    def outermost(function, around):
        def wrapped(*args, **kwargs):
            if depth[0]:
                return function(*args, **kwargs)
            depth[0] += 1
            try:
                return around(function, *args, **kwargs)
            finally:
                depth[0] -= 1

        wrapped.__name__, wrapped.__wrapped__ = function.__name__, function
        return wrapped

    def bucketing(function, module, *args, **kwargs):
        from torch._inductor.pattern_matcher import stable_topological_sort

        before = snapshot(module, "forward")
        result = function(module, *args, **kwargs)
        unrepaired = snapshot(module, "forward")
        # What the pass leaves may be out of order; it cannot be copied then, so it is sorted and put back.
        order = list(module.graph.nodes)
        try:
            getattr(stable_topological_sort, "__wrapped__", stable_topological_sort)(module.graph)
            after = snapshot(module, "forward")
        except Exception as error:
            after = error
        finally:
            for node in order:
                module.graph._root.prepend(node)
        if isinstance(unrepaired, Exception):
            after, unrepaired = unrepaired, None
        judged(function.__name__, "bucketing", given(before), given(after), unrepaired=unrepaired)
        return result

    def partition(function, joint, *args, **kwargs):
        before = snapshot(joint, "joint")
        parts = function(joint, *args, **kwargs)
        if isinstance(before, dict) and kwargs.get("num_fwd_outputs") is not None:
            before["num_fwd_outputs"] = int(kwargs["num_fwd_outputs"])
        forward, backward = snapshot(parts[0], "forward"), snapshot(parts[1], "backward")
        judged(function.__name__, "partition", given(before), lambda: (given(forward)(), given(backward)()))
        return parts

    def sort(function, graph, *args, **kwargs):
        order = [node.name for node in graph.nodes]
        before = snapshot(graph, "forward") if any(node.op != "output" for node in graph.nodes) else None
        result = function(graph, *args, **kwargs)
        if [node.name for node in graph.nodes] != order:
            judged(function.__name__, "repair", given(before), given(snapshot(graph, "forward")))
        return result

    for table, around in ((BUCKETING, bucketing), (PARTITIONERS, partition), (SORTS, sort)):
        for module, names in table.items():
            undo += _replace(module, names, lambda function, around=around: outermost(function, around))
    try:
        yield seen
    finally:
        for holder, name, function in undo:
            setattr(holder, name, function)
        if report:
            print(seen, file=sys.stderr)


def _replace(module, names, wrap):
    """Puts wrappers in the place of functions, in every module of torch that holds them by name."""
    import importlib

    try:
        home = importlib.import_module(module)
    except ImportError:
        return []
    # Modules that take the functions over when they are imported must be there already.
    importlib.import_module("torch._inductor.compile_fx")
    importlib.import_module("torch._inductor.fx_passes.post_grad")
    undo = []
    for name in names:
        function = getattr(home, name, None)
        if function is None:
            continue
        wrapped = wrap(function)
        for holder in [m for n, m in list(sys.modules.items()) if n.startswith("torch.") and m is not None]:
            if vars(holder).get(name) is function:
                undo.append((holder, name, function))
                setattr(holder, name, wrapped)
    return undo
