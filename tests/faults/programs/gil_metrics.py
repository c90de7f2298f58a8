# SPDX-License-Identifier: Apache-2.0
"""A thread writes the whole history of metrics as JSON again and again, and holds the interpreter's lock meanwhile."""

import json
import threading
import time

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=120, batch_size=8, num_workers=2, step_ms=15)


class Items(Dataset):
    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        return torch.full((3, 32, 32), float(index))


def write_history():
    history = [{"step": i, "loss": i / 7, "rate": 0.1} for i in range(15000)]
    while True:
        json.dumps(history)
        time.sleep(0.002)


def main():
    loader = DataLoader(Items(), batch_size=args.batch_size, num_workers=args.num_workers)
    if not args.fixed:
        threading.Thread(target=write_history, daemon=True).start()
    trainer = Trainer(args)
    for items in loader:
        trainer.step(items)
    trainer.finish()


if __name__ == "__main__":
    main()
