"""`python -m graph_oracle COMMAND`: what the Python package does besides the program `graph-oracle`."""

from __future__ import annotations

import importlib
import sys

# Modules with a `main(arguments) -> exit status`.
COMMANDS = {
    "campaign": "a campaign in shards, on this machine or on a Ray cluster",
    "jobs": "a campaign as jobs of Slurm or Kubernetes, one for each shard",
}


def main() -> int:
    name, rest = (sys.argv[1] if len(sys.argv) > 1 else ""), sys.argv[2:]
    if name in COMMANDS:
        status: int = importlib.import_module(f"{__package__}.{name}").main(rest)
        return status
    lines = ["usage: python -m graph_oracle COMMAND ...", *(f"  {name:<10} {text}" for name, text in COMMANDS.items())]
    helped = name in ("-h", "--help")
    print("\n".join(lines), file=sys.stdout if helped else sys.stderr)
    return 0 if helped else 2


if __name__ == "__main__":
    sys.exit(main())
