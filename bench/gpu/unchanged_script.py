#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training script that knows nothing of Stoker. bench/unchanged.py starts it as `python` and as `python -m stoker`.

    unchanged_script.py FOLDER --dataset imagefolder --model resnet50 --workers 16 --seconds 6

Prints one line of JSON: images per second, and what they took. --resident: the same batch, on the device, again and again.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import torch
import torchvision
from PIL import Image
from torch.utils.data import DataLoader, Dataset, RandomSampler
from torchvision import transforms as T

TRANSFORM = T.Compose([
    T.RandomResizedCrop(224),
    T.RandomHorizontalFlip(),
    T.ToTensor(),
    T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
])


class Photos(Dataset):
    """What people write."""

    def __init__(self, root):
        self.paths = sorted(Path(root).rglob("*.jpg"))
        self.classes = sorted({path.parent.name for path in self.paths})

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        return TRANSFORM(image), self.classes.index(self.paths[index].parent.name)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--dataset", choices=["imagefolder", "own"], default="imagefolder")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--warm", type=float, default=8)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--resident", action="store_true")
    return parser.parse_args()


def batches(args, device):
    """Yield images and labels on the device, channels_last."""
    data = Photos(args.folder) if args.dataset == "own" else torchvision.datasets.ImageFolder(args.folder, TRANSFORM)
    loader = DataLoader(
        data, batch_size=args.batch, sampler=RandomSampler(data, replacement=True, num_samples=1_000_000),
        num_workers=args.workers, pin_memory=device.type == "cuda", drop_last=True, persistent_workers=args.workers > 0,
    )  # fmt: skip
    batches.loader = loader
    for images, labels in loader:
        images = images.to(device, non_blocking=True).to(memory_format=torch.channels_last)
        yield images, labels.to(device, non_blocking=True)


def resident(args, device):
    images = torch.randn(args.batch, 3, 224, 224, device=device).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (args.batch,), device=device)
    while True:
        yield images, labels


def main():
    args = arguments()
    device = torch.device(args.device)
    torch.backends.cudnn.benchmark = True
    model = getattr(torchvision.models, args.model)(num_classes=1000).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    synchronize = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    began = start = None
    steps = 0
    for images, labels in (resident if args.resident else batches)(args, device):
        with torch.autocast(device.type, torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 8:
            continue
        # The GPU is at most as many steps behind as a script that prints its loss lets it be.
        loss.item()
        now = time.perf_counter()
        began = began or now
        if start is None and now - began >= args.warm:
            synchronize()
            start, first = time.perf_counter(), steps
        elif start is not None and now - start >= args.seconds:
            synchronize()
            break
    took = time.perf_counter() - start
    loader = getattr(batches, "loader", None)
    explained = loader.explain().rows[-1].where if hasattr(loader, "explain") else ""
    print(json.dumps({"rate": (steps - first) * args.batch / took, "seconds": took, "plan": explained}), flush=True)
    sys.stdout.flush()
    os._exit(0)  # torch's workers may take seconds to end


if __name__ == "__main__":
    main()
