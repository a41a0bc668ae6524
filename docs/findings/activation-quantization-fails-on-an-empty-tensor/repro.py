"""Quantization of activations ends with RuntimeError where an empty tensor is saved: the largest of no elements is
asked for.

Pass partition, PyTorch 2.15.0+cu132; breaks worker/error.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

torch.compile of a function that saves a tensor with no columns. Sizes from 0 MB on are quantized.
"""

import sys
import warnings

import torch
from torch._inductor import config

warnings.filterwarnings("ignore")


def step(x):
    return (x.sin().exp() @ x.t()).sin().sum()


OPTIONS = {"activation_quantization_aten_pass": {"size_in_mb": 0.0, "use_scaling": True}}
for columns in (4, 0):
    x = torch.ones(2, columns, dtype=torch.bfloat16, requires_grad=True)
    with config.patch({"post_grad_fusion_options": OPTIONS, "force_disable_caches": True}):
        try:
            torch._dynamo.reset()
            torch.compile(step, fullgraph=True, backend="aot_eager_decomp_partition")(x).backward()
        except Exception as error:
            if columns:
                raise
            print(f"FAILS: torch.compile raises {type(error).__name__}: {str(error).splitlines()[1]}")
            sys.exit(1)
print("the failure does not show")
