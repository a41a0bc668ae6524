"""A factor of shape [1, n] is one for each column, and is folded into a convolution's n channels.

Pass binary_folding_pass of freezing.
torch.compile runs it with torch._inductor.config.freezing = True, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

The image is as wide as there are channels.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Conv2d(1, 2, 1, bias=False)
        self.register_buffer("factor", torch.tensor([[1.0, 10.0]]))

    def forward(self, x):
        return self.layer(x) * self.factor


def given():
    return torch.ones(1, 1, 1, 2)


torch.set_grad_enabled(False)
model = Model().eval()
model.layer.weight.fill_(1)


def told(value):
    return f"{value.dtype} {value.tolist()}"


torch._inductor.config.force_disable_caches = True
eager = told(model(given()))
try:
    with torch._inductor.config.patch(freezing=True):
        compiled = told(torch.compile(model, fullgraph=True)(given()))
except Exception as error:
    print(f"it cannot be shown: torch.compile raises {type(error).__name__}: {' '.join(str(error).split())[:200]}")
    sys.exit(2)
if eager != compiled:
    print(f"FAILS: torch.compile returns {compiled}, and eager mode {eager}")
    sys.exit(1)
print("the failure does not show")
