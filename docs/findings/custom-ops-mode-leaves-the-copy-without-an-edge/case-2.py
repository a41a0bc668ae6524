"""In the mode custom_ops an ordering edge from a wait leads on from an empty buffer: its end may run before the gather.

Pass bucketing with kind=all_gather mode=custom_ops, PyTorch 2.15.0; breaks order/edges-kept.
Needs torch alone and replay.py, which builds the graph. Exit status 1 if the failure shows, else 0.

An ordering edge (control_deps) puts a relu behind the wait of a gather. After the pass, in the mode default and in the
mode custom_ops, the relu is to need a wait, by whatever way.
"""

import pathlib
import sys

import torch
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


def needed(bucket_mode):
    """The targets of all that the relu needs."""
    g = Builder(FakeTensorMode())
    x0, x1, x2 = (g.input(name, [2], torch.float32) for name in ("x0", "x1", "x2"))
    gathers = [g(f"g{i}", comm.all_gather_into_tensor.default, x, 2, "dp") for i, x in enumerate((x0, x1))]
    waits = [g(f"w{i}", comm.wait_tensor.default, gather) for i, gather in enumerate(gathers)]
    late = g("late", torch.ops.aten.relu.default, x2)
    g.output((*waits, late))
    module = g.module()
    preserve_node_ordering(module.graph, {late: OrderedSet([waits[1]])})
    bucketing.bucket_all_gather(module, lambda index: 2000.0, bucket_mode)
    stable_topological_sort(module.graph)
    found = [n for n in module.graph.nodes if str(n.target) == "control_deps"]
    for node in found:
        found += [n for n in node.all_input_nodes if n not in found]
    return [str(node.target) for node in found]


enter(0, 2, {"dp": [[0, 1]]})
if not any("wait_tensor" in target for target in needed("default")):
    print("the mode default loses the edge too; this shows nothing")
    sys.exit(2)
targets = needed("custom_ops")
lost = not any("wait_tensor" in target for target in targets)
print("FAILS: the relu needs no wait any more, but" if lost else "the relu needs", ", ".join(targets))
sys.exit(lost)
