"""DeepCompile gives a gathered parameter back once the first piece of a chunk() of it is there, before it is read.

DeepSpeed 0.19.8 and PyTorch 2.15.0. Exit status 1 if the failure shows, 0 if not, 2 if it cannot be shown here.

A projection whose weight is cut in two, as nn.MultiheadAttention does. The operators of the C++ extension are declared
here as it declares them. They only note the order: gather, release, and every product that reads the parameter.
"""

import sys
import warnings
from unittest import mock

import torch
from torch._dynamo.backends.common import aot_autograd

warnings.filterwarnings("ignore")
try:
    from deepspeed.compile import util
    from deepspeed.compile.graph_param import DSGraphParamManager
    from deepspeed.compile.passes import zero3_compile
except ImportError as error:
    print(f"not shown: {error}")
    sys.exit(2)

library = torch.library.Library("dc", "FRAGMENT")
library.define("allgather_param(Tensor a, int graph_id, int id, ScalarType? dtype = None) -> Tensor")
library.define("wait_allgather(Tensor(a) a, int graph_id, int id) -> Tensor(a)")
library.define("release_param(Tensor(a) a, int graph_id, int id, int n_users) -> Tensor(a)")
util.dc_handle = mock.Mock()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(8, 4))

    def forward(self, x):
        keys, values = self.weight.chunk(2)
        return x @ keys.t() + x @ values.t()


def compiler(gm, inputs):
    index = next(i for i, value in enumerate(inputs) if value.shape == (8, 4))
    indices = [(index, 0, inputs[index].shape)]
    manager = DSGraphParamManager(gm.graph, inputs, indices)
    graph = zero3_compile.add_gather_and_release(0, gm.graph, manager, util.get_param_nodes(gm.graph, indices))
    order = [str(node.target) for node in graph.nodes if node.op == "call_function"]
    print(*order, sep="\n")
    early = order.index("dc.release_param.default") < order.index("aten.mm.default")
    print("FAILS: the parameter is released before a product reads it" if early else "the failure does not show")
    sys.exit(1 if early else 0)


torch.compile(Model(), backend=aot_autograd(fw_compiler=compiler))(torch.ones(2, 4))
