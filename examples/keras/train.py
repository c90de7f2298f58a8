# SPDX-License-Identifier: Apache-2.0
"""Stoker under Keras 3 with its torch backend: fit() takes the loader as it takes torch's.

    python examples/keras/train.py             # on drawn shapes
    python examples/keras/train.py FOLDER      # one sub-folder for each class

Marked lines differ from the script with torch's DataLoader.
"""
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import torch
from stoker import DataLoader  # was: from torch.utils.data import DataLoader
from stoker.synth import make_shapes
from torchvision import transforms as T
from torchvision.datasets import ImageFolder


def main(folder):
    torch.manual_seed(1)
    data = ImageFolder(folder, T.Compose([T.RandomResizedCrop(64), T.RandomHorizontalFlip(), T.ToTensor()]))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    model = keras.Sequential([
        keras.Input((3, 64, 64)), keras.layers.AveragePooling2D(8, data_format="channels_first"), keras.layers.Flatten(),
        keras.layers.Dense(len(data.classes))])
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(loader, epochs=3, shuffle=False, verbose=0)  # the loader shuffles
    for epoch, loss in enumerate(history.history["loss"], 1):
        print(f"epoch {epoch}: loss {loss:.3f}")
    print(f"{int(model.optimizer.iterations)} steps")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else make_shapes("shapes"))
