"""PyTorch's side: passes served over the worker protocol, graphs taken out of PyTorch and put back into it."""
