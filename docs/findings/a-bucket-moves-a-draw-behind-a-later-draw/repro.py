"""A bucket moves a dropout that reads a gather behind a later dropout: with the same seed both get other masks.

Pass bucketing with kind=all_gather, PyTorch 2.15.0; breaks order/effects-preserved.
Needs torch alone. Exit status 1 if the failure shows, else 0.

One rank over gloo. torch.compile with a compiler that buckets and sorts the aten graph, and leaves its execution to eager
kernels, draws as eager mode does without the bucket only.
"""

import sys
import warnings

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.fx_passes import bucketing
from torch._inductor.pattern_matcher import stable_topological_sort

warnings.filterwarnings("ignore")


def step(a, b, c):
    gathered = collectives.wait_tensor(collectives.all_gather_tensor(a, 0, dist.group.WORLD))
    first = torch.nn.functional.dropout(gathered, 0.5)
    second = torch.nn.functional.dropout(b, 0.5)
    return first, second, collectives.wait_tensor(collectives.all_gather_tensor(c, 0, dist.group.WORLD))


def compiled(bucket):
    def compiler(module, example_inputs):
        if bucket:
            bucketing.bucket_all_gather(module, lambda index: 2000.0, "default")
            stable_topological_sort(module.graph)
            module.graph.lint()
            module.recompile()
        return make_boxed_func(module.forward)

    torch._dynamo.reset()
    return torch.compile(step, backend=aot_autograd(fw_compiler=compiler), fullgraph=True)


def run(function):
    torch.manual_seed(0)
    return function(torch.full([8], 1.0), torch.full([8], 2.0), torch.full([8], 3.0))


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
expected, without, found = run(step), run(compiled(False)), run(compiled(True))
dist.destroy_process_group()
if not all(torch.equal(a, b) for a, b in zip(expected, without)):
    print("without the pass the values differ from eager's already; this shows nothing")
    sys.exit(2)
for index, (a, b) in enumerate(zip(expected, found)):
    if not torch.equal(a, b):
        print(f"FAILS: value {index} is {b.tolist()}, and before the pass it was {a.tolist()}")
        sys.exit(1)
print("the failure does not show")
