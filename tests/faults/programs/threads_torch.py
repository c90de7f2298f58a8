# SPDX-License-Identifier: Apache-2.0
"""Spectrograms made by torch in workers that ask for sixteen threads each."""

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=120, batch_size=4, num_workers=4, step_ms=15)


def use_all_cores(worker):
    torch.set_num_threads(1 if args.fixed else 16)


class Spectrograms(Dataset):
    def __init__(self):
        self.basis = torch.randn(256, 512)
        self.clips = torch.randn(16, 512, 160)

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        clip = self.clips[index % len(self.clips)]
        for _ in range(3):
            spectrum = (self.basis @ clip).square().add(1e-6).log()
        return spectrum[:, :64].clone(), index


def main():
    loader = DataLoader(Spectrograms(), batch_size=args.batch_size, num_workers=args.num_workers,
                        worker_init_fn=use_all_cores)
    trainer = Trainer(args)
    for spectra, index in loader:
        trainer.step([index, spectra])
    trainer.finish()


if __name__ == "__main__":
    main()
