# SPDX-License-Identifier: Apache-2.0
"""Stoker under Hugging Face's Trainer, which makes its own loaders: stoker.install() gives it Stoker's.

    python examples/trainer/train.py             # on drawn shapes
    python examples/trainer/train.py FOLDER      # one sub-folder for each class

Marked lines differ from the script with torch's DataLoader. `python -m stoker SCRIPT` does the same without a changed line.
"""
import sys
import tempfile

import stoker  # added
import torch
from stoker.synth import make_shapes
from torchvision import transforms as T
from torchvision.datasets import ImageFolder
from transformers import PrinterCallback, Trainer, TrainingArguments

stoker.install()  # added


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, classes))

    def forward(self, pixel_values, labels):
        logits = self.net(pixel_values)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def collate(samples):
    images, labels = zip(*samples, strict=True)
    return {"pixel_values": torch.stack(images), "labels": torch.tensor(labels)}


def main(folder):
    data = ImageFolder(folder, T.Compose([T.RandomResizedCrop(64), T.RandomHorizontalFlip(), T.ToTensor()]))
    with tempfile.TemporaryDirectory() as out:
        arguments = TrainingArguments(
            output_dir=out, num_train_epochs=3, per_device_train_batch_size=8, learning_rate=0.1, seed=1,
            use_cpu=not torch.cuda.is_available(), save_strategy="no", logging_strategy="epoch", report_to=[],
            disable_tqdm=True, remove_unused_columns=False)
        trainer = Trainer(Model(len(data.classes)), arguments, data_collator=collate, train_dataset=data)
        trainer.remove_callback(PrinterCallback)
        result = trainer.train()
    for entry in trainer.state.log_history:
        if "loss" in entry:
            print(f"epoch {entry['epoch']:.0f}: loss {float(entry['loss']):.3f}")
    print(f"{result.global_step} steps")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else make_shapes("shapes"))
