# SPDX-License-Identifier: Apache-2.0
"""An HDF5 file that is opened once, before the workers are forked."""

import h5py
import numpy as np
import torch
from common import Trainer, data_folder, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=200, batch_size=8, num_workers=2, step_ms=25)
ROWS = 512


def make(folder):
    with h5py.File(folder / "rows.h5", "w") as out:
        out["rows"] = np.arange(ROWS * 1024, dtype=np.float32).reshape(ROWS, 1024)


class Rows(Dataset):
    def __init__(self):
        self.path = data_folder("hdf5", make) / "rows.h5"
        self.file = None if args.fixed else h5py.File(self.path)

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        if self.file is None:
            self.file = h5py.File(self.path)
        return torch.from_numpy(self.file["rows"][index % ROWS])


def main():
    loader = DataLoader(Rows(), batch_size=args.batch_size, num_workers=args.num_workers,
                        multiprocessing_context="fork")  # the default before Python 3.14
    trainer = Trainer(args)
    for rows in loader:
        trainer.step(rows)
    trainer.finish()


if __name__ == "__main__":
    main()
