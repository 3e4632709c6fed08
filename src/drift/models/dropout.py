"""Dropout as torch has it, four times as fast on a CPU."""

import numpy as np
import torch
from torch import Tensor, nn

LEVELS = 2**16  # a share is kept to so many


class Dropout(nn.Dropout):
    """Each element is 0 with probability p, to 16 bits, else it is divided by 1 - p; in evaluation nothing happens.

    On a CPU an element takes a quarter of a random word of 64 bits, where torch's own draws a word for each and
    compares them one by one. Before a small head that is all the time there is.
    """

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not 0 < self.p < 1 or x.device.type != "cpu":
            return super().forward(x)
        words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        kept = words.numpy().view(np.uint16)[: x.numel()] >= round(self.p * LEVELS)
        return x * torch.from_numpy(kept).view(x.shape).to(x.dtype).mul_(1 / (1 - self.p))
