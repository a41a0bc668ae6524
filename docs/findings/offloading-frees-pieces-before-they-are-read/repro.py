"""Offloading of activations frees a value while the pieces of a split of it have yet to be read: it looks for users of
the split, and not of its results.

Pass partition, PyTorch 2.15.0+cu132; breaks memory/no-use-after-free.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

torch.compile of a function with a split. What ao.offload and ao.wait_tensor do on a GPU is done here on the CPU.
"""

import sys
import warnings

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import config
from torch._functorch.partitioners import min_cut_rematerialization_partition as min_cut

warnings.filterwarnings("ignore")
if not hasattr(config, "activation_offload_separate_stream"):
    print("this torch does not offload on a stream of its own")
    sys.exit(2)


def step(x):
    first, second = (x @ x).exp().split(2)
    return first.cos() * second.sin()


def partition(joint, inputs, **options):
    for node in joint.graph.nodes:
        node.meta["should_offload"] = node.name == "exp"
    return min_cut(joint, inputs, **options)


class OnTheCPU(torch.fx.Interpreter):
    """Offloads as torch.ops.ao does on a GPU, where wait_tensor frees the memory of what has been copied."""

    def call_function(self, target, args, kwargs):
        if "ao.offload" in str(target) or "ao.reload" in str(target):
            return args[0].clone()
        if "ao.wait_tensor" in str(target):
            args[1].untyped_storage().resize_(0)
            return args[0]
        if any(isinstance(x, torch.Tensor) and x.numel() and not x.untyped_storage().size() for x in args):
            print(f"FAILS: {target} reads memory that has been freed")
            sys.exit(1)
        return super().call_function(target, args, kwargs)


def compiler(module, _):
    return lambda *args: OnTheCPU(module).run(*args)


with config.patch(enable_activation_offloading=True, activation_offload_separate_stream=True):
    backend = aot_autograd(fw_compiler=compiler, bw_compiler=compiler, partition_fn=partition)
    torch.compile(step, fullgraph=True, backend=backend)(torch.ones(4, 4, requires_grad=True))
print("the failure does not show")
