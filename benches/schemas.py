"""Writes oracle/ir/ops/schemas.txt: the schemas of PyTorch's own operators that the table does not list.

    python benches/schemas.py > oracle/ir/ops/schemas.txt

A line an operator: the schema as PyTorch prints it, and behind a tab its tag if running it draws random numbers.
"""

import torch
import torch._inductor.inductor_prims  # noqa: F401
import torch._prims  # noqa: F401
import torch.distributed  # noqa: F401
import torch.distributed._functional_collectives  # noqa: F401

NAMESPACES = ("aten", "prims", "rngprims", "inductor", "_c10d_functional", "_quantized", "quantized_decomposed")


def lines():
    for schema in torch._C._jit_get_all_schemas():
        namespace, name = schema.name.split("::")
        if namespace not in NAMESPACES:
            continue
        overload = schema.overload_name or "default"
        try:
            operator = getattr(getattr(getattr(torch.ops, namespace), name), overload)
        except (AttributeError, RuntimeError):
            continue
        if "..." in str(operator._schema):
            continue
        draws = torch.Tag.nondeterministic_seeded in operator.tags
        yield str(operator._schema) + ("\tdraws" if draws else "")


if __name__ == "__main__":
    print("\n".join(sorted(set(lines()))))
