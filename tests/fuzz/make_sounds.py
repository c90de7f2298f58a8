# SPDX-License-Identifier: Apache-2.0
"""Writes the sounds of corpus/audio, from which fuzzing starts; needs soundfile and NumPy."""

from pathlib import Path

import numpy as np
import soundfile

KINDS = [("wav", "PCM_16"), ("wav", "FLOAT"), ("wav", "IMA_ADPCM"), ("flac", "PCM_16"), ("ogg", "VORBIS")]
KINDS += [("ogg", "OPUS"), ("mp3", "MPEG_LAYER_III")]

root = Path(__file__).parent / "corpus" / "audio"
root.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(0)
for kind, subtype in KINDS:
    path = root / f"{subtype.lower()}.{kind}"
    sound = np.sin(np.arange(1500)[:, None] * [0.05, 0.07]) * 0.3 + rng.standard_normal((1500, 2)) * 0.01
    soundfile.write(path, sound, 48000, subtype)
    data = path.read_bytes()
    damaged = bytearray(data)
    for at in rng.integers(0, min(len(data), 100), 2):
        damaged[at] ^= 1 << int(rng.integers(8))
    if kind != "mp3":  # libmpg123 prints a line for each damage
        (root / f"{subtype.lower()}_damaged.{kind}").write_bytes(damaged)
        (root / f"{subtype.lower()}_cut.{kind}").write_bytes(data[: len(data) // 2])
