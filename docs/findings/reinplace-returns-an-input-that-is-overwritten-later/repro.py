"""An operator on an input is made in place, and its result, which is returned, is overwritten by the copy_ into that input.

Pass reinplace_inplaceable_ops, as torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/aliases.
Needs torch alone. Exit status 1 if the failure shows, else 0.

Also with all_reduce in the place of index_put.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


def step(x, y, index, values):
    result = torch.index_put(x, (index,), values)
    x.copy_(y)
    return result

torch._inductor.config.force_disable_caches = True
eager = step(torch.ones(3), torch.zeros(3), torch.tensor([0, 1]), torch.tensor([5.0, 6.0]))
compiled = torch.compile(step, fullgraph=True)(torch.ones(3), torch.zeros(3), torch.tensor([0, 1]), torch.tensor([5.0, 6.0]))
if eager.tolist() != compiled.tolist():
    print(f"FAILS: torch.compile returns {compiled.tolist()}, and eager mode {eager.tolist()}")
    sys.exit(1)
print("the failure does not show")
