# SPDX-License-Identifier: Apache-2.0
"""Stoker under Lightning: its loader is given like any other, and is part of Lightning's checkpoints.

    python examples/lightning/train.py             # on drawn shapes
    python examples/lightning/train.py FOLDER      # one sub-folder for each class

Marked lines differ from the script with torch's DataLoader.
"""
import sys
import warnings

import lightning
import torch
from stoker import DataLoader  # was: from torch.utils.data import DataLoader
from stoker.synth import make_shapes
from torchvision import transforms as T
from torchvision.datasets import ImageFolder


class Model(lightning.LightningModule):
    def __init__(self, classes):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, classes))

    def training_step(self, batch, _):
        images, labels = batch
        loss = torch.nn.functional.cross_entropy(self.net(images), labels)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch + 1}: loss {self.trainer.callback_metrics['loss']:.3f}")

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def main(folder):
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else None  # added
    data = ImageFolder(folder, T.Compose([T.RandomResizedCrop(64), T.RandomHorizontalFlip(), T.ToTensor()]))
    loader = DataLoader(data, batch_size=8, shuffle=True, device=device)  # was: loader = DataLoader(data, batch_size=8, shuffle=True)
    trainer = lightning.Trainer(max_epochs=3, accelerator="gpu" if cuda else "cpu", devices=1, logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Model(len(data.classes)), loader)
    print(f"{trainer.global_step} steps")


if __name__ == "__main__":
    warnings.filterwarnings("ignore", module="lightning")  # it advises more worker processes
    main(sys.argv[1] if len(sys.argv) > 1 else make_shapes("shapes"))
