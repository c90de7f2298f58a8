# SPDX-License-Identifier: Apache-2.0
"""A corpus as a Python list of strings: reading a string counts a reference, and its page is copied in the worker."""

import numpy as np
import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=240, batch_size=8, num_workers=2, step_ms=25)
LINES = 1500  # of one sample


class Corpus(Dataset):
    def __init__(self):
        lines = (f"line {i:09} of a corpus that is kept in memory as text" for i in range(len(self) * LINES))
        self.lines = np.array(list(lines), "S64") if args.fixed else list(lines)

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        lines = self.lines[index * LINES : (index + 1) * LINES]
        return torch.tensor([index, sum(map(len, lines))])


def main():
    loader = DataLoader(Corpus(), batch_size=args.batch_size, num_workers=args.num_workers,
                        multiprocessing_context="fork")  # the default before Python 3.14
    trainer = Trainer(args)
    for lengths in loader:
        trainer.step(lengths)
    trainer.finish()


if __name__ == "__main__":
    main()
