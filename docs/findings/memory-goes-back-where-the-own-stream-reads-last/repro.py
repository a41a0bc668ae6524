"""AOTAutograd gives memory back to its stream while another stream reads it, where its own reads it last.

sync_deallocations, PyTorch 2.15.0; breaks order/streams.
Needs torch alone. Exit status 1 if the failure shows, else 0.

What stream 1 computes is read on stream 2, and then on stream 1 itself. Nothing keeps its memory until stream 2 has
read it.
"""

import itertools
import sys
from unittest import mock

import torch
from torch import fx
from torch._functorch._aot_autograd import streams


def kept(order):
    graph = fx.Graph()

    def call(function, *args, stream):
        node = graph.call_function(function, args)
        node.meta.update(val=torch.empty(4, device="meta"), custom={"stream": stream}, partitioner_tag="is_backward")
        return node

    tangent = graph.placeholder("tangents_1")
    tangent.meta["val"] = torch.empty(4, device="meta")
    gradient = call(torch.ops.aten.neg.default, tangent, stream=1)
    graph.output(tuple(call(torch.ops.aten.cos.default, gradient, stream=stream) for stream in order))
    gm = fx.GraphModule(torch.nn.Module(), graph)
    # Real events and estimates need a GPU.
    with (
        mock.patch.object(streams, "new_event", itertools.count(10).__next__),
        mock.patch.object(streams, "get_roofline_estimate", lambda node: 1.0),
        mock.patch.object(torch.accelerator, "is_available", lambda: True),
    ):
        streams.sync_deallocations(gm)
    return any(node.target is torch.ops.streams.sync_dealloc.default for node in gm.graph.nodes)


assert kept([1, 2])
if not kept([2, 1]):
    print("FAILS: what stream 2 reads is kept for it where it reads last, and not where stream 1 does")
    sys.exit(1)
print("the failure does not show")
