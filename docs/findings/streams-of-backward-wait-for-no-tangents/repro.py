"""AOTAutograd orders streams of backward between its calls alone: nobody waits for tangents, nor for gradients.

insert_backward_syncs, PyTorch 2.15.0; breaks order/streams.
Needs torch alone. Exit status 1 if the failure shows, else 0.

Backward of with side: y = -x. The tangent is made, and the gradient read, on the stream that calls backward. In eager
mode autograd orders both streams.
"""

import itertools
import sys
from unittest import mock

import torch
from torch import fx
from torch._functorch._aot_autograd import streams

graph = fx.Graph()
tangent = graph.placeholder("tangents_1")
tangent.meta["val"] = torch.empty(4, device="meta")
gradient = graph.call_function(torch.ops.aten.neg.default, (tangent,))
gradient.meta.update(val=torch.empty(4, device="meta"), custom={"stream": 1}, partitioner_tag="is_backward")
graph.output((gradient,))
gm = fx.GraphModule(torch.nn.Module(), graph)
# Real events and streams need a GPU, and their numbers are all that is needed.
with (
    mock.patch.object(streams, "new_event", itertools.count(10).__next__),
    mock.patch.object(streams, "get_current_stream", lambda device: 0),
):
    streams.insert_backward_syncs(gm)
    streams.sync_deallocations(gm)
waits = [node.args[1] for node in gm.graph.nodes if node.target is torch.ops.streams.wait_event.default]
if waits != [1, 0]:
    print(f"FAILS: stream 1 reads the tangent and makes the gradient, and {waits or 'no streams'} wait")
    sys.exit(1)
print("the failure does not show")
