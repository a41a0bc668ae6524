"""Bucketing of collectives, as `post_grad_passes` runs it: duplicate waits merged, the passes, the topological sort.

Sources: `bucket_all_gather`, `bucket_reduce_scatter`, `bucket_all_reduce` of torch/_inductor/fx_passes/bucketing.py;
with `filter=fsdp` their variants and `pre_bucket_fsdp_collectives` of fsdp.py; with `selection=overlap`
`schedule_overlap_bucketing` of overlap_scheduling.py (the overlap-preserving bucketer); with `selection=manual`
`manual_overlap_bucketing` of overlap_manual_scheduling.py.

The names and defaults of the options are those of `graph-oracle` (oracle/models/config/bucketing.rs). An option that
PyTorch's passes do not have is refused, unless its value is what they do.
"""

import torch
from torch._inductor.fx_passes import bucketing
from torch._inductor.pattern_matcher import stable_topological_sort

from .. import ordering, versions
from ..errors import Refused
from ..options import choose, known, megabytes, number, text, words, yes
from . import register

_BUCKETING, _FSDP = "torch._inductor.fx_passes.bucketing", "torch._inductor.fx_passes.fsdp"
MODES = ["default", "custom_ops", "custom_ops_multidtype", "coalesced"]
if not versions.have(f"{_BUCKETING}.reduce_scatter_merge_fn_coalesced"):
    MODES.remove("coalesced")
# The operator that packs has other arguments in torch 2.9, under the name that graph-oracle knows.
if not versions.have(f"{_BUCKETING}._ALL_DTYPES"):
    MODES = [mode for mode in MODES if not mode.startswith("custom_ops")]
SELECTIONS = {"adjacent": "adjacent", "inductor": "adjacent", "overlap": "overlap", "manual": "manual"}
FILTERS = ["none", "fsdp"]
KINDS = ("all_gather", "reduce_scatter", "all_reduce")
# In the order of post_grad_passes. Torch 2.9 has no bucket_all_reduce.
ALL = [kind for kind in ("reduce_scatter", "all_reduce", "all_gather") if versions.have(f"{_BUCKETING}.bucket_{kind}")]
_KEYS = ("kind", "kinds", "mode", "cap", "selection", "filter", "rank", "max_topo_span", "modules", "deps")


# `bucket_all_gather_by_mb` of torch/_inductor/fx_passes/bucketing.py keeps to the size limit. That only neighbours are
# bucketed, as it says too, is not promised here: a collective with an ordering edge is hidden from it.
PROMISES = [
    {"when": {"selection": ["adjacent", "inductor", ""], "filter": ["none", ""]}, "options": {"promises": ["cap"]}},
]


# A barrier takes a process group as an object, which a graph cannot name.
@register(
    "bucketing",
    options={"mode": MODES, "filter": FILTERS, "selection": ["adjacent"]},
    without=["barriers", "ordering-edges-in-flight" if ordering.AVAILABLE else "ordering-edges"],
    promises=PROMISES,
    after="carried" if ordering.AVAILABLE else None,
)
def run(rebuilt, options):
    """`repaired` is the graph after the sort; `unrepaired` the graph before it, where it was not sorted already."""
    refuse_edges_in_flight(rebuilt.document)
    steps = plan(rebuilt, options)
    with rebuilt.timing() as passes:
        for step in steps:
            step(rebuilt.module)
    before = {} if is_sorted(rebuilt.graph.nodes) else {"unrepaired": rebuilt.export()}
    with rebuilt.timing() as sort:
        stable_topological_sort(rebuilt.graph)
    return {"seconds": passes.seconds + sort.seconds, **before, "repaired": rebuilt.export()}


def refuse_edges_in_flight(document):
    """The bucketers take a launch with one user, its wait. An ordering edge from a launch is a second user; one that
    ends at a wait hides it from them and from the merging of waits. Inductor makes such edges after bucketing only."""
    targets = {entry["name"]: entry["target"] for entry in document["nodes"]}
    for entry in document["nodes"]:
        for before in entry.get("after") or ():
            is_launch = targets.get(before, "").startswith("_c10d_functional.") and "wait_tensor" not in targets[before]
            if is_launch or "_c10d_functional.wait_tensor" in entry["target"]:
                raise Refused(f"{entry['name']} has an ordering edge from {before}, between a launch and its wait")


def is_sorted(nodes):
    """Whether every node stands after what it reads: then a stable sort changes nothing."""
    seen = set()
    for node in nodes:
        if any(n not in seen for n in node.all_input_nodes):
            return False
        seen.add(node)
    return True


def plan(rebuilt, options):
    """The calls that the options stand for: a list of functions of the module."""
    known_options(rebuilt, options)
    selection = choose("selection", options.get("selection", "adjacent"), SELECTIONS)
    mode = choose("mode", options.get("mode", "default"), {mode: mode for mode in MODES})
    steps = [lambda gm: bucketing.deduplicate_wait_tensors(gm.graph)] if _DEDUPLICATES else []
    if selection == "overlap":
        return steps + [overlap(options, mode)]
    if selection == "manual":
        return steps + [manual(options, mode)]
    kind = options.get("kind", options.get("kinds", "all"))
    kinds = [] if text(kind) == "all" else [choose("kind", word, {k: k for k in KINDS}) for word in words(kind)]
    filtered = choose("filter", options.get("filter", "none"), {name: name for name in FILTERS}) == "fsdp"
    cap, single = caps(options, filtered and not kinds)
    if filtered and not kinds:
        bucket = demanded(f"{_FSDP}.pre_bucket_fsdp_collectives")
        return steps + [lambda gm: bucket(gm, mode, single)]
    for kind in kinds or ALL:
        if kind not in ALL:
            raise Refused(f"this torch has no bucket_{kind}")
        if kind == "reduce_scatter" and "multidtype" in mode and not filtered:
            raise Refused("reduce scatter bucketing does not support multidtype")
        function = demanded(f"{_FSDP}.bucket_fsdp_{kind}" if filtered else f"{_BUCKETING}.bucket_{kind}")
        if filtered and kind == "all_reduce":
            steps.append(lambda gm, function=function: function(gm, cap))
        else:
            steps.append(lambda gm, function=function: function(gm, cap, mode))
    return steps


def demanded(path):
    """A function of PyTorch that an option asks for."""
    found = versions.get(path)
    if found is None:
        raise Refused(f"this torch has no {path.rpartition('.')[2]}, or not with the parameters of today")
    return found


_DEDUPLICATES = versions.have(f"{_BUCKETING}.deduplicate_wait_tensors")


def known_options(rebuilt, options):
    for key in options:
        if key.startswith("rank.") or key == "rank":
            # The index in the groups. It must be the one of the rank that the request names.
            for name, ranks in rebuilt.groups.items():
                if key in ("rank", f"rank.{name}") and number(key, options[key]) != ranks.index(rebuilt.rank):
                    raise Refused(
                        f"option {key}={text(options[key])} is not the index of rank {rebuilt.rank} in {name}"
                    )
        else:
            known([key], _KEYS)


def caps(options, automatic):
    """The size limit in MB by bucket index, and as one number (None: what PyTorch computes from the group)."""
    value = options.get("cap")
    if value is None or text(value) == "auto":
        if value is not None and not automatic:
            raise Refused("option cap=auto: only pre_bucket_fsdp_collectives computes a limit")
        return (lambda index: 2000.0), None
    sizes = megabytes("cap", value)
    if not sizes:
        raise Refused("option cap is empty")
    if automatic and len(sizes) > 1:
        raise Refused("option cap: pre_bucket_fsdp_collectives takes one limit for all buckets")
    return (lambda index: sizes[min(index, len(sizes) - 1)]), sizes[0]


def estimate(node, size):
    """A runtime in milliseconds for the overlap scheduler that no machine has a part in."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return 0.0
    value = node.meta.get("val")
    bytes_ = value.numel() * value.element_size() if isinstance(value, torch.Tensor) else 0
    if size is not None:
        bytes_ = size
    if node.target.namespace == "_c10d_functional":
        return 0.01 + bytes_ * 1e-5
    return 0.001 + bytes_ * 1e-6


def overlap(options, mode):
    schedule = demanded("torch._inductor.fx_passes.overlap_scheduling.schedule_overlap_bucketing")
    known(options, ("selection", "mode", "deps", "rank"))
    deps = yes("deps", options.get("deps", "no"))

    def step(gm):
        schedule(
            gm,
            collective_bucketing=True,
            insert_overlap_deps=deps,
            custom_runtime_estimation=estimate,
            collective_estimator="analytical",
            compute_estimator="analytical",
            bucket_mode=mode,
            pre_bucketing_fsdp_collectives=False,
        )

    return step


def manual(options, mode):
    """`modules`: the plan, one bucket for each module path."""
    schedule = demanded("torch._inductor.fx_passes.overlap_manual_scheduling.manual_overlap_bucketing")
    known(options, ("selection", "mode", "deps", "modules", "rank"))
    modules = words(options.get("modules", ""))
    if not modules:
        raise Refused("selection=manual needs option modules: the module paths to bucket by")
    deps = yes("deps", options.get("deps", "no"))

    def step(gm):
        schedule(gm, modules, deps, bucket_mode=mode)

    return step
