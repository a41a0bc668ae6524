"""Two convolutions that are multiplied by different numbers are both folded with the last of them.

Pass binary_folding_pass of freezing.
torch.compile runs it with torch._inductor.config.freezing = True, PyTorch 2.15.0+cu132; breaks rewrite/values.
Needs torch alone. Exit status 1 if the failure shows, else 0 (2: it cannot be shown with this version).

The result is 2 and 3 in eager mode.
"""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Conv2d(1, 1, 1, bias=False), torch.nn.Conv2d(1, 1, 1, bias=False)

    def forward(self, x):
        return torch.cat([self.one(x) * 2.0, self.two(x) * 3.0])


def given():
    return torch.ones(1, 1, 1, 1)


torch.set_grad_enabled(False)
model = Model().eval()
for parameter in model.parameters():
    parameter.fill_(1)


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
