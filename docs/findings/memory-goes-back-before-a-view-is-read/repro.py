"""AOTAutograd gives memory back to its stream while another stream reads a view of it.

sync_deallocations, PyTorch 2.15.0; breaks order/streams.
Needs torch alone. Exit status 1 if the failure shows, else 0.

What stream 1 computes is read on stream 2 through a view. The event that stream 1 waits for before it takes the memory
back is recorded behind the view, and before its reader.
"""

import itertools
import sys
from unittest import mock

import torch
from torch import fx
from torch._functorch._aot_autograd import streams

graph = fx.Graph()


def call(function, *args, stream):
    node = graph.call_function(function, args)
    node.meta.update(val=torch.empty(4, device="meta"), custom={"stream": stream}, partitioner_tag="is_backward")
    return node


tangent = graph.placeholder("tangents_1")
tangent.meta["val"] = torch.empty(4, device="meta")
gradient = call(torch.ops.aten.neg.default, tangent, stream=1)
shown = call(torch.ops.aten.view.default, gradient, [4], stream=2)
reader = call(torch.ops.aten.cos.default, shown, stream=2)
graph.output((reader,))
gm = fx.GraphModule(torch.nn.Module(), graph)
# Real events and estimates need a GPU.
with (
    mock.patch.object(streams, "new_event", itertools.count(10).__next__),
    mock.patch.object(streams, "get_roofline_estimate", lambda node: 1.0),
    mock.patch.object(torch.accelerator, "is_available", lambda: True),
):
    streams.sync_deallocations(gm)
order = [node.target for node in gm.graph.nodes]
if order.index(torch.ops.streams.record_event.default) < order.index(torch.ops.aten.cos.default):
    print(gm.graph)
    print("FAILS: the event is recorded before stream 2 reads the view")
    sys.exit(1)
print("the failure does not show")
