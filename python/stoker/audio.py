# SPDX-License-Identifier: Apache-2.0
"""Transforms of sounds, with names close to torchaudio's and the same results.

Sounds are float32, channels x samples; spectrograms are channels x frequencies x frames. What is cropped away is
not decoded, wherever the crop is in the list:

>>> from stoker import audio as A
>>> train = A.Compose([A.Resample(16000), A.Mono(), A.RandomCrop(seconds=1), A.MelSpectrogram(16000, n_mels=64)])
>>> import numpy as np
>>> A.apply(train, np.zeros((2, 44100), np.float32), rate=22050).shape
(1, 64, 81)

Pass them as the transform of stoker.datasets.AudioFolder, or of a dataset with a field of type audio. Sounds of
different lengths are padded with zeros, and batches then have a tensor of their lengths as well.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _ext
from ._base.tensors import to_numpy
from ._steps.arguments import op
from ._steps.base import Compose, Transform, pipeline_text
from ._steps.chosen import RandomApply

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


def __dir__() -> list[str]:
    return __all__

EXTENSIONS = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3")


def is_on_sounds(transform: Any) -> bool:
    """Return whether the first op of the transform works on sounds."""
    try:
        first = pipeline_text(transform).split("{")[-1 if isinstance(transform, RandomApply) else 0]
    except NotImplementedError:
        return False  # a function of the caller
    return first.lstrip().startswith("audio_")


class AudioTransform(Transform):
    """Base class of the transforms of sounds. Use `apply` to run one on a single sound."""

    _makes_tensor = True

    def __call__(self, sound: Any) -> Any:
        raise TypeError(
            f"{self!r} cannot be called, since it needs the sampling rate: use stoker.audio.apply(transform, sound, rate)"
        )


class Decode(AudioTransform):
    """Leave the samples as they are in the file.

    >>> A.apply(A.Decode(), np.zeros((2, 100), np.float32), rate=8000).shape
    (2, 100)
    """

    def _spec(self) -> str:
        return "audio_decode"


class Resample(AudioTransform):
    """Resample to `new_freq` samples per second, with a Hann-windowed sinc and torchaudio's defaults.

    Args:
        new_freq: The new sampling rate.

    >>> A.apply(A.Resample(8000), np.zeros((1, 1600), np.float32), rate=16000).shape
    (1, 800)
    """

    def __init__(self, new_freq: int) -> None:
        self.new_freq = new_freq

    def _spec(self) -> str:
        return op("audio_resample", rate=self.new_freq)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(new_freq={self.new_freq})"


class Mono(AudioTransform):
    """Reduce to one channel, the mean of all.

    >>> A.apply(A.Mono(), np.array([[0.0, 1.0], [1.0, 1.0]], np.float32), rate=8000).tolist()
    [[0.5, 1.0]]
    """

    def _spec(self) -> str:
        return "audio_mono"


class Channels(AudioTransform):
    """Require a number of channels. A single channel is repeated; any other number must match.

    Args:
        count: The number of channels.

    >>> A.apply(A.Channels(2), np.zeros((1, 100), np.float32), rate=8000).shape
    (2, 100)
    """

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
            raise ValueError(
                f"{type(self).__name__}(frames={frames}, seconds={seconds}): give one of frames and seconds, not both"
            )
        self.frames = frames
        self.seconds = seconds

    def _spec(self) -> str:
        return op("audio_crop", frames=self.frames, seconds=self.seconds, random=self._random)

    def __repr__(self) -> str:
        how = f"seconds={self.seconds}" if self.frames is None else f"{self.frames}"
        return f"{type(self).__name__}({how})"


class RandomCrop(_Length):
    """Crop at a random position. Sounds that are shorter are padded with zeros at the end.

    Args:
        frames: The length in samples.
        seconds: The length in seconds, instead of `frames`.

    Raises:
        ValueError: Both or neither are given.

    >>> A.apply(A.RandomCrop(seconds=0.01), np.zeros((1, 8000), np.float32), rate=8000, seed=1).shape
    (1, 80)
    """


class PadTrim(_Length):
    """Keep the beginning of the sound. Sounds that are shorter are padded with zeros at the end.

    Args:
        frames: The length in samples.
        seconds: The length in seconds, instead of `frames`.

    Raises:
        ValueError: Both or neither are given.

    >>> A.apply(A.PadTrim(4), np.ones((1, 2), np.float32), rate=8000).tolist()
    [[1.0, 1.0, 0.0, 0.0]]
    """

    _random = False


class Gain(AudioTransform):
    """Amplify the sound.

    Args:
        gain_db: The gain in decibels, or a range to draw it from.

    >>> A.Gain((-6, 6))
    Gain(gain_db=(-6, 6))
    """

    def __init__(self, gain_db: float | Sequence[float]) -> None:
        self.gain_db = gain_db

    def _spec(self) -> str:
        return op("audio_gain", db=self.gain_db)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(gain_db={self.gain_db})"


class Normalize(AudioTransform):
    """Compute (x - mean) / std. Without arguments, each sound gets mean 0 and variance 1.

    Args:
        mean: A number.
        std: A number.

    Raises:
        ValueError: Only one of them is given.

    >>> A.apply(A.Normalize(mean=1, std=2), np.array([[1.0, 3.0]], np.float32), rate=8000).tolist()
    [[0.0, 1.0]]
    """

    def __init__(self, mean: float | None = None, std: float | None = None) -> None:
        if (mean is None) != (std is None):
            raise ValueError(f"Normalize(mean={mean}, std={std}): give both mean and std, or neither")
        self.mean = mean
        self.std = std

    def _spec(self) -> str:
        return op("audio_normalize", mean=self.mean, std=self.std)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self.mean}, std={self.std})"


class Spectrogram(AudioTransform):
    """Compute a spectrogram, as torchaudio.transforms.Spectrogram does: Hann window, reflected ends, one-sided.

    Args:
        n_fft: The size of the Fourier transform, without prime factors above 31.
        win_length: The size of the window; by default n_fft.
        hop_length: The distance between windows; by default half of win_length.
        power: The exponent of the magnitude: 1 for magnitude, 2 for power.
        center: Whether windows are centred, with reflected ends.

    >>> A.apply(A.Spectrogram(n_fft=64), np.zeros((1, 320), np.float32), rate=8000).shape
    (1, 33, 11)
    """

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
    """Compute a mel spectrogram, as torchaudio.transforms.MelSpectrogram does with mel_scale="htk" and norm=None.

    Args:
        sample_rate: The sampling rate of the sound; resample before if it differs.
        n_fft: As in Spectrogram.
        win_length: As in Spectrogram.
        hop_length: As in Spectrogram.
        f_min: The lowest frequency.
        f_max: The highest frequency; by default half of sample_rate.
        n_mels: The number of mel bands.
        power: As in Spectrogram.
        center: As in Spectrogram.

    >>> A.apply(A.MelSpectrogram(8000, n_fft=64, n_mels=8), np.zeros((1, 320), np.float32), rate=8000).shape
    (1, 8, 11)
    """

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
    """Return a sound as a WAV file."""
    array = np.asarray(sound, np.float32)
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2 or not len(array):
        raise TypeError(f"the sound is an array of shape {array.shape}; channels x samples is required")
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
    """Run a transform on one sound, with the result that a DataLoader would give.

    Args:
        transform: A transform of this module.
        sound: An array of shape channels x samples, or of samples alone.
        rate: Samples per second.
        seed: Determines every random draw.

    Returns:
        A float32 array: channels x samples, or channels x frequencies x frames.

    Raises:
        TypeError: `sound` has another shape.
        ValueError: The sound is too short for the transform, or has another sampling rate than it requires.

    >>> A.apply(A.Compose([A.Mono(), A.PadTrim(3)]), np.ones((2, 2), np.float32), rate=8000).tolist()
    [[1.0, 1.0, 0.0]]
    """
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
