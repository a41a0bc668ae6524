"""The offload of one piece of a chunk() frees the memory of all pieces, while others are still to be read.

torchtitan 0.3.0 and PyTorch 2.15.0. Exit status 1 if the failure shows, 0 if not, 2 if it cannot be shown here.

The first layer hands one half to the second layer and the other half to the third. The operators of the offload need a
GPU; here a copy stands for each, and not-a-number for memory that a wait frees (all of a storage, as there).
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")
try:
    from torchtitan.experiments.graph_trainer import cpu_offload
    from torchtitan.experiments.graph_trainer.common_utils import annotate_module_fqns
    from torchtitan.experiments.graph_trainer.make_fx_tracer import minimal_fx_tracer, run_traced
    from torchtitan.experiments.graph_trainer.memory_policy import tag_sac_policy
except ImportError as error:
    print(f"not shown: {error}")
    sys.exit(2)


class Layer(torch.nn.Linear):
    def forward(self, x):
        result = torch.sin(super().forward(x.sin()))
        return result.chunk(2) if self.bias is not None else result


class Model(torch.nn.Module):
    def forward(self, x):
        first, second = self.layers[0](x)
        return self.layers[3](self.layers[2](self.layers[1](first) + second))


class OnTheHost(torch.fx.Interpreter):
    def call_function(self, target, args, kwargs):
        if target in (torch.ops.ao.offload.default, torch.ops.ao.reload.default):
            return args[0].clone()
        if target is torch.ops.ao.wait_tensor.default:
            storage = args[1].untyped_storage()
            torch.empty(0).set_(storage, 0, [storage.nbytes() // 4]).fill_(float("nan"))
            return args[0]
        return super().call_function(target, args, kwargs)


model, x = Model(), torch.ones(64, 64)
model.layers = torch.nn.ModuleList([Layer(64, 64, bias=number == 0) for number in range(4)])
annotate_module_fqns(model)
traced = minimal_fx_tracer(lambda x: torch.autograd.grad(model(x).sum(), list(model.parameters())), module=model)(x)
before = run_traced(traced, module=model)(x)
tag_sac_policy(traced.gm)
cpu_offload.tag_all_offloadable_activations(traced.gm)
cpu_offload.apply_cpu_offload_pass(traced.gm)
after = run_traced(traced, module=model, interpreter_cls=OnTheHost)(x)
if not all(map(torch.equal, before, after)):
    print(f"FAILS: the gradients are {after[0][0, 0].item()} ..., and before the pass {before[0][0, 0].item()} ...")
    sys.exit(1)
print("the failure does not show")
