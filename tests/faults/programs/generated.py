# SPDX-License-Identifier: Apache-2.0
"""Any of the programs that generate.py draws: a dataset, a loader, a step and what is planted, by arguments.

With --fixed all of --cause is gone, and nothing else.
"""

import gc
import logging
import queue
import random
import threading
import time

import numpy as np
import torch
from common import OWN, Trainer, blas_threads, options
from drawn_data import DATASETS, spend
from drawn_steps import trainer_of
from torch.utils.data import DataLoader

args = options(
    steps=100, dataset="map", cause="none", work="sleep", work_ms=1.0, cost_ms=10.0, late_ms=0.0, every=1, objects=0,
    start_ms=0.0, threads=1, slow_ms=0.0, quick_ms=0.0, rank=0, filling=0, spawn=False, size=0, device="",
)  # fmt: skip
planted = set() if args.fixed else set(args.cause.split("+"))


class Slow:
    """A batch sampler, or a sampler, that thinks."""

    def __init__(self, batches: bool):
        self.batches = batches

    def __len__(self):
        return args.steps * (1 if self.batches else args.batch_size)

    def __iter__(self):
        for batch in range(args.steps):
            spend(args.cost_ms, "cpu")
            indices = range(batch * args.batch_size, (batch + 1) * args.batch_size)
            yield from [indices] if self.batches else indices


class Late(logging.Handler):
    def emit(self, record):
        time.sleep(args.cost_ms / 1e3)


def collate(samples):
    spend(args.cost_ms, "cpu")
    return torch.utils.data.default_collate(samples)


def begin(worker: int) -> None:
    torch.set_num_threads(1)
    if args.dataset == "library":
        blas_threads(args.threads)
    time.sleep(args.start_ms / 1e3)


def loader() -> DataLoader:
    data = DATASETS[args.dataset](args, planted)
    more = {"persistent_workers": args.persistent, "prefetch_factor": args.prefetch_factor, "worker_init_fn": begin}
    how = {"num_workers": args.num_workers, **(more if args.num_workers else {})}
    if args.spawn:
        how["multiprocessing_context"] = "spawn"
    if args.device:
        how["pin_memory"] = "pageable" not in planted
    if args.dataset == "batches":
        return DataLoader(data, None, **how)
    if "collate" in planted:
        how["collate_fn"] = collate
    elif "objects" in planted:
        how["collate_fn"] = list
    if "batch_sampler" in planted:
        return DataLoader(data, batch_sampler=Slow(True), **how)
    if "sampler" in planted:
        return DataLoader(data, args.batch_size, sampler=Slow(False), **how)
    return DataLoader(data, args.batch_size, **how)


def ahead(batches):
    """The batches, taken by a thread of the program."""
    room: queue.Queue = queue.Queue(2)

    def feed():
        for batch in batches:
            room.put(batch)
        room.put(None)

    threading.Thread(target=feed, daemon=True).start()
    return iter(room.get, None)


def dashboard():
    while True:
        figures = [k * 0.5 for k in range(5000)]
        sorted(figures, key=lambda figure: -figure)


class Costs:
    """What the training loop does besides training."""

    def __init__(self):
        self.weights = torch.zeros(int(args.cost_ms * 60_000))
        self.validation = DataLoader([torch.zeros(4)] * 8, batch_size=4)
        self.logger = logging.getLogger("training")
        self.logger.addHandler(Late())

    def pay(self, step: int) -> None:
        if "gc" in planted:
            gc.collect()
        if "save" in planted:
            torch.save(self.weights, OWN / "weights.pt")
        if "save_arrays" in planted:
            np.save(OWN / "weights.npy", self.weights.numpy())
        if "logging" in planted:
            self.logger.warning("step %d", step)
        if "validation" in planted:
            with torch.no_grad():
                for _ in self.validation:
                    time.sleep(args.cost_ms / 2e3)


def train(trainer: Trainer, batches) -> None:
    costs = Costs()
    for _ in range(args.epochs):
        for taken, batch in enumerate(ahead(batches) if args.cause == "feeder" else batches, 1):
            if taken > args.steps:  # a dataset without a split among workers has more
                break
            trainer.step(batch["index"] if isinstance(batch, dict) else batch)
            if trainer.done % args.every == 0:
                costs.pay(trainer.done)


def main():
    if args.slow_ms:  # two ranks
        ranks()
        return
    torch.set_num_threads(args.threads if "spin" in planted else 1)
    random.seed(1)
    kept = [[number] for number in range(args.objects)]
    if "gil" in planted:
        threading.Thread(target=dashboard, daemon=True).start()
    if args.dataset == "library":
        blas_threads(1)
    trainer = trainer_of(args, planted)
    train(trainer, loader())
    trainer.finish()
    del kept


def ranks() -> None:
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    if "wander" in args.cause:
        args.quick_ms, args.work_ms, args.rank = args.work_ms, args.slow_ms, dist.get_rank()
    elif dist.get_rank() == 1:
        args.work_ms = args.slow_ms
    trainer = Trainer(args)
    trainer.model = DistributedDataParallel(trainer.model)
    train(trainer, loader())
    dist.barrier()
    if dist.get_rank() == 0:
        trainer.finish()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
