"""Streams of backward fail with AttributeError where a size is computed on another stream than its reader.

insert_backward_syncs, PyTorch 2.15.0; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, else 0.

A symbolic number that backward computes on the caller's stream is the size of an expansion on a side stream.
"""

import itertools
import operator
import sys
from unittest import mock

import torch
from torch import fx
from torch._functorch._aot_autograd import streams
from torch.fx.experimental.symbolic_shapes import ShapeEnv

graph = fx.Graph()
size = ShapeEnv().create_unbacked_symint()


def call(function, *args, value, **meta):
    node = graph.call_function(function, args)
    node.meta.update(val=value, partitioner_tag="is_backward", **meta)
    return node


tangent, number = graph.placeholder("tangents_1"), graph.placeholder("s0")
tangent.meta["val"], number.meta["val"] = torch.empty((), device="meta"), size
twice = call(operator.mul, number, 2, value=size * 2)
spread = call(
    torch.ops.aten.expand.default, tangent, [twice], value=torch.empty(4, device="meta"), custom={"stream": 1}
)
graph.output((spread,))
gm = fx.GraphModule(torch.nn.Module(), graph)
try:
    # A real event needs a GPU, and its number is all that is needed.
    with mock.patch.object(streams, "new_event", itertools.count(10).__next__):
        streams.insert_backward_syncs(gm)
except AttributeError as error:
    print(f"FAILS: AttributeError: {error}")
    sys.exit(1)
print("the failure does not show")
