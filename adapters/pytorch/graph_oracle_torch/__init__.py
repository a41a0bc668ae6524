"""PyTorch's side of graph-oracle.

`python -m graph_oracle_torch worker` serves PyTorch's graph passes over the worker protocol (docs/protocol.md).

Importing the package does not import torch: that takes seconds, and a missing torch is to be told in one line.
"""

__version__ = "0.1.0"
