"""The rematerialization of activations runs writes in place a second time, on memory that was written already.

torchtitan 0.3.0 and PyTorch 2.15.0. Exit status 1 if the failure shows, 0 if not, 2 if it cannot be shown here.

A layer scales its scores in place. Its step is traced, tagged with the default policy and rematerialized, as
graph_trainer does by default; backward scales the scores once more before it computes tanh again.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")
try:
    from torchtitan.experiments.graph_trainer.common_utils import annotate_module_fqns
    from torchtitan.experiments.graph_trainer.make_fx_tracer import minimal_fx_tracer, run_traced
    from torchtitan.experiments.graph_trainer.memory_policy import tag_sac_policy
    from torchtitan.experiments.graph_trainer.selective_activation_remat import selective_activation_remat_pass
except ImportError as error:
    print(f"not shown: {error}")
    sys.exit(2)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((4, 4), 0.25))

    def forward(self, x):
        scores = x @ self.weight
        scores *= 2
        return torch.tanh(scores)


model, x = torch.nn.Sequential(Layer()), torch.full((2, 4), 0.25)
annotate_module_fqns(model)


def step(x):
    loss = model(x).sum()
    return [loss, *torch.autograd.grad(loss, list(model.parameters()))]


traced = minimal_fx_tracer(step, module=model)(x)
_, before = run_traced(traced, module=model)(x)
tag_sac_policy(traced.gm)
selective_activation_remat_pass(traced.gm)
_, after = run_traced(traced, module=model)(x)
_, eager = step(x)
assert torch.equal(before, eager)
if not torch.equal(before, after):
    print(f"FAILS: the gradient is {after[0, 0].item()}, and before the pass it was {before[0, 0].item()}")
    sys.exit(1)
print("the failure does not show")
