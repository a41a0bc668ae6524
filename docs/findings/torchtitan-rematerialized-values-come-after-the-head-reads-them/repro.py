"""The rematerialization of activations lets the head's backward read a value that is computed again later only.

torchtitan 0.3.0 and PyTorch 2.15.0. Exit status 1 if the failure shows, 0 if not, 2 if it cannot be shown here.

The last layer ends in an activation whose result both the backward of lm_head and its own backward read.
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


class Layer(torch.nn.Linear):
    def forward(self, x):
        return torch.tanh(super().forward(x))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(4, 4, bias=False)])
        self.lm_head = torch.nn.Linear(4, 3, bias=False)

    def forward(self, x):
        return self.lm_head(self.layers[0](x))


model, x = Model(), torch.ones(2, 4)
annotate_module_fqns(model)


def step(x):
    loss = model(x).sum()
    return [loss, *torch.autograd.grad(loss, list(model.parameters()))]


traced = minimal_fx_tracer(step, module=model)(x)
run_traced(traced, module=model)(x)
tag_sac_policy(traced.gm)
selective_activation_remat_pass(traced.gm)
try:
    traced.gm.graph.lint()
except RuntimeError as error:
    print(f"FAILS: {str(error).splitlines()[0]}")
    sys.exit(1)
print("the failure does not show")
