"""The prefetch of offloaded activations puts a reload behind the wait for it.

torchtitan 0.3.0 and PyTorch 2.15.0. Exit status 1 if the failure shows, 0 if not, 2 if it cannot be shown here.

Gated layers, traced and tagged as graph_trainer does with memory_policy=sac_and_offload. Backward of a layer begins
with a product that reads what the layer before it gave.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")
try:
    from torchtitan.experiments.graph_trainer import cpu_offload
    from torchtitan.experiments.graph_trainer.common_utils import annotate_module_fqns
    from torchtitan.experiments.graph_trainer.make_fx_tracer import minimal_fx_tracer
    from torchtitan.experiments.graph_trainer.memory_policy import tag_sac_policy
except ImportError as error:
    print(f"not shown: {error}")
    sys.exit(2)


class Layer(torch.nn.Linear):
    def forward(self, x):
        return x * torch.sigmoid(super().forward(x))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*[Layer(64, 64, bias=False) for _ in range(3)])

    def forward(self, x):
        return self.layers(x)


model, x = Model(), torch.ones(64, 64)
annotate_module_fqns(model)


def step(x):
    loss = model(x).sum()
    return [loss, *torch.autograd.grad(loss, list(model.parameters()))]


traced = minimal_fx_tracer(step, module=model)(x)
tag_sac_policy(traced.gm)
cpu_offload.tag_all_offloadable_activations(traced.gm)
try:
    cpu_offload.apply_cpu_offload_pass(traced.gm)
except RuntimeError as error:
    print(f"FAILS: {str(error).splitlines()[0]}")
    sys.exit(1)
print("the failure does not show")
