# SPDX-License-Identifier: Apache-2.0
"""Any of the programs that generate.py draws: a dataset, a loader, a step and one planted cause, by arguments.

Samples and steps take the time that they are given: `sleep` waits, as for a device, `cpu` counts the thread's own CPU
time, so that a busy machine makes it later but not less. With --fixed the cause is gone, and nothing else.
"""

import fcntl
import gc
import logging
import time

import torch
from common import OWN, Trainer, options
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

args = options(
    steps=100, dataset="map", cause="none", work="sleep", work_ms=1.0, cost_ms=10.0, every=1, objects=0, start_ms=0.0
)  # fmt: skip
planted = args.cause if not args.fixed else "none"
SAMPLES = args.steps * args.batch_size


def spend(milliseconds: float, how: str) -> None:
    if how == "sleep":
        time.sleep(milliseconds / 1e3)
        return
    end = time.thread_time() + milliseconds / 1e3
    while time.thread_time() < end:
        pass


def make(index: int) -> object:
    if planted == "lock":
        with open(OWN / "generated.lock", "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            spend(args.work_ms, args.work)
    else:
        spend(args.work_ms, args.work)
    sample = torch.full((64,), float(index))
    return {"index": index, "values": sample} if args.dataset == "dict" else (index, sample)


class Map(Dataset):
    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return make(index)


class Batched(Map):
    def __getitems__(self, indices):
        return [make(index) for index in indices]


class Files(Map):
    def __getitem__(self, index):
        path = OWN / f"generated-{index % 16}.txt"
        if not path.exists():
            path.write_text(str(index % 16))
        return make(int(path.read_text()) + index)


class Stream(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        for batch in range(worker.id if worker else 0, args.steps, worker.num_workers if worker else 1):
            yield from map(make, range(batch * args.batch_size, (batch + 1) * args.batch_size))


class Slow:
    """A batch sampler that thinks."""

    def __len__(self):
        return args.steps

    def __iter__(self):
        for batch in range(args.steps):
            spend(args.cost_ms, "cpu")
            yield range(batch * args.batch_size, (batch + 1) * args.batch_size)


class Late(logging.Handler):
    def emit(self, record):
        time.sleep(args.cost_ms / 1e3)


def collate(samples):
    spend(args.cost_ms, "cpu")
    return torch.utils.data.default_collate(samples)


def begin(worker: int) -> None:
    torch.set_num_threads(1)
    time.sleep(args.start_ms / 1e3)


def loader() -> DataLoader:
    data = {"map": Map, "dict": Map, "batched": Batched, "files": Files, "stream": Stream}[args.dataset]()
    more = {"persistent_workers": args.persistent, "prefetch_factor": args.prefetch_factor, "worker_init_fn": begin}
    how = {"num_workers": args.num_workers, **(more if args.num_workers else {})}
    if planted == "sampler":
        return DataLoader(data, batch_sampler=Slow(), **how)
    return DataLoader(data, args.batch_size, collate_fn=collate if planted == "collate" else None, **how)


def main():
    trainer = Trainer(args)
    batches = loader()
    validation = DataLoader([torch.zeros(4)] * 8, batch_size=4)
    kept = [[number] for number in range(args.objects)]
    weights = torch.zeros(int(args.cost_ms * 60_000))
    logger = logging.getLogger("training")
    logger.addHandler(Late())
    for _ in range(args.epochs):
        for batch in batches:
            trainer.step(batch["index"] if isinstance(batch, dict) else batch)
            if trainer.done % args.every:
                continue
            if planted == "gc":
                gc.collect()
            elif planted == "save":
                torch.save(weights, OWN / "generated.pt")
            elif planted == "logging":
                logger.warning("step %d", trainer.done)
            elif planted == "validation":
                with torch.no_grad():
                    for _ in validation:
                        time.sleep(args.cost_ms / 2e3)
    trainer.finish()
    del kept


if __name__ == "__main__":
    main()
