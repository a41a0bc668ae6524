"""Whether a GPU gives what the tables of operators say: sizes, strides, dtypes and offsets of results.

    python gpu/operators.py [CALLS PER OPERATOR]

The tables are held against answers of a CPU (`tests/peer/shape_cases.py`). This runs the same calls on a GPU, on tensors
with the same windows on their storages, and copies tensors of every layout between the devices, real ones and fake ones.
Prints each operator whose results differ. Exit status 1 if one differs, 2 without a GPU. It compares no values.
"""

import collections
import importlib.util
import pathlib
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

CASES = pathlib.Path(__file__).parent.parent / "tests/peer/shape_cases.py"


def load(*arguments):
    """The module of the calls, which reads its arguments when it is loaded."""
    sys.argv = [str(CASES), "", *arguments]
    spec = importlib.util.spec_from_file_location("shape_cases", CASES)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_gpu(tensor):
    """The same window on a copy of its storage."""
    storage = tensor.untyped_storage().cuda()
    window = torch.empty(0, dtype=tensor.dtype, device="cuda")
    return window.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())


def facts(result):
    if isinstance(result, (list, tuple)):
        return [facts(one) for one in result]
    if not isinstance(result, torch.Tensor):
        return result
    return list(result.shape), list(result.stride()), str(result.dtype), result.storage_offset()


def answer(module, op, args, kwargs, wrap):
    """The facts of a call's result, or None where it is refused; and whether a kernel lacks."""
    try:
        return facts(module.run(op, args, kwargs, wrap)[0]), False
    except (AssertionError, RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
        return None, "not implemented" in str(error) or "CUDA" in str(error)


def compare(module, calls, differ):
    asked = 0
    for target, args, kwargs in calls:
        try:
            [module.materialise(a, {}, lambda t: t) for a in [*args, *kwargs.values()]]
        except (RuntimeError, TypeError):
            continue
        op = module.operator(target)
        host, no_kernel = answer(module, op, args, kwargs, lambda t: t)
        device, lacks = answer(module, op, args, kwargs, on_gpu)
        if no_kernel or lacks:
            continue
        asked += 1
        given = [facts(module.materialise(a, {}, lambda t: t)) for a in [*args, *kwargs.values()]]
        if host != device:
            differ[target, "host and GPU"].append((given, host, device))
    return asked


def copies(module, differ):
    """`_to_copy` between devices, both ways, of tensors of all layouts."""
    asked = 0
    copy = torch.ops.aten._to_copy.default
    for layout in ("plain", "permuted", "sliced", "expanded"):
        for shape in ((), (1,), (4,), (2, 1), (2, 3), (1, 1, 1), (2, 1, 1, 1), (2, 3, 4), (2, 0, 3), (2, 3, 1, 4)):
            for _ in range(4):
                host = module.T(shape, layout=layout).make()
                for source, to in ((host, "cuda"), (on_gpu(host), "cpu"), (on_gpu(host), "cuda")):
                    asked += 1
                    real = facts(copy(source, device=to))
                    mode = FakeTensorMode()
                    with mode:
                        fake = facts(copy(mode.from_tensor(source), device=to))
                    if fake != real:
                        differ["_to_copy", f"{source.device.type} to {to}"].append((facts(source), fake, real))
    return asked


def main():
    if not torch.cuda.is_available():
        print("no GPU")
        return 2
    per_operator = sys.argv[1] if len(sys.argv) > 1 else "12"
    print("torch", torch.__version__, torch.cuda.get_device_name())
    differ = collections.defaultdict(list)
    module = load(per_operator)
    print("random calls:", compare(module, module.random_calls(), differ))
    module = load("0", "views")
    print("views:", compare(module, module.view_calls(), differ))
    print("copies between devices:", copies(module, differ))
    for (target, between), cases in sorted(differ.items()):
        print(f"{target}: {between} differ in {len(cases)} calls, such as")
        for case in cases[:2]:
            print("   ", *case)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
