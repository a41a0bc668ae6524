"""In the mode custom_ops an ordering edge from a wait leads on from an empty buffer: nothing holds its end back until the gather has come.

Pass bucketing with kind=all_gather mode=custom_ops selection=adjacent, PyTorch 2.15.0+cu132; breaks order/edges-kept.
Needs torch alone. Exit status 1 if the failure shows, else 0.

The same graph in the mode default and in the mode custom_ops. An ordering edge (control_deps) puts a relu behind the wait of a
gather. After each pass, all nodes that the relu needs, by whatever way, are moved to the front and the relu behind them.
"""

import sys
import warnings

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives
from torch import fx
from torch._inductor.fx_passes import bucketing
from torch._inductor.fx_passes.control_dependencies import preserve_node_ordering
from torch._inductor.pattern_matcher import stable_topological_sort
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._ordered_set import OrderedSet

warnings.filterwarnings("ignore")
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
GROUP = dist.group.WORLD.group_name
COMM = torch.ops._c10d_functional


def build(mode):
    graph = fx.Graph()

    def call(target, *args):
        node = graph.call_function(target, args)
        with mode:
            node.meta["val"] = target(*fx.node.map_aggregate(args, lambda a: a.meta["val"] if isinstance(a, fx.Node) else a))
        return node

    inputs = [graph.placeholder(name) for name in ("x0", "x1", "x2")]
    for node in inputs:
        with mode:
            node.meta["val"] = torch.empty(2)
    waits = [
        call(COMM.wait_tensor.default, call(COMM.all_gather_into_tensor.default, one, 2, GROUP)) for one in inputs[:2]
    ]
    late = call(torch.ops.aten.relu.default, inputs[2])
    graph.output((*waits, late))
    module = fx.GraphModule(torch.nn.Module(), graph)
    preserve_node_ordering(module.graph, {late: OrderedSet([waits[1]])})
    return module


def what_runs_before(bucket_mode):
    """The targets of what the list holds before the relu, when the relu stands as early as all edges allow."""
    module = build(FakeTensorMode())
    bucketing.bucket_all_gather(module, lambda index: 2000.0, bucket_mode)
    stable_topological_sort(module.graph)
    (late,) = [n for n in module.graph.nodes if n.op == "call_function" and str(n.target) == "control_deps"]
    needed, stack = set(), [late]
    while stack:
        for node in stack.pop().all_input_nodes:
            if node not in needed:
                needed.add(node)
                stack.append(node)
    first = next(n for n in module.graph.nodes if n.op != "placeholder")
    for node in [n for n in module.graph.nodes if n.op != "placeholder" and (n in needed or n is late)]:
        if node is not first:
            first.prepend(node)
        else:
            first = first.next
    module.graph.lint()
    nodes = list(module.graph.nodes)
    return [str(n.target) for n in nodes[: nodes.index(late)]]


def waits_for(targets):
    return any("wait_tensor" in target for target in targets)


if not waits_for(what_runs_before("default")):
    sys.exit("the mode default loses the edge too; this shows nothing")
before = what_runs_before("custom_ops")
if not waits_for(before):
    print(f"FAILS: in the mode custom_ops the relu may run behind nothing but {', '.join(before)}; before the pass it waited for the gather")
    sys.exit(1)
print("the failure does not show")
