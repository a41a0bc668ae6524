"""Behind an ordering edge the metadata of a view of a bucket stays as it was before the bucket.

Pass bucketing with kind=all_reduce, PyTorch 2.15.0; breaks rewrite/metadata.
Needs torch alone and replay.py, which builds the graph. Exit status 1 if the failure shows, else 0.

The same graph without and with an ordering edge (control_deps) to a view of a wait. After the pass what is recorded of
the view is compared with what the view gives.
"""

import pathlib
import sys

import torch
from torch import fx
from torch._inductor.fx_passes import bucketing
from torch._inductor.pattern_matcher import stable_topological_sort
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._ordered_set import OrderedSet

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from replay import Builder, enter

try:
    from torch._inductor.fx_passes.control_dependencies import preserve_node_ordering
except ImportError as missing:
    print(f"this torch has no ordering edges: {missing}")
    sys.exit(2)
comm = torch.ops._c10d_functional


def offsets(ordered):
    """The storage offset that is recorded of the view after the pass, and that of what the view reads."""
    g = Builder(FakeTensorMode())
    values = [g.input("x0", [13], torch.float32), g.input("x1", [6], torch.float32)]
    sums = [g(f"r{i}", comm.all_reduce.default, x, "sum", "dp") for i, x in enumerate(values)]
    waits = [g(f"w{i}", comm.wait_tensor.default, r) for i, r in enumerate(sums)]
    view = g("view", torch.ops.aten.alias.default, waits[1])
    g.output((waits[0], view))
    module = g.module()
    if ordered:
        preserve_node_ordering(module.graph, {view: OrderedSet([waits[0]])})
    bucketing.bucket_all_reduce(module, lambda index: 2000.0, "default")
    stable_topological_sort(module.graph)
    module.graph.lint()
    view = list(module.graph.nodes)[-1].args[0][1]
    read = [node for node in view.args if isinstance(node, fx.Node) and "val" in node.meta][-1]
    return view.meta["val"].storage_offset(), read.meta["val"].storage_offset()


enter(0, 2, {"dp": [[0, 1]]})
recorded, given = offsets(False)
if recorded != given:
    print("without an ordering edge the metadata is old too; this shows nothing")
    sys.exit(2)
recorded, given = offsets(True)
print(f"{'FAILS: ' * (recorded != given)}the view is recorded at offset {recorded}; what it shows starts at {given}")
sys.exit(recorded != given)
