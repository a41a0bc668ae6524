"""Prints every row of the table of operators whose schema differs from the installed PyTorch's.

    python tests/peer/ops_schemas.py

Exit status 1 if there are any. Rows of operators that PyTorch itself does not define are named and passed over.
"""

import pathlib
import re
import sys

import torch
import torch._inductor.fx_passes.bucketing  # noqa: F401
import torch._inductor.inductor_prims  # noqa: F401
import torch._prims.rng_prims  # noqa: F401
import torch.distributed._functional_collectives  # noqa: F401
import torch.distributed._symmetric_memory  # noqa: F401
import torch.distributed.fsdp._fully_shard._fsdp_collectives  # noqa: F401
import torch.distributed.tensor  # noqa: F401

FOREIGN = {"autoparallel"}
ROW = re.compile(r'^    \("[a-z0-9_]*",\s+Kind::.*?,\s+(?:r#"(?P<raw>.*)"#|"(?P<plain>.*)")\),$')


def rows():
    folder = pathlib.Path(__file__).resolve().parents[2] / "oracle/ir/ops/table"
    for file in sorted(folder.glob("*.rs")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if line.startswith("    ("):
                match = ROW.match(line)
                if match is None:
                    raise SystemExit(f"{file.name}:{number}: not a row: {line}")
                yield f"{file.name}:{number}", match["raw"] or match["plain"]


def main():
    compared = different = 0
    for place, ours in rows():
        if "::" not in ours:
            continue
        namespace, rest = ours.split("::", 1)
        name, _, overload = rest.split("(", 1)[0].partition(".")
        if namespace in FOREIGN:
            print(f"{place}: {namespace}::{name} is not PyTorch's")
            continue
        compared += 1
        try:
            theirs = str(torch._C._get_schema(f"{namespace}::{name}", overload))
        except RuntimeError as error:
            theirs = f"none ({error})"
        if ours != theirs:
            different += 1
            print(f"{place}\n  table   {ours}\n  PyTorch {theirs}")
    print(f"{compared} schemas compared with PyTorch {torch.__version__}, {different} differ")
    return different > 0


sys.exit(main())
