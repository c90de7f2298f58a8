# SPDX-License-Identifier: Apache-2.0
"""Rows of an SQLite database, through a connection that the workers inherit."""

import sqlite3

import torch
from common import Trainer, data_folder, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=200, batch_size=8, num_workers=2, step_ms=25)
ROWS = 4096


def make(folder):
    with sqlite3.connect(folder / "rows.db") as database:
        database.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, value REAL, label INTEGER)")
        database.executemany("INSERT INTO rows VALUES (?, ?, ?)", ((i, i / 2, i % 10) for i in range(ROWS)))
    database.close()


class Rows(Dataset):
    def __init__(self):
        self.path = data_folder("sqlite", make) / "rows.db"
        self.database = None if args.fixed else sqlite3.connect(self.path)

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        if self.database is None:
            self.database = sqlite3.connect(self.path)
        query = "SELECT value, label FROM rows WHERE id = ?"
        return torch.tensor(self.database.execute(query, (index % ROWS,)).fetchone())


def main():
    loader = DataLoader(Rows(), batch_size=args.batch_size, shuffle=True, num_workers=args.num_workers,
                        multiprocessing_context="fork")  # the default before Python 3.14
    trainer = Trainer(args)
    for rows in loader:
        trainer.step(rows)
    trainer.finish()


if __name__ == "__main__":
    main()
