"""Where x * 1 becomes x, x gets the metadata of the product: a slice is recorded without its offset, an input with other strides.

Pass constant_fold_uniform_value, PyTorch 2.15.0+cu132; breaks rewrite/metadata.
Needs torch alone. Exit status 1 if the failure shows, else 0.

The pass on a traced graph: the metadata of the slice before and after it.
"""

import sys
import warnings

import torch
from torch._inductor.fx_passes.joint_graph import constant_fold_uniform_value
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

warnings.filterwarnings("ignore")


def step(x):
    return -(x[1:] * 1)


with FakeTensorMode():
    module = make_fx(step)(torch.ones(4))
(piece,) = module.graph.find_nodes(op="call_function", target=torch.ops.aten.slice.Tensor)
before = piece.meta["val"].storage_offset()
constant_fold_uniform_value(module)
after = piece.meta["val"].storage_offset()
if before != after:
    print(f"FAILS: the slice is recorded at offset {after}, and it starts at {before}")
    sys.exit(1)
print("the failure does not show")
