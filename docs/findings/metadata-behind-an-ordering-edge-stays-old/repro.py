"""Behind an ordering edge the metadata of a view of a bucket stays as it was before the bucket.

Pass bucketing with kind=all_reduce mode=default selection=adjacent, PyTorch 2.15.0+cu132; breaks rewrite/metadata.
Needs torch alone. Exit status 1 if the failure shows, else 0.

The same graph without and with an ordering edge (control_deps) to a view of a wait. After the pass what is recorded of the view is
compared with what the view gives.
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
COMM = torch.ops._c10d_functional


def offsets(ordered):
    """The storage offset that is recorded of the view after the pass, and that of what the view reads."""
    graph, mode = fx.Graph(), FakeTensorMode()

    def call(target, *args):
        node = graph.call_function(target, args)
        with mode:
            node.meta["val"] = target(*fx.node.map_aggregate(args, lambda a: a.meta["val"] if isinstance(a, fx.Node) else a))
        return node

    waits = []
    for name, size in (("x0", 13), ("x1", 6)):
        node = graph.placeholder(name)
        with mode:
            node.meta["val"] = torch.empty(size)
        waits.append(node)
    waits = [call(COMM.all_reduce.default, node, "sum", dist.group.WORLD.group_name) for node in waits]
    waits = [call(COMM.wait_tensor.default, node) for node in waits]
    view = call(torch.ops.aten.alias.default, waits[1])
    graph.output((waits[0], view))
    module = fx.GraphModule(torch.nn.Module(), graph)
    if ordered:
        preserve_node_ordering(graph, {view: OrderedSet([waits[0]])})
    bucketing.bucket_all_reduce(module, lambda index: 2000.0, "default")
    stable_topological_sort(graph)
    graph.lint()
    (output,) = graph.find_nodes(op="output")
    view = output.args[0][1]
    read = [node for node in view.args if isinstance(node, fx.Node) and "val" in node.meta][-1]
    return view.meta["val"].storage_offset(), read.meta["val"].storage_offset()


recorded, given = offsets(False)
if recorded != given:
    sys.exit("without an ordering edge the metadata is old too; this shows nothing")
recorded, given = offsets(True)
if recorded != given:
    print(f"FAILS: behind an ordering edge the view is recorded at offset {recorded}, and what it shows starts at {given}")
    sys.exit(1)
print("the failure does not show")
