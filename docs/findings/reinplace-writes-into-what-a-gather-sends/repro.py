"""An all-reduce is made in place on what a gather of another group, which is in flight, still sends: sums are gathered.

Pass reinplace_inplaceable_ops, as torch.compile runs it by default, PyTorch 2.15.0+cu132; breaks rewrite/in-flight.
Needs torch alone. Exit status 1 if the failure shows, else 0.

torch.compile in two processes (gloo). The gather waits behind three sums of its own group, while the all-reduce of
another group is done at once: it writes into the tensor that is yet to be sent. Eager mode reduces a copy.
"""

import sys
import tempfile
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

warnings.filterwarnings("ignore")
OPS = torch.ops._c10d_functional


def step(x, large, first, second):
    t = x @ x  # A product has memory of its own.
    sums = [OPS.all_reduce(large + i, "sum", first) for i in range(3)]
    gathered = OPS.all_gather_into_tensor(t, 2, first)
    total = OPS.wait_tensor(OPS.all_reduce(t, "sum", second))
    return OPS.wait_tensor(gathered), total, [OPS.wait_tensor(one) for one in sums]


def run(rank, path, failed):
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
    first, second = (dist.new_group([0, 1], backend="gloo").group_name for _ in range(2))
    compiled = torch.compile(lambda x, large: step(x, large, first, second), fullgraph=True)
    x, large = torch.full((2, 2), float(rank + 1)), torch.ones(1 << 23)
    eager = step(x, large, first, second)[0]
    assert eager.flatten().tolist() == [2, 2, 2, 2, 8, 8, 8, 8]
    found = compiled(x, large)[0]
    if not torch.equal(eager, found):
        print(f"FAILS: rank {rank} gathers {found.flatten().tolist()}, and in eager mode {eager.flatten().tolist()}", flush=True)
        failed[rank] = True
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, mp.Manager() as manager:
        failed = manager.dict()
        mp.spawn(run, (f"{folder}/store", failed), nprocs=2)
        if failed:
            sys.exit(1)
    print("the failure does not show")
