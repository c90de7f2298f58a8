# SPDX-License-Identifier: Apache-2.0
"""Trains on features computed from long series of measurements, in every worker, for every sample."""

import numpy as np
import torch
from common import Trainer, data_folder, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=150, batch_size=16, num_workers=2, step_ms=12)


def make(folder):
    np.save(folder / "series.npy", np.random.default_rng(0).standard_normal((24, 240_000), np.float32))


class Series(Dataset):
    def __init__(self):
        self.series = np.load(data_folder("series", make) / "series.npy")

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        series = self.series[index % len(self.series)]
        if args.fixed:  # the features were computed once, beforehand
            return torch.from_numpy(series[:64].copy()), index
        ranked = np.sort(series)
        steps = np.diff(ranked)
        smooth = np.cumsum(ranked)[8:] - np.cumsum(ranked)[:-8]
        return torch.from_numpy(np.concatenate([steps[:32], smooth[:32]])), index


def main():
    loader = DataLoader(Series(), batch_size=args.batch_size, num_workers=args.num_workers)
    trainer = Trainer(args)
    for features, index in loader:
        trainer.step([index, features])
    trainer.finish()


if __name__ == "__main__":
    main()
