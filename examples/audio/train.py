# SPDX-License-Identifier: Apache-2.0
"""Audio: sounds of different lengths and sampling rates become mel spectrograms of one size, in the engine.

    python examples/audio/train.py
    python examples/audio/train.py --data speech_commands --seconds 1 --epochs 20      # one sub-folder for each class
"""
import argparse
import wave
from pathlib import Path

import numpy as np
import stoker
import torch
from stoker import audio as A

RATE = 16000


def make_sounds(root, count=60, seed=1):
    """Tones that rise, tones that fall, and noise: WAV files of 1.1 to 2 seconds at 16 or 22.05 kHz."""
    kinds = ("fall", "noise", "rise")
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        kind, rate = kinds[number % 3], int(rng.choice([RATE, 22050]))
        time = np.arange(int(rate * rng.uniform(1.1, 2.0))) / rate
        low, high = rng.uniform(300, 500), rng.uniform(1500, 2500)
        if kind == "fall":
            low, high = high, low
        turns = low * time + (high - low) * time**2 / (2 * time[-1])  # the integral of a frequency that changes evenly
        sound = rng.normal(0, 0.3, time.size) if kind == "noise" else np.sin(2 * np.pi * turns)
        path = Path(root, kind, f"{number:03}.wav")
        path.parent.mkdir(parents=True, exist_ok=True)
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 2, rate, 0, "NONE", ""))
            file.writeframes((sound * 12000).clip(-32768, 32767).astype("<i2").tobytes())
    return root


class Model(torch.nn.Module):
    def __init__(self, mels, classes):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.BatchNorm1d(mels), torch.nn.Conv1d(mels, 32, 5, 2), torch.nn.ReLU(), torch.nn.Conv1d(32, 32, 5, 2),
            torch.nn.ReLU(), torch.nn.AdaptiveAvgPool1d(4), torch.nn.Flatten(), torch.nn.Linear(128, classes))

    def forward(self, spectra):
        return self.net((spectra + 1e-6).log().mean(1))  # [N, channels, mels, frames]; the mean over the channels


def main(args):
    torch.manual_seed(args.seed)
    data = stoker.datasets.AudioFolder(args.data, transform=A.Compose([
        A.Resample(RATE), A.Mono(), A.RandomCrop(seconds=args.seconds), A.MelSpectrogram(RATE, n_mels=args.mels)]))
    loader = stoker.DataLoader(data, batch_size=args.batch_size, shuffle=True, seed=args.seed)
    model = Model(args.mels, len(data.classes)).to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for epoch in range(1, args.epochs + 1):
        total = right = 0
        for spectra, labels in loader:
            spectra, labels = spectra.to(args.device), labels.to(args.device)
            scores = model(spectra)
            loss = torch.nn.functional.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
            right += (scores.argmax(1) == labels).sum().item()
        print(f"epoch {epoch}: {len(data)} sounds, loss {total / len(data):.3f}, {100 * right / len(data):.0f} % right")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a folder with one sub-folder for each class (default: sounds made in ./made-sounds)")
    parser.add_argument("--seconds", type=float, default=1.0, help="the length of a random crop")
    parser.add_argument("--mels", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    given.data = given.data or make_sounds("made-sounds")
    main(given)
