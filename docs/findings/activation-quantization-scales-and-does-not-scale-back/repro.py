"""Activations that are saved as float8 are multiplied by a scale in forward and not divided by it in backward:
use_scaling is True by default on one side and False on the other.

Pass partition, PyTorch 2.15.0+cu132; breaks partition/semantics-equal.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

torch.compile without the option use_scaling. With use_scaling=True the gradient is within 10 % of the true one.
"""

import sys
import warnings

import torch
from torch._inductor import config

warnings.filterwarnings("ignore")


def step(x):
    return (x.sin().exp() @ x.t()).sin().sum()


def gradient(function, **options):
    torch._dynamo.reset()
    options = {"activation_quantization_aten_pass": {"size_in_mb": 0.0, **options}}
    x = torch.linspace(0.25, 0.5, 8).reshape(2, 4).bfloat16().requires_grad_()
    with config.patch({"post_grad_fusion_options": options, "force_disable_caches": True}):
        function(x).backward()
    return x.grad


eager = gradient(step)
compiled = torch.compile(step, fullgraph=True, backend="aot_eager_decomp_partition")
error = {
    scaling: (gradient(compiled, **scaled) - eager).abs().max().item()
    for scaling, scaled in (("stated", {"use_scaling": True}), ("left out", {}))
}
if error["stated"] < 1 and not error["left out"] < 1:
    print(f"FAILS: the gradient is off by {error['left out']:.2g}, with use_scaling stated by {error['stated']:.2g}")
    sys.exit(1)
print("the failure does not show")
