# SPDX-License-Identifier: Apache-2.0
"""Two ranks, of which one reads from slower storage: the other waits for it at every gradient.

With --wander the slow one is another every ten steps. --fixed spreads the same work evenly over both.
"""

import sys
import time

import torch
import torch.distributed as dist
from common import Trainer, options
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

WANDER = "--wander" in sys.argv
if WANDER:
    sys.argv.remove("--wander")
args = options(steps=110, batch_size=4, num_workers=1, step_ms=34)


class Shard(Dataset):
    def __init__(self, rank):
        self.rank = rank

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        slow = index // args.batch_size // 10 % 2 if WANDER else 1
        milliseconds = 8 if args.fixed and WANDER else 14 if slow == self.rank else 2
        time.sleep((2 if args.fixed and not WANDER else milliseconds) / 1e3)
        return torch.full((3, 32, 32), float(index))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    loader = DataLoader(Shard(rank), batch_size=args.batch_size, num_workers=args.num_workers)
    trainer = Trainer(args)
    trainer.model = DistributedDataParallel(trainer.model)
    for items in loader:
        trainer.step(items)
    dist.barrier()
    if rank == 0:
        trainer.finish()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
