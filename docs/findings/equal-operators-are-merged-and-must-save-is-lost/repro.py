"""The min-cut partitioner merges an operator that is tagged MUST_SAVE with an equal one that may be computed again,
and computes both again.

Pass partition, PyTorch 2.15.0+cu132; breaks partition/must-save-honoured.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

torch.compile: the product that the policy wants saved is computed again in backward, as another region has the same
product.
"""

import functools
import sys
import warnings

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

warnings.filterwarnings("ignore")


def policy(context, operator, *args, **kwargs):
    return CheckpointPolicy.MUST_SAVE if operator is torch.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE


def step(x, w, other):
    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    first = checkpoint(lambda x, w: (x @ w).sin(), x, other, use_reentrant=False)
    second = checkpoint(lambda x, w: x @ w, x, w, use_reentrant=False, context_fn=contexts)
    return first + second.cos()


products = []


def backward(module, _):
    products.append(sum(node.target is torch.ops.aten.mm.default for node in module.graph.nodes))
    return module


def count(same):
    torch._dynamo.reset()
    x, w = torch.ones(3, 3), torch.ones(3, 3, requires_grad=True)
    backend = aot_autograd(
        fw_compiler=lambda module, _: module, bw_compiler=backward, partition_fn=min_cut_rematerialization_partition
    )
    torch.compile(step, fullgraph=True, backend=backend)(x, w, w if same else w.detach() + 1).sum().backward()
    return products[-1]


# Alone, backward has one product, that of the gradient. With the same product in the other region it has two gradients.
alone, same = count(False), count(True)
if alone == 1 and same == 3:
    print("FAILS: a product that is tagged MUST_SAVE is computed again in backward")
    sys.exit(1)
print("the failure does not show")
