# SPDX-License-Identifier: Apache-2.0
"""Word embeddings by NumPy, whose BLAS starts four threads in every worker, as the environment of a big machine says."""

import numpy as np
import torch
from common import Trainer, blas_threads, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=120, batch_size=2, num_workers=2, step_ms=15)


def use_all_cores(worker):
    blas_threads(1 if args.fixed else 4)


class Embeddings(Dataset):
    def __init__(self):
        self.table = np.random.default_rng(0).standard_normal((320, 320), np.float32)

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        vectors = self.table @ self.table
        return torch.from_numpy(vectors[:64].copy()), index


def main():
    blas_threads(1)
    loader = DataLoader(Embeddings(), batch_size=args.batch_size, num_workers=args.num_workers,
                        worker_init_fn=use_all_cores)
    trainer = Trainer(args)
    for vectors, index in loader:
        trainer.step([index, vectors])
    trainer.finish()


if __name__ == "__main__":
    main()
