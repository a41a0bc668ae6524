"""The min-cut partitioner hands an all-reduce to backward before it has been waited for, where backward only waits for
it twice in a row and nobody reads that

Pass partition with method=min-cut num_fwd_outputs=3, PyTorch 2.15.0+cu132; breaks comm/no-unwaited-crossing.
Needs torch alone and replay.py, which builds and runs the graph. Exit status 1 if the failure shows, else 0.
It looks for an exception, a graph that is none, ranks that wait for one another, other values than before.
comm/no-unwaited-crossing says more than that: it may be broken where the status is 0.
"""

import pathlib
import sys

import torch
import torch.distributed._functional_collectives
from torch._functorch import config, partitioners
from torch.fx.passes.shape_prop import _extract_tensor_metadata

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[:2]]
from replay import replay

comm = torch.ops._c10d_functional


def build(g):
    """The graph before the pass."""
    x0 = g.input('primals_1', [1, 1], torch.float32)
    x1 = g.input('tangents_1', [1, 1], torch.float32)
    n2 = g('n2', comm.all_reduce.default, x0, 'sum', 'dp')
    n3 = g('n3', comm.wait_tensor.default, n2)
    n4 = g('n4', comm.all_reduce.default, x0, 'sum', 'dp')
    n5 = g('n5', comm.wait_tensor.default, n4)
    n6 = g('n6', comm.wait_tensor.default, n3)
    g.tag(n2, n3, n4, n5, n6, partitioner_tag='is_forward')
    g.tag(n4, n5, recompute='PREFER_RECOMPUTE')
    g.output((n3, n3, None,))


def run_pass(module, mode):
    """The pass, as PyTorch calls it."""
    for node in module.graph.nodes:
        if isinstance(node.meta.get('val'), torch.Tensor):
            node.meta['tensor_meta'] = _extract_tensor_metadata(node.meta['val'])
    with config.patch({'graphsafe_rng_functionalization': False}), mode, torch._guards.tracing(torch._guards.TracingContext(mode)):
        return list(partitioners.min_cut_rematerialization_partition(
            module, (), num_fwd_outputs=3, static_lifetime_input_indices=[]
        ))


replay(build, run_pass, world=1, groups={"dp": [[0]]}, check='partition',
    nothing='nothing fails that this looks at; comm/no-unwaited-crossing may be broken all the same',
)
