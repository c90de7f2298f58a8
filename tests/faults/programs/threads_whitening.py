# SPDX-License-Identifier: Apache-2.0
"""Images that NumPy whitens, in three workers whose BLAS has three threads each."""

import numpy as np
import torch
from common import Trainer, blas_threads, options, picture
from torch.utils.data import DataLoader, Dataset

args = options(steps=130, batch_size=2, num_workers=3, step_ms=15)


def use_all_cores(worker):
    blas_threads(1 if args.fixed else 3)


class Whitened(Dataset):
    def __init__(self):
        self.images = [picture(i, 96, 400).reshape(-1, 288).astype(np.float32) for i in range(16)]
        self.whitening = np.random.default_rng(0).standard_normal((288, 288), np.float32)

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        white = self.images[index % len(self.images)] @ self.whitening
        return torch.from_numpy(white[:64].copy()), index


def main():
    blas_threads(1)
    loader = DataLoader(Whitened(), batch_size=args.batch_size, num_workers=args.num_workers,
                        worker_init_fn=use_all_cores)
    trainer = Trainer(args)
    for images, index in loader:
        trainer.step([index, images])
    trainer.finish()


if __name__ == "__main__":
    main()
