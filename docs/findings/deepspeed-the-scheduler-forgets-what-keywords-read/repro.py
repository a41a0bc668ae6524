"""DeepCompile's scheduler places a node before what the node reads by a keyword, and fails with KeyError.

DeepSpeed 0.19.8 and PyTorch 2.15.0. Exit status 1 if the failure shows, 0 if not, 2 if it cannot be shown here.

A custom operator with a tensor behind the star, on two parameters. The operators of the C++ extension are declared here
as it declares them; the pass needs no more.
"""

import sys
import warnings
from unittest import mock

import torch
from torch._dynamo.backends.common import aot_autograd

warnings.filterwarnings("ignore")
try:
    from deepspeed.compile import list_schedule, util
    from deepspeed.compile.graph_param import DSGraphParamManager
    from deepspeed.compile.passes import zero3_compile
except ImportError as error:
    print(f"not shown: {error}")
    sys.exit(2)

dc = torch.library.Library("dc", "FRAGMENT")
dc.define("allgather_param(Tensor a, int graph_id, int id, ScalarType? dtype = None) -> Tensor")
dc.define("wait_allgather(Tensor(a) a, int graph_id, int id) -> Tensor(a)")
dc.define("release_param(Tensor(a) a, int graph_id, int id, int n_users) -> Tensor(a)")
dc.define("reduce_grad(Tensor a, int graph_id, int id) -> Tensor")
util.dc_handle = mock.Mock()


demo = torch.library.Library("demo", "DEF")
demo.define("scaled(Tensor x, *, Tensor scale) -> Tensor")
demo.impl("scaled", lambda x, *, scale: x * scale, "CompositeExplicitAutograd")


def compiler(gm, inputs):
    indices = [(i, i, value.shape) for i, value in enumerate(inputs)]
    manager = DSGraphParamManager(gm.graph, inputs, indices)
    graph = zero3_compile.add_gather_and_release(0, gm.graph, manager, util.get_param_nodes(gm.graph, indices))
    for node in graph.nodes:
        node.meta["device_time"] = 0.0
    try:
        list_schedule.fast_free_schedule(graph, 0, 0, debug_log=False)
    except KeyError as error:
        print(f"FAILS: KeyError: {error}")
        sys.exit(1)
    return gm


with torch.no_grad():
    backend = aot_autograd(fw_compiler=compiler)
    torch.compile(lambda w, s: torch.ops.demo.scaled(w, scale=s), backend=backend)(torch.ones(4), torch.ones(4))
print("the failure does not show")
