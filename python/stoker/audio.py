# SPDX-License-Identifier: Apache-2.0
"""Transforms of sounds, near torchaudio's names and equal to what it computes.

Sounds are float32, channels x samples; spectrograms are channels x frequencies x frames. What is cut away
is never decoded, wherever the crop stands:

>>> from stoker import audio as A
>>> train = A.Compose([A.Resample(16000), A.Mono(), A.RandomCrop(seconds=1), A.MelSpectrogram(16000, n_mels=64)])
>>> import numpy as np
>>> A.apply(train, np.zeros((2, 44100), np.float32), rate=22050).shape
(1, 64, 81)

stoker.datasets.AudioFolder takes them as its transform. Sounds whose lengths differ come padded with zeros,
and a tensor of their lengths beside them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _ext
from ._arguments import op
from ._convert import to_numpy
from ._steps import Compose, RandomApply, Transform, pipeline_text

__all__ = [
    "Channels",
    "Compose",
    "Decode",
    "Gain",
    "MelSpectrogram",
    "Mono",
    "Normalize",
    "PadTrim",
    "RandomApply",
    "RandomCrop",
    "Resample",
    "Spectrogram",
    "apply",
]

EXTENSIONS = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3")


def is_on_sounds(transform: Any) -> bool:
    """Whether the transform works on sounds: whether its first op does."""
    first = pipeline_text(transform).split("{")[-1 if isinstance(transform, RandomApply) else 0]
    return first.lstrip().startswith("audio_")


class AudioTransform(Transform):
    """What transforms of sounds have in common."""

    _makes_tensor = True

    def __call__(self, sound: Any) -> Any:
        raise TypeError(
            f"{self!r} does not know the sound's sampling rate: use stoker.audio.apply(transform, sound, rate)"
        )


class Decode(AudioTransform):
    """The samples as the file has them."""

    def _spec(self) -> str:
        return "audio_decode"


class Resample(AudioTransform):
    """To `new_freq` samples a second, by a sinc in a Hann window with torchaudio's defaults."""

    def __init__(self, new_freq: int) -> None:
        self.new_freq = new_freq

    def _spec(self) -> str:
        return op("audio_resample", rate=self.new_freq)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(new_freq={self.new_freq})"


class Mono(AudioTransform):
    """The mean of all channels."""

    def _spec(self) -> str:
        return "audio_mono"


class Channels(AudioTransform):
    """So many channels: one is repeated, others are refused unless there are as many."""

    def __init__(self, count: int) -> None:
        self.count = count

    def _spec(self) -> str:
        return op("audio_channels", count=self.count)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.count})"


class _Length(AudioTransform):
    _random = True

    def __init__(self, frames: int | None = None, *, seconds: float | None = None) -> None:
        if (frames is None) == (seconds is None):
            raise ValueError(f"{type(self).__name__} wants frames or seconds, one of them")
        self.frames = frames
        self.seconds = seconds

    def _spec(self) -> str:
        return op("audio_crop", frames=self.frames, seconds=self.seconds, random=self._random)

    def __repr__(self) -> str:
        how = f"seconds={self.seconds}" if self.frames is None else f"{self.frames}"
        return f"{type(self).__name__}({how})"


class RandomCrop(_Length):
    """So many frames from anywhere; zeros behind a sound that is shorter."""


class PadTrim(_Length):
    """The first frames; zeros behind a sound that is shorter."""

    _random = False


class Gain(AudioTransform):
    """Louder by so many decibels; a pair is a range to draw from."""

    def __init__(self, gain_db: float | Sequence[float]) -> None:
        self.gain_db = gain_db

    def _spec(self) -> str:
        return op("audio_gain", db=self.gain_db)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(gain_db={self.gain_db})"


class Normalize(AudioTransform):
    """(x - mean) / std; without them each sound gets mean 0 and variance 1."""

    def __init__(self, mean: float | None = None, std: float | None = None) -> None:
        if (mean is None) != (std is None):
            raise ValueError("Normalize wants mean and std, or neither")
        self.mean = mean
        self.std = std

    def _spec(self) -> str:
        return op("audio_normalize", mean=self.mean, std=self.std)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self.mean}, std={self.std})"


class Spectrogram(AudioTransform):
    """As torchaudio.transforms.Spectrogram: a Hann window, reflected ends, one-sided. `n_fft` may have no
    prime factor above 31."""

    def __init__(
        self,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        power: float = 2.0,
        center: bool = True,
    ) -> None:
        self.n_fft = n_fft
        self.win_length = win_length
        self.hop_length = hop_length
        self.power = power
        self.center = center

    def _frames(self) -> dict[str, Any]:
        return {
            "n_fft": self.n_fft,
            "win_length": self.win_length,
            "hop_length": self.hop_length,
            "power": self.power,
            "center": self.center,
        }

    def _spec(self) -> str:
        return op("audio_spectrogram", **self._frames())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_fft={self.n_fft}, hop_length={self.hop_length}, power={self.power})"


class MelSpectrogram(Spectrogram):
    """As torchaudio.transforms.MelSpectrogram, with its scale "htk" and no norm."""

    def __init__(
        self,
        sample_rate: int = 16000,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        f_min: float = 0.0,
        f_max: float | None = None,
        n_mels: int = 128,
        power: float = 2.0,
        center: bool = True,
    ) -> None:
        super().__init__(n_fft, win_length, hop_length, power, center)
        self.sample_rate = sample_rate
        self.f_min = f_min
        self.f_max = f_max
        self.n_mels = n_mels

    def _spec(self) -> str:
        return op(
            "audio_mel_spectrogram",
            rate=self.sample_rate,
            f_min=self.f_min,
            f_max=self.f_max,
            n_mels=self.n_mels,
            **self._frames(),
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(sample_rate={self.sample_rate}, n_fft={self.n_fft}, "
            f"hop_length={self.hop_length}, n_mels={self.n_mels})"
        )


def _as_wav(sound: Any, rate: int) -> bytes:
    """Samples in the plainest of formats."""
    array = np.asarray(sound, np.float32)
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2 or not len(array):
        raise TypeError(f"wants channels x samples, not an array of shape {array.shape}")
    data = np.ascontiguousarray(array.T).astype("<f4").tobytes()
    channels, floats, size = len(array), 3, 4
    layout = struct.pack(
        "<HHIIHH", floats, channels, rate, rate * channels * size, channels * size, 8 * size
    )
    body = (
        b"WAVEfmt "
        + struct.pack("<I", len(layout))
        + layout
        + b"data"
        + struct.pack("<I", len(data))
        + data
    )
    return b"RIFF" + struct.pack("<I", len(body)) + body


def apply(transform: Any, sound: Any, rate: int, seed: int = 0) -> np.ndarray:
    """What the loader would make of one sound: samples (channels x samples) of so many a second. Chance is a
    function of the seed alone."""
    loader = _ext.Loader(
        _ext.Dataset.from_memory([_as_wav(sound, rate)]),
        _ext.Pipeline(pipeline_text(transform)),
        workers=0,
        seed=seed,
    )
    loader.start(0)
    batch = loader.next()
    assert batch is not None
    sounds: Any = batch.images
    return np.asarray(to_numpy(sounds)[0])
