"""With an activation memory budget between 0 and 1 the solver may choose a dropout to be computed again: backward
draws another mask than forward did.

Pass partition, PyTorch 2.15.0+cu132; breaks partition/rng-paired.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

torch.compile as it is by default, but for the budget. An element that dropout kept has a gradient, one that it
dropped has none.
"""

import sys
import warnings

import torch
from torch._functorch import config

warnings.filterwarnings("ignore")


def step(x):
    for _ in range(3):
        x = torch.nn.functional.dropout(x @ torch.eye(64), 0.5).sin()
    return x


if not hasattr(config, "activation_memory_budget"):
    print("this torch has no activation_memory_budget")
    sys.exit(2)
wrong = {}
for budget in (1.0, 0.5):
    torch._dynamo.reset()
    torch.manual_seed(0)
    x = torch.ones(64, 64, requires_grad=True)
    with config.patch(activation_memory_budget=budget), torch._inductor.config.patch(force_disable_caches=True):
        y = torch.compile(step, fullgraph=True)(x)
        y.sum().backward()
    wrong[budget] = ((y != 0) != (x.grad != 0)).sum().item()
if wrong[0.5] and not wrong[1.0]:
    print(f"FAILS: with a budget of 0.5 {wrong[0.5]} of {x.numel()} gradients are of another mask than forward's")
    sys.exit(1)
print("the failure does not show")
