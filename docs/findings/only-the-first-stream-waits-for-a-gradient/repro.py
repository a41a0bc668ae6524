"""AOTAutograd lets the first reader alone wait for a gradient of another stream: a reader on a third one does not.

insert_backward_syncs, PyTorch 2.15.0; breaks order/streams.
Needs torch alone. Exit status 1 if the failure shows, else 0.

A gradient of stream 1 is read on streams 2 and 3, as where forward used one value on each of them.
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
second = call(torch.ops.aten.sin.default, gradient, stream=2)
third = call(torch.ops.aten.cos.default, gradient, stream=3)
graph.output((second, third))
gm = fx.GraphModule(torch.nn.Module(), graph)
# A real event needs a GPU, and its number is all that is needed.
with mock.patch.object(streams, "new_event", itertools.count(10).__next__):
    streams.insert_backward_syncs(gm)
print(gm.graph)
waits = [node.args[1] for node in gm.graph.nodes if node.target is torch.ops.streams.wait_event.default]
if waits != [2, 3]:
    print(f"FAILS: streams 2 and 3 read what stream 1 computes, and {waits} wait for it")
    sys.exit(1)
print("the failure does not show")
