# SPDX-License-Identifier: Apache-2.0
"""Stoker under timm, whose create_loader makes its own loaders: stoker.install() gives it Stoker's.

    python examples/timm/train.py                            # on drawn shapes
    python examples/timm/train.py FOLDER [--workers N]       # one sub-folder for each class

Marked lines differ from the script with torch's DataLoader. timm's train.py itself runs unchanged by `python -m stoker`.
"""
import argparse

import stoker  # added
import timm
import torch
from stoker.synth import make_shapes
from timm.data import create_dataset, create_loader, resolve_model_data_config

stoker.install()  # added


def main(folder, workers):
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = create_dataset("", root=folder, is_training=True)
    model = timm.create_model("resnet10t", num_classes=len(data.reader.class_to_idx)).to(device)
    config = resolve_model_data_config(model)
    loader = create_loader(data, input_size=(3, 64, 64), batch_size=8, is_training=True, mean=config["mean"],
                           std=config["std"], num_workers=workers, device=device)
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    steps = 0
    for epoch in range(1, 4):
        total = 0.0
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        print(f"epoch {epoch}: loss {total / len(loader):.3f}")
    print(f"{steps} steps")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    main(args.folder or make_shapes("shapes"), args.workers)
