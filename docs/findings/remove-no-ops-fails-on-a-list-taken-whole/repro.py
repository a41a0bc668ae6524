"""remove_noop_ops ends with TypeError where cat takes the list of a split as it is.

Pass remove_noop_ops, PyTorch 2.15.0; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, else 0.
"""

import sys

import torch
from torch import fx
from torch._inductor.fx_passes.post_grad import remove_noop_ops
from torch._subclasses.fake_tensor import FakeTensorMode

graph = fx.Graph()
x = graph.placeholder("x")
pieces = graph.call_function(torch.ops.aten.split.Tensor, (x, 2))
joined = graph.call_function(torch.ops.aten.cat.default, (pieces,))
graph.output(joined)
with FakeTensorMode():
    x.meta["val"] = torch.empty(4)
    pieces.meta["val"] = x.meta["val"].split(2)
    joined.meta["val"] = torch.empty(4)

assert torch.equal(fx.GraphModule({}, graph)(torch.arange(4.0)), torch.arange(4.0)), "the graph itself runs"
try:
    remove_noop_ops(graph)
except TypeError as error:
    print(f"FAILS: remove_noop_ops raises TypeError: {error}")
    sys.exit(1)
print("the failure does not show")
