"""What the scripts on regions (`torch.compiler.nested_compile_region`) share: a function compiled, against eager mode.

Needs torch alone. A script calls `compare(step, make)`; `make` gives the arguments, anew for each side.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")
if not hasattr(torch.compiler, "nested_compile_region"):
    print("this torch has no nested_compile_region")
    sys.exit(2)
region = torch.compiler.nested_compile_region


def leaves(argument):
    """The tensors of an argument: itself, or its parameters."""
    return list(argument.parameters()) if isinstance(argument, torch.nn.Module) else [argument]


def run(step, make):
    """What a function returns, what it leaves in its arguments, and the gradients of these."""
    torch.manual_seed(0)
    arguments = make()
    outputs = list(step(*arguments))
    losses = [output.double().sum() for output in outputs if output.requires_grad]
    if losses:
        sum(losses).backward()
    inputs = [leaf for argument in arguments for leaf in leaves(argument)]
    return {"values": outputs, "arguments": inputs, "gradients": [leaf.grad for leaf in inputs]}


def is_same(one, other):
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and torch.allclose(one, other, rtol=1e-2, atol=1e-3)


def compare(step, make, backend="aot_eager"):
    """Ends with status 1 if anything differs from eager mode or the compiler fails."""
    expected = run(step, make)
    torch._dynamo.reset()
    try:
        found = run(torch.compile(step, backend=backend, fullgraph=True), make)
    except Exception as error:
        print(f"FAILS: {str(error).strip().splitlines()[-1][:200]}")
        sys.exit(1)
    for what, values in expected.items():
        for index, (one, other) in enumerate(zip(values, found[what])):
            if not is_same(one, other):
                print(f"FAILS: {index} of the {what} is {other}, and in eager mode {one}".replace("\n", ""))
                sys.exit(1)
    print("the failure does not show")
