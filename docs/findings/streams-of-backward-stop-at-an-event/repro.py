"""AOTAutograd fails with KeyError where memory of the caller's stream is to go back at an event: events have no device.

sync_deallocations after insert_backward_syncs, PyTorch 2.15.0; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, else 0.

A gradient of the caller's stream is read on stream 1, which is then still busy. The event that stream 1 waits for is
the next call of the caller's stream.
"""

import itertools
import sys
from unittest import mock

import torch
from torch import fx
from torch._functorch._aot_autograd import streams

aten = torch.ops.aten


def compiled(busy):
    graph = fx.Graph()

    def call(function, *args, **meta):
        node = graph.call_function(function, args)
        node.meta.update(val=torch.empty(4, device="meta"), partitioner_tag="is_backward", **meta)
        return node

    tangent = graph.placeholder("tangents_1")
    tangent.meta["val"] = torch.empty(4, device="meta")
    gradient = call(aten.neg.default, tangent)
    first = [call(aten.abs.default, tangent, custom={"stream": 1}) for _ in range(busy)]
    graph.output((call(aten.cos.default, gradient, custom={"stream": 1}), *first))
    gm = fx.GraphModule(torch.nn.Module(), graph)
    # Real events and estimates need a GPU.
    with (
        mock.patch.object(streams, "new_event", itertools.count(10).__next__),
        mock.patch.object(streams, "get_roofline_estimate", lambda node: 1.0),
        mock.patch.object(streams, "get_current_stream", lambda device: 0),
        mock.patch.object(torch.accelerator, "is_available", lambda: True),
    ):
        streams.insert_backward_syncs(gm)
        streams.sync_deallocations(gm)


compiled(0)
try:
    compiled(1)
except KeyError as error:
    print(f"FAILS: KeyError: {error}")
    sys.exit(1)
print("the failure does not show")
