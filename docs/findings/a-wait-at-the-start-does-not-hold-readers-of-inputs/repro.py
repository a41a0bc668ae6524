"""A wait on a side stream for an event of the graph's start does not hold back what reads inputs on that stream.

wrap_all_sync_nodes_with_control_deps, PyTorch 2.15.0; breaks order/streams.
Needs torch alone. Exit status 1 if the failure shows, else 0.

The graph of: fork.record(); with side: fork.wait(); y = x * 2; join.record(); join.wait(). After the pass, whoever
orders the graph by its edges may start y before side waits for whoever makes x.
"""

import sys

import torch
from torch import fx
from torch._functorch._aot_autograd.streams import wrap_all_sync_nodes_with_control_deps

STREAMS, CALLER, SIDE = torch.ops.streams, 0, 1


def step(is_first):
    graph = fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.empty(4)
    if not is_first:
        z = graph.call_function(torch.ops.aten.neg.default, (x,))
        z.meta["val"] = torch.empty(4)
    graph.call_function(STREAMS.record_event.default, (10, CALLER))
    graph.call_function(STREAMS.wait_event.default, (10, SIDE))
    y = graph.call_function(torch.ops.aten.mul.Tensor, (x if is_first else z, 2))
    y.meta.update(val=torch.empty(4), custom={"stream": SIDE})
    graph.call_function(STREAMS.record_event.default, (11, SIDE))
    graph.call_function(STREAMS.wait_event.default, (11, CALLER))
    graph.output((y,))
    gm = fx.GraphModule(torch.nn.Module(), graph)
    wrap_all_sync_nodes_with_control_deps(gm)
    return gm


def is_behind_the_wait(gm):
    (y,) = [node for node in gm.graph.nodes if node.target is torch.ops.aten.mul.Tensor]
    open_, behind = [y], set()
    while open_:
        for node in open_.pop().all_input_nodes:
            behind.add(node)
            open_.append(node)
    bodies = [getattr(gm, node.target) for node in behind if node.op == "get_attr"]
    return any(node.target is STREAMS.wait_event.default for body in bodies for node in body.graph.nodes)


assert is_behind_the_wait(step(is_first=False))
if not is_behind_the_wait(step(is_first=True)):
    print("FAILS: no edge leads from the wait to the product that runs on the waiting stream")
    sys.exit(1)
print("the failure does not show")
