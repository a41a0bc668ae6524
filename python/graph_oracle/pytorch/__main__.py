"""`python -m graph_oracle.pytorch COMMAND`; `--help` lists the commands."""

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from typing import Any

# Modules with a command: `add_arguments(parser)` and `main(arguments) -> exit status`.
COMMANDS = {
    "worker": "serve PyTorch's passes over the worker protocol (standard input and output)",
    "repro": "write a plain PyTorch script that shows the failure of a case",
    "capture": "write the graphs of a model as exchange JSON",
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="graph_oracle.pytorch", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    argv = sys.argv[1:] if arguments is None else list(arguments)
    for name, text in COMMANDS.items():
        module = f"{__package__}.{name}"
        if importlib.util.find_spec(module) is None:
            continue
        command = commands.add_parser(name, help=text, description=text)
        if name in argv[:1]:
            from .versions import missing

            # Help needs no torch.
            if not {"-h", "--help"} & set(argv) and (line := missing()):
                print(line, file=sys.stderr)
                return 2
            found: Any = importlib.import_module(module)
            found.add_arguments(command)
            command.set_defaults(run=found.main)
    parsed = parser.parse_args(argv)
    return int(parsed.run(parsed))


if __name__ == "__main__":
    sys.exit(main())
