"""A factor for each channel behind a transposed convolution is folded into the channels that it reads.

Pass binary_folding_pass of freezing.
torch.compile runs it with torch._inductor.config.freezing = True, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

Where the numbers of channels differ and a number is added, compiling raises RuntimeError.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.ConvTranspose2d(2, 2, 1, bias=False)
        self.register_buffer("factor", torch.tensor([1.0, 10.0]).view(2, 1, 1))

    def forward(self, x):
        return self.layer(x) * self.factor


def given():
    return torch.ones(1, 2, 1, 1)


torch.set_grad_enabled(False)
model = Model().eval()
model.layer.weight.copy_(torch.tensor([1.0, 2.0, 4.0, 8.0]).view(2, 2, 1, 1))


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
