"""relu, tanh and sigmoid of one shape are stacked whatever their dtypes: int64 goes through float32.

Pass group_batch_fusion_passes, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0.

Another relu in the function changes the result of this one.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")
torch._inductor.config.post_grad_fusion_options = {"batch_aten_relu": {"min_fuse_set_size": 2}}


def step(x, y):
    return torch.relu(x), torch.relu(y)


torch._inductor.config.force_disable_caches = True
eager = step(torch.ones(1, 1), torch.tensor([[2**24 + 1]]))[1]
compiled = torch.compile(step, fullgraph=True)(torch.ones(1, 1), torch.tensor([[2**24 + 1]]))[1]
if eager.tolist() != compiled.tolist():
    print(f"FAILS: torch.compile returns {compiled.tolist()}, and eager mode {eager.tolist()}")
    sys.exit(1)
print("the failure does not show")
