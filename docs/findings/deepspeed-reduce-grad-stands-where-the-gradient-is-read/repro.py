"""DeepCompile hands a gradient over and gives whoever else reads it what reduce_grad returns: an empty tensor.

DeepSpeed 0.19.8 and PyTorch 2.15.0. Exit status 1 if the failure shows, 0 if not, 2 if it cannot be shown here.

A position that is added to a hidden value of the same shape: its gradient is also read for the layer before it. The
operators of the C++ extension are declared here as it declares them, and return what it returns.
"""

import sys
import warnings

import torch
from torch._dynamo.backends.common import aot_autograd

warnings.filterwarnings("ignore")
try:
    from deepspeed.compile.graph_param import DSGraphParamManager
    from deepspeed.compile.passes import zero_1_and_2_compile
except ImportError as error:
    print(f"not shown: {error}")
    sys.exit(2)

library = torch.library.Library("dc", "FRAGMENT")
library.define("reduce_grad(Tensor a, int graph_id, int id) -> Tensor")
library.define("end_backward(Any deps, int graph_id, bool release_reduce_buckets) -> ()")
gradients, parts = {}, {}
library.impl("reduce_grad", lambda a, _, number: gradients.update({number: a}) or a.new_empty(0), "CPU")
library.impl("end_backward", lambda *_: None, "CompositeExplicitAutograd")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((3, 4), 0.5))
        self.position = torch.nn.Parameter(torch.zeros(1, 2, 4))

    def forward(self, x):
        return torch.tanh(x @ self.weight + self.position).sum()


def forward_compiler(gm, inputs):
    parameters = [(i, i, value.shape) for i, value in enumerate(inputs) if tuple(value.shape) != (1, 2, 3)]
    parts["manager"] = DSGraphParamManager(gm.graph, inputs, parameters)
    return gm


def backward_compiler(gm, inputs):
    zero_1_and_2_compile.add_z1_reduce_bw(gm, 0, [(0, True)], {0: parts["manager"]})
    gm.recompile()
    return gm


model = Model()
compiled = torch.compile(model, backend=aot_autograd(fw_compiler=forward_compiler, bw_compiler=backward_compiler))
try:
    compiled(torch.ones(1, 2, 3)).backward()
except RuntimeError as error:
    print(f"FAILS: {str(error).strip().splitlines()[0]}")
    sys.exit(1)
print("the failure does not show")
