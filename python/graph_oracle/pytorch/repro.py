"""Writes reproductions: a plain PyTorch script that shows the failure of a case by itself.

    python -m graph_oracle.pytorch repro CASE.json --pass bucketing --set kind=all_gather > repro.py

The script needs torch alone (or, of a function of the user's own, that function too). It builds the graph node by node,
runs PyTorch's pass as every rank, and tells what fails: an exception of the pass, a graph that does not lint or reads
before it defines, ranks that wait for one another, or other values than before (on real tensors, all ranks in one
process). Exit status 1 if the failure shows, else 0. Of a rule that says more, such as which outputs share memory,
the script says that its status 0 means nothing.

Refused are findings that none of these would show (policies, memory), and graphs with symbolic sizes or with inputs
that share memory.
"""

import inspect
import json
import keyword
import re
import sys

import torch

from . import emulate, targets
from .errors import Refused
from .groups import groups_of, members, world_size
from .options import text
from .templates import docstring, fill

_SILENT = ("policy", "memory", "estimate")
# Rules whose break shows in what every script looks at, and in what those look at that compare values.
_ABOUT_FORM = {"", "order/acyclic", "order/list-topological", "rewrite/well-formed", "worker/crash", "worker/error"}
_ABOUT_VALUES = {
    "bucket/users-rewired",
    "comm/all-ranks-finish",
    "partition/outputs-preserved",
    "partition/semantics-equal",
    "rewrite/groups",
    "rewrite/payloads",
    "rewrite/state",
    "rewrite/values",
}


def add_arguments(parser):
    parser.add_argument("case", help="the graph before the pass, as exchange JSON")
    parser.add_argument("--pass", dest="pass_", required=True, choices=["bucketing", "repair", "partition"])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="an option of the pass")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--rule", default="", help="the rule that is broken, for the head of the script")
    parser.add_argument("--title", default="", help="one line about how, for the head of the script")


def main(arguments):
    with open(arguments.case) as file:
        document = json.load(file)
    options = dict(word.partition("=")[::2] for word in arguments.set)
    try:
        print(write(document, arguments.pass_, options, arguments.rank, arguments.rule, arguments.title), end="")
    except Refused as refused:
        print(f"graph-oracle: {refused.reason}", file=sys.stderr)
        return 1
    return 0


def write(document, pass_, options, rank, rule, title, function=None):
    """The text of the script. `function`: the implementation, where it is not PyTorch's (function.py)."""
    if any(word in rule for word in _SILENT):
        raise Refused(f"a break of {rule} shows in no run")
    if pass_ not in _PASSES and function is None:
        raise Refused(f"there are no reproductions of {pass_}")
    if document.get("symbols"):
        raise Refused("a graph with symbolic sizes is not reproduced")
    for key in ("renames", "clusters", "subgraphs"):
        if document.get(key):
            raise Refused(f"{key} are not reproduced")
    from . import passes
    from .rebuild import rebuild

    # What cannot be rebuilt cannot be written either, and what the pass refuses is no failure.
    rebuilt = rebuild(document, rank, values=pass_ != "repair")
    if function is None:
        if pass_ not in passes.load():
            raise Refused(f"this torch has no {pass_}")
        imports, lines = _PASSES[pass_](rebuilt, options)
        who, needs = "PyTorch's", "torch alone"
    else:
        imports, lines = _function(function, pass_, rebuilt, options)
        who, needs = function.name, f"torch and {function.spec.rpartition(':')[0]}"
    graph = _Graph(document, rebuilt)
    settings = " ".join(f"{key}={text(value)}" for key, value in options.items())
    head = [title.strip() or f"{who} {pass_} pass fails on this graph."]
    about = f"Pass {pass_}{' with ' + settings if settings else ''}, PyTorch {torch.__version__}"
    head += [
        "",
        f"{about}{'; breaks ' + rule if rule else ''}.",
        f"Needs {needs}. Exit status 1 if the failure shows, else 0.",
    ]
    shows = rule in _ABOUT_FORM or (rule in _ABOUT_VALUES and pass_ != "repair")
    if not shows:
        more = "" if pass_ == "repair" else ", ranks that wait for one another, other values than before"
        head += [
            f"It looks for an exception, a graph that is none{more}.",
            f"{rule} says more than that: it may be broken where the status is 0.",
        ]
    nothing = (
        "the failure does not show" if shows else f"nothing fails that this looks at; {rule} may be broken all the same"
    )
    groups = {name: group["ranks"] for name, group in groups_of(document).items()}
    ranks = [r for r in range(world_size(document)) if set(members(document, r)) == set(rebuilt.groups)]
    if len(ranks) != world_size(document):
        # Ranks outside a group do not run this graph.
        raise Refused("the graph uses groups that some ranks are not in")
    return fill(
        _TEMPLATE,
        {
            "HEAD": docstring(head),
            "IMPORTS": "\n".join(imports),
            "WORLD": str(world_size(document)),
            "GROUPS": json.dumps(groups),
            "BUILD": "\n".join("    " + line for line in graph.lines()),
            "PASS": "\n".join("    " + line for line in lines),
            "CHECK": _CHECKS[_CHECKED_AS.get(pass_, pass_)].strip("\n"),
            "EMULATE": _source(),
            "NOTHING": repr(nothing),
            "MORE": "False, True" if pass_ in ("bucketing", "schedule") else "False,",
        },
    )


def _source():
    """The text of `emulate`, without its head and its imports."""
    source = inspect.getsource(emulate)
    return source[source.index("COLLECTIVES = {") :].rstrip()


# ---------------------------------------------------------------------------------------------------------------
# The graph


class _Graph:
    def __init__(self, document, rebuilt):
        self.document, self.rebuilt = document, rebuilt
        self.variables, taken = {}, {"torch", "fx", "graph", "mode", "call", "placeholder", "inf", "nan"}
        for entry in document["nodes"]:
            name = re.sub(r"\W", "_", entry["name"])
            if not name.isidentifier() or keyword.iskeyword(name):
                name = f"node_{name}"
            while name in taken:
                name += "_"
            taken.add(name)
            self.variables[entry["name"]] = name

    def lines(self):
        storages, lines, order = set(), [], {entry["name"]: i for i, entry in enumerate(self.document["nodes"])}
        late = []
        for index, entry in enumerate(self.document["nodes"]):
            variable, out = self.variables[entry["name"]], entry.get("out")
            args = [self.value(v) for v in entry.get("args") or []]
            kwargs = {key: self.value(v) for key, v in (entry.get("kwargs") or {}).items()}
            if entry["op"] == "placeholder":
                # The partitioners tell inputs apart by the target.
                name = entry["target"] if entry["target"].isidentifier() else entry["name"]
                lines.append(f"{variable} = placeholder(graph, mode, {name!r}{self.input(entry, storages)})")
            elif entry["op"] == "get_attr":
                raise Refused("attributes of the module are not reproduced")
            elif entry["op"] == "output":
                value = args[0] if len(args) == 1 else f"({', '.join(args)})"
                if value.startswith("["):
                    value = f"({value[1:-1]},)" if value != "[]" else "()"
                lines.append(f"graph.output(returned(graph, {value}, more))")
                continue
            else:
                forward = [r for r in _refs(entry) if order[r] > index]
                target = self.target(entry["target"])
                tail = f", {{{', '.join(f'{k!r}: {v}' for k, v in kwargs.items())}}}" if kwargs else ""
                tuple_ = f"({', '.join(args)}{',' if len(args) == 1 else ''})"
                if forward:
                    # It reads a later node: the arguments are put in when that node exists.
                    lines.append(
                        f"{variable} = graph.create_node('call_function', {target}, (), {{}}, {entry['name']!r})"
                    )
                    late.append(f"{variable}.args = {tuple_}")
                    if kwargs:
                        late.append(f"{variable}.kwargs = {tail[2:]}")
                else:
                    name = "" if tail else ", {}"
                    lines.append(f"{variable} = call(graph, mode, {entry['name']!r}, {target}, {tuple_}{tail or name})")
            for key, value in (entry.get("tags") or {}).items():
                value = f"CheckpointPolicy.{value}" if key == "recompute" else repr(value)
                lines.append(f"{variable}.meta[{key!r}] = {value}")
            if entry.get("module"):
                path = entry["module"]
                lines.append(f"{variable}.meta['nn_module_stack'] = {{{path!r}: ({path!r}, 'torch.nn.Module')}}")
        if late:
            lines = lines[:-1] + late + lines[-1:]
        return ["graph = fx.Graph()", *lines, "return fx.GraphModule(torch.nn.Module(), graph)"]

    def input(self, entry, storages):
        out = entry.get("out")
        if out is None:
            return ", None"
        if out["t"] == "int":
            return f", {out['value']}"
        if out["t"] != "tensor":
            raise Refused(f"input {entry['name']} is not reproduced")
        number, value = out.get("storage"), self.rebuilt.nodes[entry["name"]].meta.get("val")
        full = value is None or value.untyped_storage().nbytes() == out.get(
            "storage_bytes", value.untyped_storage().nbytes()
        )
        if out.get("offset") or (number is not None and number in storages) or not full:
            raise Refused(f"input {entry['name']} shares memory, or does not fill it")
        storages.add(number)
        row, stride = [], 1
        for n in reversed(out["shape"]):
            row.insert(0, stride)
            stride *= max(n, 1)
        strides = "" if out["stride"] == row else f", stride={out['stride']}"
        return f", {out['shape']}, torch.{out['dtype']}, {out['device']!r}{strides}"

    def target(self, name):
        found = targets.resolve(name)
        return f"torch.ops.{name}" if not isinstance(found, type(len)) and hasattr(found, "_schema") else name

    def value(self, value):
        if isinstance(value, dict):
            if "ref" in value:
                return self.variables[value["ref"]]
            for key in ("dtype", "memory_format", "layout"):
                if key in value:
                    return f"torch.{value[key]}"
            if "device" in value:
                return f"torch.device({value['device']!r})"
            if "float" in value:
                return f"float({value['float']!r})"
            if "slice" in value:
                return f"slice({', '.join(self.value(v) for v in value['slice'])})"
            raise Refused(f"an argument is {str(value)[:60]}, which is not reproduced")
        if isinstance(value, list):
            return f"[{', '.join(self.value(v) for v in value)}]"
        return repr(value)


def _refs(entry):
    found = []

    def walk(value):
        if isinstance(value, dict):
            if "ref" in value:
                found.append(value["ref"])
            else:
                for v in value.values():
                    walk(v)
        elif isinstance(value, list):
            for v in value:
                walk(v)

    walk(entry.get("args") or [])
    walk(entry.get("kwargs") or {})
    return found


# ---------------------------------------------------------------------------------------------------------------
# The passes


def _bucketing(rebuilt, options):
    from .options import choose, megabytes, words
    from .passes import bucketing

    bucketing.plan(rebuilt, options)  # Refused where the worker refuses.
    selection = choose("selection", options.get("selection", "adjacent"), bucketing.SELECTIONS)
    mode = text(options.get("mode", "default"))
    if selection != "adjacent":
        return _overlap(options, selection, mode)
    kind = options.get("kind", options.get("kinds", "all"))
    kinds = [] if text(kind) == "all" else words(kind)
    filtered = text(options.get("filter", "none")) == "fsdp"
    sizes = None if text(options.get("cap", "auto")) == "auto" else megabytes("cap", options["cap"])
    imports = [
        "from torch._inductor.fx_passes import bucketing, fsdp"
        if filtered
        else "from torch._inductor.fx_passes import bucketing",
        "from torch._inductor.pattern_matcher import stable_topological_sort",
    ]
    lines = ["bucketing.deduplicate_wait_tensors(module.graph)"] if bucketing._DEDUPLICATES else []
    if filtered and not kinds:
        lines.append(f"fsdp.pre_bucket_fsdp_collectives(module, {mode!r}, {sizes[0] if sizes else None!r})")
    else:
        if sizes is None:
            cap = "lambda index: 2000.0"
        elif len(sizes) == 1:
            cap = f"lambda index: {sizes[0]!r}"
        else:
            cap = f"lambda index: {sizes!r}[min(index, {len(sizes) - 1})]"
        lines.append(f"cap = {cap}  # MB by bucket")
        for kind in kinds or bucketing.ALL:
            if filtered:
                more = "" if kind == "all_reduce" else f", {mode!r}"
                lines.append(f"fsdp.bucket_fsdp_{kind}(module, cap{more})")
            else:
                lines.append(f"bucketing.bucket_{kind}(module, cap, {mode!r})")
    return imports, [*lines, "stable_topological_sort(module.graph)", "return [module]"]


def _overlap(options, selection, mode):
    from .options import words, yes
    from .passes import bucketing

    deps = yes("deps", options.get("deps", "no"))
    imports = [
        "from torch._inductor.fx_passes import bucketing, overlap_manual_scheduling, overlap_scheduling",
        "from torch._inductor.pattern_matcher import stable_topological_sort",
    ]
    lines = ["bucketing.deduplicate_wait_tensors(module.graph)"] if bucketing._DEDUPLICATES else []
    if selection == "manual":
        modules = words(options["modules"])
        lines.append(
            f"overlap_manual_scheduling.manual_overlap_bucketing(module, {modules}, {deps}, bucket_mode={mode!r})"
        )
    else:
        imports += ["", "", inspect.getsource(bucketing.estimate).rstrip(), ""]
        lines += [
            "overlap_scheduling.schedule_overlap_bucketing(",
            f"    module, collective_bucketing=True, insert_overlap_deps={deps}, custom_runtime_estimation=estimate,",
            "    collective_estimator='analytical', compute_estimator='analytical',",
            f"    bucket_mode={mode!r}, pre_bucketing_fsdp_collectives=False,",
            ")",
        ]
    return imports, [*lines, "stable_topological_sort(module.graph)", "return [module]"]


def _repair(rebuilt, options):
    return (
        ["from torch._inductor.pattern_matcher import stable_topological_sort"],
        ["stable_topological_sort(module.graph)", "return [module]"],
    )


def _partition(rebuilt, options):
    from .options import choose, known, yes
    from .passes import partition

    known(options, partition._KEYS)
    method = choose("method", options.get("method", "default"), partition.METHODS)
    if method == "replay":
        raise Refused("method=replay is not reproduced")
    outputs = partition.forward_outputs(rebuilt, options)
    static = partition.static_inputs(rebuilt, options)
    patch = {key: value for key, value in partition.patches(options).items()}
    from torch._functorch import config

    patch = {key: value for key, value in patch.items() if getattr(config, key) != value}
    function = "default_partition" if method == "default" else "min_cut_rematerialization_partition"
    lines = [
        "for node in module.graph.nodes:",
        "    if isinstance(node.meta.get('val'), torch.Tensor):",
        "        node.meta['tensor_meta'] = _extract_tensor_metadata(node.meta['val'])",
    ]
    context = f"config.patch({patch!r}), mode"
    if not yes("impure_random", options.get("impure_random", "no")):
        context += ", torch._guards.tracing(torch._guards.TracingContext(mode))"
    lines += [
        f"with {context}:",
        f"    return list(partitioners.{function}(",
        f"        module, (), num_fwd_outputs={outputs}, static_lifetime_input_indices={static}",
        "    ))",
    ]
    imports = [
        "import torch.distributed._functional_collectives",
        "from torch._functorch import config, partitioners",
        "from torch.fx.passes.shape_prop import _extract_tensor_metadata",
    ]
    return imports, lines


def _function(function, pass_, rebuilt, options):
    """A function of the user's own, called as function.py calls it."""
    from . import function as functions

    place, _, path = function.spec.rpartition(":")
    chosen = functions.chosen(function, options, 2 if pass_ == "partition" else 1)
    imports = ["from torch._inductor.virtualized import V"]
    if function.is_file:
        imports += ["import importlib.util", "import os"]
        load = [
            f"PATH = {place!r}",
            "sys.path.insert(0, os.path.dirname(PATH))",
            'spec = importlib.util.spec_from_file_location("function_under_test", PATH)',
            'user = sys.modules["function_under_test"] = importlib.util.module_from_spec(spec)',
            "spec.loader.exec_module(user)",
        ]
    else:
        imports += ["import importlib", "import os"]
        load = ["sys.path.insert(0, os.getcwd())", f"user = importlib.import_module({place!r})"]
    imports += ["", *load, ""]
    if pass_ == "partition":
        return _function_cuts(imports, path, function, chosen, rebuilt, options)
    named = "".join(f", {key}={value!r}" for key, value in chosen.items())
    argument = "module.graph" if function.takes_graph else "module"
    return imports, [
        "with V.set_fake_mode(mode):",
        f"    result = user.{path}({argument}{named})",
        'result = getattr(result, "graph_module", result)',
        "if isinstance(result, fx.Graph):",
        "    result = fx.GraphModule(module, result)",
        "if isinstance(result, fx.GraphModule):",
        "    return [result]",
        "if result is not None and not isinstance(result, int):",
        '    raise TypeError(f"it returned a {type(result).__name__}, which is no graph")',
        "return [module]",
    ]


def _function_cuts(imports, path, function, chosen, rebuilt, options):
    from . import function as functions

    chosen = {**chosen, **functions.partitioner_keywords(function, rebuilt, options)}
    named = "".join(f", {key}={value!r}" for key, value in chosen.items())
    imports = [
        "import torch.distributed._functional_collectives",
        "from torch.fx.passes.shape_prop import _extract_tensor_metadata",
        *imports,
    ]
    return imports, [
        "inputs, tangents = [], []",
        "for node in module.graph.nodes:",
        "    value = node.meta.get('val')",
        "    if isinstance(value, torch.Tensor):",
        "        node.meta['tensor_meta'] = _extract_tensor_metadata(value)",
        "    if node.op == 'placeholder':",
        "        (tangents if 'tangents' in node.target else inputs).append(value)",
        "with mode, torch._guards.tracing(torch._guards.TracingContext(mode)):",
        f"    return list(user.{path}(module, (inputs, tangents){named}))",
    ]


_PASSES = {"bucketing": _bucketing, "repair": _repair, "partition": _partition}

_COMPARE = """
    seen, seen_after = [{} for _ in range(WORLD)], [{} for _ in range(WORLD)]
    inputs = [random_inputs(before[0], rank) for rank in range(WORLD)]
    try:
        expected = run_ranks([module.graph for module in before], copies := clones(inputs), GROUPS, seen, in_order=%s)
    except NotImplementedError as error:
        not_compared(error)
    expected = [[*flat(out), *given.values()] for out, given in zip(expected, copies)]
"""

# Passes that are checked as others are.
_CHECKED_AS = {"schedule": "bucketing"}

_CHECKS = {
    # What is bucketed draws in the order of before. Backward may draw again what forward drew.
    "bucketing": _COMPARE % True
    + """
    try:
        graphs, copies = [modules[0].graph for modules in after], clones(inputs)
        found = run_ranks(graphs, copies, GROUPS, seen_after, in_order=True)
    except NotImplementedError as error:
        not_compared(error)
    except RuntimeError as error:
        fail(f"after the pass the graph does not run: {error}")
    compare(expected, [[*flat(out), *given.values()] for out, given in zip(found, copies)])
    # Nodes that the pass left in place compute what they did before.
    compare_nodes(seen, seen_after)
""",
    "repair": """
    return
""",
    # A rewrite may call something else by a name that it has removed: outputs and inputs are compared.
    "rewrite": _COMPARE % True
    + """
    try:
        graphs, copies = [modules[0].graph for modules in after], clones(inputs)
        found = run_ranks(graphs, copies, GROUPS, seen_after, in_order=True)
    except NotImplementedError as error:
        not_compared(error)
    except (RuntimeError, KeyError) as error:
        fail(f"after the pass the graph does not run: {error}")
    compare(expected, [[*flat(out), *given.values()] for out, given in zip(found, copies)])
""",
    "partition": """
    for forward, _ in after:
        for value in flat(list(forward.graph.nodes)[-1].args[0]):
            target = getattr(value, "target", None)
            if getattr(target, "namespace", "") == "_c10d_functional" and "wait_tensor" not in str(target):
                fail(f"forward hands over {value.name}, the result of {target}, which nobody has waited for")
"""
    + _COMPARE % False
    + """
    copies, draws = clones(inputs), [{} for _ in range(WORLD)]
    try:
        forward = run_ranks([modules[0].graph for modules in after], copies, GROUPS, draws=draws)
        outputs = [flat(list(modules[0].graph.nodes)[-1].args[0]) for modules in after]
        names = [[getattr(v, "name", None) for v in values] for values in outputs]
        for given, saved, values in zip(copies, names, forward):
            given.update({name: value for name, value in zip(saved, values) if name not in given})
        backward = run_ranks([modules[1].graph for modules in after], copies, GROUPS, draws=draws)
    except NotImplementedError as error:
        not_compared(error)
    except (RuntimeError, KeyError) as error:
        fail(f"after the pass the graphs do not run: {error}")
    whole = run_ranks([module.graph for module in before], clones(inputs), GROUPS)
    count = [len(flat(out)) - len(flat(b)) for out, b in zip(whole, backward)]
    # Both outputs, and the inputs as they are after both.
    written = [[given[name] for name in own] for given, own in zip(copies, inputs)]
    found = [[*flat(f)[:n], *flat(b), *w] for f, b, n, w in zip(forward, backward, count, written)]
    compare(expected, found)
""",
}

_TEMPLATE = '''"""@HEAD@
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
@IMPORTS@

warnings.filterwarnings("ignore")
WORLD = @WORLD@
GROUPS = @GROUPS@


def build(mode, more=False):
    """The graph before the pass."""
@BUILD@


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
@PASS@


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
            result = target(*fx.node.map_aggregate(args, value), **fx.node.map_aggregate(kwargs, value))
        if result is not None:
            node.meta["val"] = result
    return node


def returned(graph, values, more):
    """What the graph returns; with `more` also every wait and what nobody reads, so that they are compared."""
    if not more:
        return values
    wait = torch.ops._c10d_functional.wait_tensor.default
    calls = graph.find_nodes(op="call_function", target=wait)
    calls += [n for n in graph.nodes if n.op == "call_function" and not n.users]
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


def not_compared(error):
    print(f"the graphs are well formed; their values are not compared: {error}")
    sys.exit(0)


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
                fail(f"value {index} of rank {rank} is {b}, and before the pass it was {a}".replace("\\n", " "))


def compare_nodes(expected, found):
    for rank, (one, other) in enumerate(zip(expected, found)):
        for name, a in one.items():
            if name in other and not same(a, other[name]):
                fail(f"{name} on rank {rank} is {other[name]}, and before the pass it was {a}".replace("\\n", " "))


def same(a, b):
    """Equal in all bits, but that not-a-numbers are one."""
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return type(a) is type(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.is_floating_point:
        a, b = (t.to(torch.float64).nan_to_num(12345.0) for t in (a, b))
    return torch.equal(a, b)


@EMULATE@


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
@CHECK@


for more in (@MORE@):
    run(more)
print(@NOTHING@)
'''
