# SPDX-License-Identifier: Apache-2.0
"""Classification as in torchvision's references: samplers, presets in v2, MixUp or CutMix.

    python examples/classification/train.py
    python examples/classification/train.py imagenet/train --val imagenet/val --model resnet50 --size 224 \\
        --batch-size 256 --lr 0.1

Marked lines differ from the script with torch's DataLoader. MixUp and CutMix move from collate_fn, which is Python, to
batch_transforms, so that the engine makes whole batches.
"""
import argparse

import torch
import torchvision
from stoker import DataLoader  # was: from torch.utils.data import DataLoader
from stoker.synth import make_shapes
from torch.utils.data import RandomSampler, default_collate
from torchvision.transforms import v2


def floats():
    return [v2.PILToTensor(), v2.ToDtype(torch.float, scale=True),
            v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), v2.ToPureTensor()]


def training(size):
    return v2.Compose([v2.RandomResizedCrop(size, antialias=True), v2.RandomHorizontalFlip(0.5), *floats()])


def evaluation(size):
    return v2.Compose([v2.Resize(size * 8 // 7, antialias=True), v2.CenterCrop(size), *floats()])


@torch.inference_mode()
def accuracy(model, loader, device):
    model.eval()
    right = [(model(images.to(device)).argmax(1) == labels.to(device)).sum() for images, labels in loader]
    return sum(right).item() / len(loader.dataset)


def main(args):
    torch.manual_seed(1)
    data = torchvision.datasets.ImageFolder(args.folder, training(args.size))
    val = torchvision.datasets.ImageFolder(args.val or args.folder, evaluation(args.size))
    classes = len(data.classes)
    mix = v2.RandomChoice([v2.MixUp(alpha=0.2, num_classes=classes), v2.CutMix(alpha=1.0, num_classes=classes)])

    def collate(samples):
        return mix(*default_collate(samples))

    options = {"batch_transforms": mix}  # was: options = {"collate_fn": collate}
    loader = DataLoader(data, batch_size=args.batch_size, sampler=RandomSampler(data), num_workers=args.workers, **options)
    checks = DataLoader(val, batch_size=args.batch_size, num_workers=args.workers)
    model = torchvision.models.get_model(args.model, num_classes=classes).to(args.device)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    steps = 0
    for epoch in range(1, args.epochs + 1):
        model.train()
        total = 0.0
        for images, labels in loader:
            loss = criterion(model(images.to(args.device)), labels.to(args.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        print(f"epoch {epoch}: loss {total / len(loader):.3f}, {100 * accuracy(model, checks, args.device):.0f} % right")
    print(f"{steps} steps")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", help="one sub-folder for each class (default: drawn shapes, made in ./shapes)")
    parser.add_argument("--val", help="images for evaluation, in the same way (default: those for training)")
    parser.add_argument("--model", default="resnet18", help="a classification model from torchvision")
    parser.add_argument("--size", type=int, default=48)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    given.folder = given.folder or make_shapes("shapes")
    main(given)
