"""x - 0 and the like become x itself: what is returned shares the caller's memory, and a later write to x shows in it.

Pass constant_fold_uniform_value, as torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/aliases.
Needs torch alone. Exit status 1 if the failure shows, else 0.

The same with + 0, * 1, / 1, and with tensors of zeros and ones.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")
torch._inductor.config.force_disable_caches = True


def step(x):
    return x - 0


def afterwards(function):
    x = torch.ones(3)
    result = function(x)
    x.add_(1)
    return result


eager, compiled = afterwards(step), afterwards(torch.compile(step, fullgraph=True))
if not torch.equal(eager, compiled):
    print(f"FAILS: after a write to the input the result is {compiled.tolist()}, and in eager mode {eager.tolist()}")
    sys.exit(1)
print("the failure does not show")
