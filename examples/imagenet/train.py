# SPDX-License-Identifier: Apache-2.0
"""Trains a torchvision model on a folder of images, on one GPU, several, or the CPU.

    python examples/imagenet/train.py imagenet                 # imagenet/train and imagenet/val, or one folder
    torchrun --nproc-per-node 8 examples/imagenet/train.py imagenet
    python examples/imagenet/train.py --synthetic 96 --model resnet18 --size 64 --batch-size 16 --lr 0.3 --epochs 4

With --checkpoint FILE, it saves there after each epoch and when it stops, and resumes from there at the next batch: the
final weights are bit for bit those of an uninterrupted run.
"""
import argparse
import contextlib
import math
import os
import tempfile
import time
import zlib
from pathlib import Path

import stoker
import torch
import torch.distributed as dist
import torchvision
from stoker import transforms as T
from stoker.synth import make_shapes

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", help="a folder of class folders, or one that holds train and val")
    parser.add_argument("--synthetic", type=int, metavar="N", help="draw N images of shapes and train on them")
    parser.add_argument("--model", default="resnet50", help="a classification model from torchvision")
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--batch-size", type=int, default=256, help="per process")
    parser.add_argument("--size", type=int, default=224, help="width and height of the images")
    parser.add_argument("--lr", type=float, default=0.1, help="for a batch of 256 over all processes; scaled with the batch")
    parser.add_argument("--mix", action="store_true", help="apply MixUp or CutMix, chosen at random for each batch")
    parser.add_argument("--fidelity", default="exact", choices=["exact", "fast"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--stop-after", type=int, metavar="STEPS", help="stop early, to demonstrate resuming")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--backend", help="for torch.distributed (default: nccl on GPUs, gloo otherwise)")
    args = parser.parse_args()
    if (args.data is None) == (args.synthetic is None):
        parser.error("give either a folder or --synthetic N")
    return args


def set_up(args):
    """Returns the rank, the number of processes, and the device of this process."""
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    device = torch.device(args.device)
    if device.type == "cuda":
        local = device.index if device.index is not None else int(os.environ.get("LOCAL_RANK", "0"))
        device = torch.device("cuda", local % torch.cuda.device_count())
        torch.cuda.set_device(device)
    if world > 1:
        dist.init_process_group(args.backend or ("nccl" if device.type == "cuda" else "gloo"))
    return rank, world, device


def loaders(args, root, rank, world, device):
    """Returns the loaders for training and evaluation; batches arrive on the device, ready for the model."""
    train, val = (root / name if (root / name).is_dir() else root for name in ("train", "val"))
    floats = [T.ToTensor(), T.Normalize(MEAN, STD)]
    training = T.Compose([T.RandomResizedCrop(args.size), T.RandomHorizontalFlip(), *floats])
    evaluation = T.Compose([T.Resize(args.size * 8 // 7), T.CenterCrop(args.size), *floats])
    common = {
        "batch_size": args.batch_size, "seed": args.seed, "rank": rank, "world_size": world, "device": device,
        "dtype": "bfloat16" if device.type == "cuda" else "float32", "memory_format": "channels_last",
        "fidelity": args.fidelity,
    }
    mixing = T.RandomChoice([T.MixUp(alpha=0.2), T.CutMix()]) if args.mix else None
    return (
        stoker.DataLoader(stoker.datasets.ImageFolder(train, training), shuffle=True, drop_last=True,
                          batch_transforms=mixing, **common),
        stoker.DataLoader(stoker.datasets.ImageFolder(val, evaluation), **common),
    )


def rate(step, steps, args, world):
    """Returns the learning rate: a linear warm-up of five epochs, then cosine decay."""
    peak, rise = args.lr * args.batch_size * world / 256, min(5, args.epochs / 2) * steps
    if step < rise:
        return peak * (step + 1) / rise
    return peak * 0.5 * (1 + math.cos(math.pi * (step - rise) / (args.epochs * steps - rise)))


class Trainer:
    def __init__(self, args):
        self.args = args
        self.rank, self.world, self.device = set_up(args)
        root = Path(args.data) if args.data else self.synthetic()
        self.train, self.val = loaders(args, root, self.rank, self.world, self.device)
        torch.manual_seed(args.seed)
        classes = len(self.train.dataset.classes)
        self.model = torchvision.models.get_model(args.model, num_classes=classes)
        self.model.to(self.device, memory_format=torch.channels_last)
        self.wrapped = self.model
        if self.world > 1:
            ids = [self.device.index] if self.device.type == "cuda" else None
            self.wrapped = torch.nn.parallel.DistributedDataParallel(self.model, device_ids=ids)
        self.optimizer = torch.optim.SGD(self.model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
        self.criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
        self.step = self.epoch = 0
        self.say(f"{args.model}, {len(self.train.dataset)} images of {classes} classes, {self.world} process{'es' * (self.world > 1)}, "
                 f"on {self.device}")
        self.restore()

    def say(self, text):
        if self.rank == 0:
            print(text, flush=True)

    def synthetic(self):
        root = Path(tempfile.gettempdir()) / f"stoker-shapes-{self.args.synthetic}"
        if self.rank == 0:
            make_shapes(root, self.args.synthetic)
        if self.world > 1:
            dist.barrier()
        return root

    # ---- checkpoints ----

    def save(self):
        if self.args.checkpoint is None or self.rank != 0:
            return
        parts = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step,
                 "epoch": self.epoch, "loader": self.train.state_dict()}
        fresh = self.args.checkpoint.with_suffix(".new")
        torch.save(parts, fresh)
        fresh.replace(self.args.checkpoint)

    def restore(self):
        if self.args.checkpoint is None or not self.args.checkpoint.exists():
            return
        parts = torch.load(self.args.checkpoint, map_location=self.device)
        self.model.load_state_dict(parts["model"])
        self.optimizer.load_state_dict(parts["optimizer"])
        self.train.load_state_dict(parts["loader"])
        self.step, self.epoch = parts["step"], parts["epoch"]
        self.say(f"resuming at step {self.step}, in epoch {self.epoch}")

    # ---- epochs ----

    def autocast(self):
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda")

    def run_epoch(self):
        """Returns True if the epoch was completed."""
        self.wrapped.train()
        self.total, self.batches = torch.zeros((), device=self.device), 0  # losses, for their mean
        images_seen, began = 0, time.perf_counter()
        for images, labels in self.train:
            for group in self.optimizer.param_groups:
                group["lr"] = rate(self.step, len(self.train), self.args, self.world)
            with self.autocast():
                loss = self.criterion(self.wrapped(images), labels)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.step += 1
            self.total, self.batches = self.total + loss.detach(), self.batches + 1
            images_seen += len(images) * self.world
            if self.step % 50 == 0 or self.step == self.args.stop_after:
                speed = images_seen / (time.perf_counter() - began)
                self.say(f"step {self.step}: loss {loss.item():.3f}, {speed:,.0f} images/s")
            if self.step == self.args.stop_after:
                return False
        return True

    @torch.inference_mode()
    def evaluate(self):
        self.wrapped.eval()
        right = torch.zeros(2, device=self.device)
        for images, labels in self.val:
            with self.autocast():
                right[0] += (self.model(images).argmax(1) == labels).sum()
            right[1] += len(labels)
        if self.world > 1:
            dist.all_reduce(right)
        return (right[0] / right[1]).item()

    def run(self):
        while self.epoch < self.args.epochs:
            whole = self.run_epoch()
            self.epoch += whole
            self.save()
            if not whole:
                return
            mean = self.total.item() / max(self.batches, 1)
            self.say(f"epoch {self.epoch}: loss {mean:.3f}, accuracy {100 * self.evaluate():.1f} %")
        weights = torch.cat([p.detach().float().flatten().cpu() for p in self.model.parameters()])
        waited = self.train.stats()["waited_seconds"]
        self.say(f"done: {self.step} steps, {waited:.1f} s waiting for batches, weights "
                 f"{zlib.crc32(weights.numpy().tobytes()):08x}")


def main():
    trainer = Trainer(parse())
    with contextlib.ExitStack() as stack:
        if trainer.world > 1:
            stack.callback(dist.destroy_process_group)
        trainer.run()


if __name__ == "__main__":
    main()
