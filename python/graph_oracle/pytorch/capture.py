"""The graphs of a running torch.compile, as exchange JSON.

    with capture.recording() as found:
        compiled = torch.compile(model)
        compiled(x).sum().backward()
    found.write("folder")

    python -m graph_oracle.pytorch capture MODULE:FUNCTION ... -o folder [--ranks N --rank R] [--post-grad]

While it records, the backend "inductor" does all that it does to FX graphs (joint-graph passes, partitioner, post-grad
passes) and then stops: no kernels are made, the graph runs node by node. So nothing has to be compiled, and the
function runs as it would have run. Each compiled graph gives `joint` (as the partitioner gets it), `forward` and
`backward` (as it leaves them), or `inference`; and with `post_grad` also what the post-grad passes make of these.

MODULE:FUNCTION is called without arguments, as rank R of N in a fake process group, where nothing is sent: the values
are meaningless, the graphs are the real ones.
"""

import copy
import importlib
import importlib.util
import os
import sys
import traceback
from contextlib import contextmanager, nullcontext

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import _disable_current_modes

from ..arguments import demand_flag, demand_text
from ..judge import CannotJudge
from . import versions
from .document import document, write


class Captured:
    """What was recorded: pairs of a name and a document, in order. `problems`: graphs that could not be written."""

    def __init__(self, prefix="graph"):
        self.prefix, self.graphs, self.problems = prefix, [], []
        self.count = 0

    def add(self, kind, stage, module, number, **keys):
        name = f"{self.prefix}_{number}_{stage}"
        try:
            self.graphs.append((name, document(module, name=name, kind=kind, **keys)))
        except Exception as error:
            self.problems.append((name, f"{type(error).__name__}: {error}"))

    def write(self, folder):
        """Each graph as NAME.json.gz. Returns the paths."""
        os.makedirs(folder, exist_ok=True)
        paths = []
        for name, written in self.graphs:
            if self.count == 1:
                # The number tells several compilations apart.
                name = name.replace(f"{self.prefix}_0_", f"{self.prefix}_")
                written = {**written, "name": name}
            path = os.path.join(folder, f"{name}.json.gz")
            write(path, {"source": f"captured by graph-oracle, torch {torch.__version__}", **written})
            paths.append(path)
        return paths


@contextmanager
def recording(prefix="graph", post_grad=True, joint=True):
    """Records all that torch.compile's backend "inductor" is given meanwhile."""
    demand_text("recording(prefix=...)", prefix, "the beginning of the names of graphs", empty=False)
    demand_flag("recording(post_grad=...)", post_grad)
    demand_flag("recording(joint=...)", joint)
    import torch._functorch.config as functorch_config
    from torch._inductor import compile_fx as inductor

    found = Captured(prefix)
    original_compile = inductor.compile_fx
    # The partitioner itself: what it gets is the joint graph after the joint-graph passes.
    original_partition = inductor.min_cut_rematerialization_partition

    def inner(module, inputs, **kwargs):
        backward, inference = kwargs.get("is_backward", False), kwargs.get("is_inference", False)
        kind = "backward" if backward else "inference" if inference else "forward"
        number = number_of(module, backward)
        if inference:
            found.add(kind, kind, module, number)
        # A compiler that is at work takes every tensor for a fake one, constants too.
        with _disable_current_modes():
            runnable, changed = copy.deepcopy(module), copy.deepcopy(module)
        if post_grad:
            after_post_grad(changed, inputs, inference, kind, number)

        def run(args):
            with torch.no_grad():
                return runnable(*args)

        run._boxed_call = True
        return run

    def number_of(module, backward):
        known = module.meta.get("graph_oracle_number")
        if known is None:
            known = found.count
            found.count += 1
        return known

    def after_post_grad(module, inputs, inference, kind, number):
        try:
            inductor.view_to_reshape(module)
            with torch.no_grad():
                mode = inductor.fake_tensor_prop(module, inputs)
            with inductor.V.set_fake_mode(mode):
                inductor._recursive_post_grad_passes(module, is_inference=inference)
        except Exception as error:
            found.problems.append((f"post-grad {kind} {number}", f"{type(error).__name__}: {error}"))
            return
        found.add(kind, f"{kind}_post_grad", module, number)

    def compile_fx(module, inputs, inner_compile=inner, **kwargs):
        return original_compile(module, inputs, inner_compile=inner_compile, **kwargs)

    def partition(module, inputs, *args, **kwargs):
        number = found.count
        found.count += 1
        if joint:
            extra = {}
            if kwargs.get("num_fwd_outputs") is not None:
                extra["num_fwd_outputs"] = int(kwargs["num_fwd_outputs"])
            static = kwargs.get("static_lifetime_input_indices")
            if static:
                extra["static_lifetime_input_indices"] = [int(i) for i in static]
            found.add("joint", "joint", module, number, **extra)
        forward, backward = original_partition(module, inputs, *args, **kwargs)
        for part, kind in ((forward, "forward"), (backward, "backward")):
            part.meta["graph_oracle_number"] = number
            found.add(kind, kind, part, number)
        return forward, backward

    inductor.compile_fx, inductor.min_cut_rematerialization_partition = compile_fx, partition
    try:
        # The backward is compiled with the forward, whether or not it will be called; in torch 2.9, when it is called.
        wanted = {"force_non_lazy_backward_lowering": True, "enable_autograd_cache": False}
        with functorch_config.patch(versions.only_known(wanted, "torch._functorch.config")):
            torch._dynamo.reset()
            yield found
    finally:
        inductor.compile_fx, inductor.min_cut_rematerialization_partition = original_compile, original_partition
        torch._dynamo.reset()


@contextmanager
def fake_world(ranks, rank=0):
    """This process as one rank of several that do not exist."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if type(ranks) is not int or type(rank) is not int or not 0 <= rank < ranks:
        raise CannotJudge(f"rank {rank!r} of {ranks!r}: ranks go from 0 to one below their number")
    if dist.is_initialized():
        raise CannotJudge("this process has a process group already (destroy_process_group ends it)")
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=ranks)
    try:
        yield
    finally:
        dist.destroy_process_group()


def find(name):
    """The function MODULE:FUNCTION; MODULE is importable, or a path to a file."""
    module, _, function = name.partition(":")
    if not function:
        raise SystemExit(f"graph-oracle capture: {name!r} is not MODULE:FUNCTION")
    if module.endswith(".py"):
        if not os.path.exists(module):
            raise SystemExit(f"graph-oracle capture: there is no file {module}")
        stem = os.path.splitext(os.path.basename(module))[0]
        spec = importlib.util.spec_from_file_location(stem, module)
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[stem] = loaded
        try:
            spec.loader.exec_module(loaded)
        except Exception as error:
            raise SystemExit(f"graph-oracle capture: {module} cannot be imported: {described(error)}") from None
    else:
        sys.path.insert(0, os.getcwd())
        try:
            loaded = importlib.import_module(module)
        except Exception as error:
            raise SystemExit(f"graph-oracle capture: {module} cannot be imported: {described(error)}") from None
    found = getattr(loaded, function, None)
    if not callable(found):
        raise SystemExit(f"graph-oracle capture: {module} has no function {function}")
    return found


def described(error):
    """An exception in one line, with the place in the user's files that raised it."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    frames = traceback.extract_tb(error.__traceback__)
    inside = (os.path.dirname(os.path.abspath(__file__)), os.path.dirname(torch.__file__), "<")
    place = next(
        (f" ({frame.filename}:{frame.lineno})" for frame in reversed(frames) if not frame.filename.startswith(inside)),
        "",
    )
    return f"{type(error).__name__}: {text}{place}"


def why(error):
    """What is to be said of a function that raised something."""
    if isinstance(error, CannotJudge):
        return str(error)
    if isinstance(error, versions.get("torch._dynamo.exc.TorchDynamoException")):
        return f"torch.compile refuses it: {described(error)}"
    text = described(error)
    if "process group" in text and not dist.is_initialized():
        text += "; --ranks N runs it as one of N ranks"
    return text


def add_arguments(parser):
    parser.add_argument(
        "function",
        nargs="+",
        metavar="MODULE:FUNCTION",
        help="called without arguments; MODULE may be a path to a .py file",
    )
    parser.add_argument("-o", "--out", required=True, metavar="DIR")
    parser.add_argument("--ranks", type=int, default=0, help="run as one of so many ranks of a fake process group")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--post-grad", action="store_true", help="also the graphs after the post-grad passes")


def main(options):
    failed = False
    for name in options.function:
        function = find(name)
        module = os.path.splitext(os.path.basename(name.partition(":")[0]))[0].rpartition(".")[2]
        try:
            with recording(f"{module}_{function.__name__}", post_grad=options.post_grad) as found:
                with fake_world(options.ranks, options.rank) if options.ranks else nullcontext():
                    function()
        except Exception as error:
            failed = True
            print(f"graph-oracle capture: {name}: {why(error)}", file=sys.stderr)
            continue
        for path in found.write(options.out):
            print(path)
        for graph, problem in found.problems:
            failed = True
            print(f"graph-oracle capture: {graph} is left out: {problem}", file=sys.stderr)
        if not found.graphs:
            failed = True
            print(f"graph-oracle capture: {name} compiled nothing", file=sys.stderr)
    return 1 if failed else 0
