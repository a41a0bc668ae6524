"""`graph-oracle`, and `python -m graph_oracle`: the command line, in this process."""

import sys

from ._oracle import command


def main() -> int:
    """Runs the command line and returns its exit status."""
    return command(["graph-oracle", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
