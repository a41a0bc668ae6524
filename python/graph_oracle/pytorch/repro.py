"""Writes reproductions: a plain PyTorch script that shows the failure of a case by itself.

    python -m graph_oracle.pytorch repro CASE.json --pass bucketing --set kind=all_gather > repro.py
    python -m graph_oracle.pytorch repro CASE.json --pass bucketing --set kind=all_gather --out FOLDER

The script needs torch alone (or, of a function of the user's own, that function too). It builds the graph node by node,
runs PyTorch's pass as every rank, and tells what fails: an exception of the pass, a graph that does not lint or reads
before it defines, ranks that wait for one another, or other values than before (on real tensors, all ranks in one
process). Exit status 1 if the failure shows, else 0. Of a rule that says more, such as which outputs share memory,
the script says that its status 0 means nothing.

What all scripts share is a file of its own, `replay.py`, beside the script or in the folder above. `--out` writes both.
Where there can be one file only, the script holds it.

Refused are findings that none of these would show (policies, memory), and graphs with symbolic sizes or with inputs
that share memory.
"""

import inspect
import json
import keyword
import pathlib
import re
import sys
import textwrap

import torch

from . import emulate, replay, targets
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
    parser.add_argument("--out", metavar="FOLDER", help="write repro.py and replay.py there, in place of one file")


def main(arguments):
    with open(arguments.case) as file:
        document = json.load(file)
    options = dict(word.partition("=")[::2] for word in arguments.set)
    try:
        script = write(document, arguments.pass_, options, arguments.rank, arguments.rule, arguments.title)
    except Refused as refused:
        print(f"graph-oracle: {refused.reason}", file=sys.stderr)
        return 1
    if arguments.out is None:
        print(whole(script), end="")
    else:
        folder = pathlib.Path(arguments.out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "repro.py").write_text(script)
        (folder / "replay.py").write_text(tools())
    return 0


def whole(script):
    """A script as one file, which holds what it would import from replay.py."""
    head, _, rest = script.partition(_IMPORT)
    return f"{head.replace(_BESIDE, '', 1)}\n{_tools()}\n\n{rest.lstrip()}"


def tools():
    """The text of replay.py: that of the module `replay` with that of `emulate` in it."""
    return f'''"""{_ABOUT_TOOLS}"""\n\n{_tools()}'''


def _tools():
    source, emulated = inspect.getsource(replay), inspect.getsource(emulate)
    source = source[source.index("import sys") :].replace("from .emulate import run_ranks\n\n", "")
    return f"{source.rstrip()}\n\n\n{emulated[emulated.index('COLLECTIVES = {') :].rstrip()}\n"


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
        f"Needs {needs}{_BESIDE}. Exit status 1 if the failure shows, else 0.",
    ]
    shows = rule in _ABOUT_FORM or (rule in _ABOUT_VALUES and pass_ != "repair")
    if not shows:
        more = "" if pass_ == "repair" else ", ranks that wait for one another, other values than before"
        head += [
            f"It looks for an exception, a graph that is none{more}.",
            f"{rule} says more than that: it may be broken where the status is 0.",
        ]
    nothing = _NOTHING if shows else f"nothing fails that this looks at; {rule} may be broken all the same"
    groups = {name: group["ranks"] for name, group in groups_of(document).items()}
    ranks = [r for r in range(world_size(document)) if set(members(document, r)) == set(rebuilt.groups)]
    if len(ranks) != world_size(document):
        # Ranks outside a group do not run this graph.
        raise Refused("the graph uses groups that some ranks are not in")
    body = graph.lines()
    every = [*imports, *lines, *body]
    modules = [name for name in ("operator", "pathlib", "sys") if any(f"{name}." in line for line in every)]
    modules = sorted({*modules, "pathlib", "sys"})
    check = _CHECKED_AS.get(pass_, pass_)
    more = "" if check == "bucketing" else f", check={check!r}"
    if not shows:
        more += f",\n    nothing={nothing!r},\n"
    spaces = [f"{name} = {path}" for name, path in _SPACES.items() if any(f"{name}." in line for line in body)]
    return fill(
        _TEMPLATE,
        {
            "HEAD": docstring(
                part for line in head for part in textwrap.wrap(line, 116, break_on_hyphens=False) or [""]
            ),
            "MODULES": "\n".join(f"import {name}" for name in modules),
            "IMPORTS": "\n".join(imports),
            "IMPORT": _IMPORT,
            "SPACES": "\n".join(spaces),
            "WORLD": str(world_size(document)),
            "GROUPS": json.dumps(groups),
            "BUILD": "\n".join("    " + line for line in body),
            "PASS": "\n".join("    " + line for line in lines),
            "MORE": more,
        },
    )


# ---------------------------------------------------------------------------------------------------------------
# The graph


class _Graph:
    def __init__(self, document, rebuilt):
        self.document, self.rebuilt = document, rebuilt
        self.variables, taken = {}, {"torch", "g", "operator", "math", "inf", "nan", *_SPACES}
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
        late, tags, last = [], {}, []
        for index, entry in enumerate(self.document["nodes"]):
            variable = self.variables[entry["name"]]
            args = [self.value(v) for v in entry.get("args") or []]
            kwargs = {key: self.value(v) for key, v in (entry.get("kwargs") or {}).items()}
            if entry["op"] == "placeholder":
                # The partitioners tell inputs apart by the target.
                name = entry["target"] if entry["target"].isidentifier() else entry["name"]
                lines.append(f"{variable} = g.input({name!r}{self.input(entry, storages)})")
            elif entry["op"] == "get_attr":
                raise Refused("attributes of the module are not reproduced")
            elif entry["op"] == "output":
                value = args[0] if len(args) == 1 else f"({', '.join(args)})"
                if value.startswith("["):
                    value = f"({value[1:-1]},)" if value != "[]" else "()"
                last.append(f"g.output({value})")
                continue
            else:
                forward = [r for r in _refs(entry) if order[r] > index]
                target, name = self.target(entry["target"]), entry["name"]
                if forward:
                    # It reads a later node: the arguments are put in when that node exists.
                    lines.append(f"{variable} = g.graph.create_node('call_function', {target}, name={name!r})")
                    late.append(f"{variable}.args = ({', '.join(args)}{',' if len(args) == 1 else ''})")
                    if kwargs:
                        late.append(f"{variable}.kwargs = {{{', '.join(f'{k!r}: {v}' for k, v in kwargs.items())}}}")
                else:
                    given = [repr(name), target, *args, *(f"{key}={value}" for key, value in kwargs.items())]
                    lines.append(f"{variable} = g({', '.join(given)})")
            words = [
                f"{key}={value!r}" if key.isidentifier() else f"**{ ({key: value})!r}"
                for key, value in (entry.get("tags") or {}).items()
            ]
            if entry.get("module"):
                words.append(f"module={entry['module']!r}")
            for word in words:
                tags.setdefault(word, []).append(variable)
        named = {}
        for word, nodes in tags.items():
            named.setdefault(tuple(nodes), []).append(word)
        marks = [f"g.tag({', '.join([*nodes, *words])})" for nodes, words in named.items()]
        return [part for line in [*lines, *late, *marks, *last] for part in _folded(line)]

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
        device = "" if out["device"] == "cuda:0" else f", device={out['device']!r}"
        return f", {out['shape']}, torch.{out['dtype']}{device}{strides}"

    def target(self, name):
        found = targets.resolve(name)
        if isinstance(found, type(len)) or not hasattr(found, "_schema"):
            return name
        space, _, rest = name.partition(".")
        space = f"torch.ops.{space}"
        return f"{next((short for short, full in _SPACES.items() if full == space), space)}.{rest}"

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


def _folded(line, width=116):
    """A line of Python as lines of at most `width`, where commas between arguments allow it."""
    if len(line) <= width:
        return [line]
    # Commas within quotes are no places to break it.
    masked = re.sub(r"\'(?:[^\'\\\\]|\\\\.)*\'|\"(?:[^\"\\\\]|\\\\.)*\"", lambda quoted: "_" * len(quoted[0]), line)
    place = masked.rfind(", ", 0, width)
    if place < 8:
        return [line]
    return [line[: place + 1], *_folded(f"    {line[place + 2 :].lstrip()}", width)]


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
    imports = ["from torch import fx", *imports]
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

# Passes that are checked as others are.
_CHECKED_AS = {"schedule": "bucketing"}

_NOTHING = "the failure does not show"
_BESIDE = " and replay.py, which builds and runs the graph"
# Names for what operators are in.
_SPACES = {"aten": "torch.ops.aten", "comm": "torch.ops._c10d_functional"}

_ABOUT_TOOLS = """What the scripts of findings share: it builds a graph node by node, runs a pass on it as every rank of
a world of fake process groups, and runs the graphs before and after with real tensors, all ranks in one process.

Each rank runs its graph until it meets a collective; when all ranks of a group have met one, its results are computed.
It is done when it starts; a wait returns its argument. Memory that `empty` returns is filled with a value that shows.

Needs torch alone. `graph-oracle fuzz --repro` writes it.
"""

_WHERE = "sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]"
_IMPORT = f"{_WHERE}\nfrom replay import replay\n"
_TEMPLATE = '''"""@HEAD@
"""

@MODULES@

import torch
@IMPORTS@

@IMPORT@
@SPACES@


def build(g):
    """The graph before the pass."""
@BUILD@


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
@PASS@


replay(build, run_pass, world=@WORLD@, groups=@GROUPS@@MORE@)
'''
