"""AutoTP's graph pass loses the gradient's all-reduce where a column-parallel layer reads a row-parallel one directly.

DeepSpeed 0.19.8 and PyTorch 2.15.0. Exit status 1 if the failure shows, 0 if not, 2 if it cannot be shown here.

Both layers have their collective at module level switched off; each must get one in the graph.
"""

import sys
import warnings

import torch
from torch import fx

warnings.filterwarnings("ignore")
try:
    from deepspeed.compile.passes import tp_compile
    from deepspeed.module_inject.layers import LinearAllreduce, LinearLayer
except ImportError as error:
    print(f"not shown: {error}")
    sys.exit(2)


def matmul(graph, value, weight, name, layer):
    node = graph.call_function(torch.matmul, (value, weight))
    node.meta["nn_module_stack"] = {name: (f"L['self'].{name}", layer)}
    return node


def collectives(between):
    """What the pass inserts for a row-parallel layer and then a column-parallel one."""
    graph = fx.Graph()
    x, down, up = map(graph.placeholder, ("x", "down", "up"))
    value = matmul(graph, x, down, "down_proj", LinearAllreduce)
    if between:
        value = graph.call_function(torch.relu, (value,))
    graph.output(matmul(graph, value, up, "up_proj", LinearLayer))
    module = fx.GraphModule(torch.nn.Module(), graph)
    tp_compile.apply_autotp(module, None, deferred_names={"down_proj", "up_proj"})
    return [n.target for n in module.graph.nodes if n.op == "call_function" and "autotp" in str(n.target)]


both = {tp_compile.ROW_PARALLEL_OP, tp_compile.COLUMN_PARALLEL_OP}
assert set(collectives(between=True)) == both
found = collectives(between=False)
if set(found) != both:
    print(f"FAILS: without an operator between the layers only {[str(target) for target in found]} is in the graph")
    sys.exit(1)
print("the failure does not show")
