"""DeepCompile's record of a parameter fails with TypeError for a parameter without dimensions.

DeepSpeed 0.19.8 and PyTorch 2.15.0. Exit status 1 if the failure shows, 0 if not, 2 if it cannot be shown here.

A scale, as CLIP has one. DeepCompile makes this record of every parameter of a forward graph before its passes run.
"""

import sys
import warnings

import torch
from torch._dynamo.backends.common import aot_autograd

warnings.filterwarnings("ignore")
try:
    from deepspeed.compile.graph_param import DSGraphParamManager
except ImportError as error:
    print(f"not shown: {error}")
    sys.exit(2)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        return x * self.scale.exp()


def compiler(gm, inputs):
    index = next(i for i, value in enumerate(inputs) if value.dim() == 0)
    try:
        DSGraphParamManager(gm.graph, inputs, [(index, 0, inputs[index].shape)])
    except TypeError as error:
        print(f"FAILS: {error}")
        sys.exit(1)
    return gm


torch.compile(Model(), backend=aot_autograd(fw_compiler=compiler))(torch.ones(2, 4))
print("the failure does not show")
