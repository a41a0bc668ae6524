"""x + 0 becomes x: for -0.0 that is -0.0 and not 0.0, and one divided by it is the other infinity.

Pass constant_fold_uniform_value, as torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0.

The sign of a zero decides which infinity comes out.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def step(x):
    return 1 / (x + 0)


torch._inductor.config.force_disable_caches = True
eager = step(torch.tensor([-0.0]))
compiled = torch.compile(step, fullgraph=True)(torch.tensor([-0.0]))
if eager.tolist() != compiled.tolist():
    print(f"FAILS: torch.compile returns {compiled.tolist()}, and eager mode {eager.tolist()}")
    sys.exit(1)
print("the failure does not show")
