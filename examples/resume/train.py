# SPDX-License-Identifier: Apache-2.0
"""A training loop without a model: two epochs, a checkpoint in the middle, and a run resumed from it.

    python examples/resume/train.py             # on drawn shapes
    python examples/resume/train.py FOLDER      # one sub-folder for each class
"""
import sys
import zlib

import numpy
import stoker
from stoker import transforms as T
from stoker.synth import make_shapes


def make_loader(folder):
    transform = T.Compose([
        T.RandomResizedCrop(64), T.RandomHorizontalFlip(), T.ToTensor(),
        T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    data = stoker.datasets.ImageFolder(folder, transform=transform)
    return stoker.DataLoader(data, batch_size=8, shuffle=True, seed=7)


def fingerprint(images, labels):
    """Stands in for a training step: changes if any byte of the batch changes."""
    return zlib.crc32(numpy.asarray(labels).tobytes(), zlib.crc32(numpy.asarray(images).tobytes()))


def main(folder):
    loader = make_loader(folder)
    checkpoint, steps = None, []
    for epoch in range(2):
        loader.set_epoch(epoch)
        for images, labels in loader:
            steps.append(fingerprint(images, labels))
            if len(steps) == len(loader) + 1:  # one batch into the second epoch
                checkpoint = loader.state_dict()
    print(f"{len(steps)} steps, {len(loader.dataset)} images, classes {loader.dataset.classes}")

    resumed = make_loader(folder)
    resumed.load_state_dict(checkpoint)
    again = [fingerprint(images, labels) for images, labels in resumed]
    print("resumed run is the same:", again == steps[len(loader) + 1:])
    return again == steps[len(loader) + 1:]


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1] if len(sys.argv) > 1 else make_shapes("shapes")))
