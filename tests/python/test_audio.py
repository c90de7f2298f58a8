# SPDX-License-Identifier: Apache-2.0
"""Sounds: decoding against soundfile, transforms against torchaudio, and what a loader makes of them."""

from __future__ import annotations

import io
import pickle
import tarfile

import numpy as np
import pytest
import stoker
from stoker import audio as A
from stoker.datasets import AudioFolder

if not any(kind == "audio" and present for kind, _, _, present in stoker._ext.features()):
    pytest.skip("this build has no libsndfile", allow_module_level=True)
soundfile = pytest.importorskip("soundfile")
torch = pytest.importorskip("torch")

KINDS = [("WAV", "PCM_16"), ("WAV", "FLOAT"), ("WAV", "PCM_24"), ("FLAC", "PCM_16"), ("OGG", "VORBIS")]
KINDS += [("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III")]


def noise(frames: int, channels: int = 1, seed: int = 0) -> np.ndarray:
    """Something with all frequencies, louder at low ones."""
    rng = np.random.default_rng(seed)
    white = rng.standard_normal((channels, frames))
    return (np.cumsum(white, 1) * 0.01 % 1 * 0.5 + white * 0.05).astype(np.float32)


def encoded(sound: np.ndarray, rate: int, kind: str = "WAV", subtype: str = "FLOAT") -> bytes:
    if kind not in soundfile.available_formats():
        pytest.skip(f"soundfile cannot write {kind}")
    out = io.BytesIO()
    soundfile.write(out, sound.T, rate, format=kind, subtype=subtype)
    return out.getvalue()


def run(data: bytes | list[bytes], transform, seed: int = 0, **options) -> stoker._ext.Batch:
    items = [data] if isinstance(data, bytes) else data
    pipeline = stoker._ext.Pipeline(A.pipeline_text(transform))
    loader = stoker._ext.Loader(
        stoker._ext.Dataset.from_memory(items),
        pipeline,
        workers=0,
        seed=seed,
        batch_size=len(items),
        **options,
    )
    loader.start(0)
    return loader.next()


def array(tensor) -> np.ndarray:
    return torch.from_dlpack(tensor).numpy().copy()


@pytest.fixture(scope="module")
def torchaudio():
    """torchaudio refuses a torch built for another CUDA; of the functions used here none touches it."""
    built_for, torch.version.cuda = torch.version.cuda, None
    try:
        return pytest.importorskip("torchaudio")
    finally:
        torch.version.cuda = built_for


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Sounds of two classes, of several rates, lengths and channels."""
    root = tmp_path_factory.mktemp("sounds")
    for k in range(11):
        kind, subtype = [("WAV", "PCM_16"), ("FLAC", "PCM_16"), ("OGG", "VORBIS")][k % 3]
        path = root / ("left" if k < 6 else "right") / f"{k:02}.{kind.lower()}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(
            encoded(noise(9000 + 1000 * k, 1 + k % 2, k), (16000, 22050)[k % 2], kind, subtype)
        )
    (root / "left" / "notes.txt").write_text("no sound")
    return root


@pytest.mark.parametrize(("kind", "subtype"), KINDS)
@pytest.mark.parametrize("channels", [1, 2])
def test_decodes_what_soundfile_decodes(kind, subtype, channels):
    rate = 48000 if subtype == "OPUS" else 44100
    data = encoded(noise(30000, channels), rate, kind, subtype)
    want, _ = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    got = array(run(data, A.Decode()).images)[0]
    assert got.shape == want.T.shape
    # Another build of a lossy codec rounds otherwise.
    tolerance = 0 if subtype.startswith("PCM") or subtype == "FLOAT" else 1e-4
    np.testing.assert_allclose(got, want.T, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("kind", "subtype"), KINDS)
def test_a_crop_is_a_part_of_the_whole(kind, subtype):
    data = encoded(noise(50000, 2), 48000, kind, subtype)
    whole = array(run(data, A.Decode()).images)[0]
    starts = set()
    for seed in range(8):
        part = array(run(data, A.RandomCrop(4000), seed).images)[0]
        assert part.shape == (2, 4000)
        fits = np.flatnonzero(np.abs(whole[0, :-3999] - part[0, 0]) < 1e-6)
        starts |= {int(k) for k in fits if np.allclose(whole[:, k : k + 4000], part, rtol=0, atol=1e-6)}
    assert len(starts) == 8


@pytest.mark.parametrize(
    "rates", [(44100, 16000), (16000, 44100), (22050, 16000), (8000, 16000), (48000, 16000)]
)
def test_resample_is_torchaudios(torchaudio, rates):
    for frames in (1, 7, 440, 30011):
        sound = noise(frames, 2)
        want = torchaudio.transforms.Resample(*rates)(torch.from_numpy(sound)).numpy()
        got = A.apply(A.Resample(rates[1]), sound, rates[0])
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-4)


def test_what_is_cut_away_is_not_needed():
    """Resampling a part gives the same as a part of all that was resampled, bit for bit."""
    sound = noise(50000, 2)
    whole = A.apply(A.Resample(16000), sound, 44100)
    for seed in range(5):
        part = A.apply(A.Compose([A.Resample(16000), A.RandomCrop(3000)]), sound, 44100, seed)
        fits = np.flatnonzero(whole[0, :-2999] == part[0, 0])
        assert any((whole[:, k : k + 3000] == part).all() for k in fits)


def test_crop_then_resample(torchaudio):
    """What lies beside the crop is silence, though the file goes on there."""
    sound = noise(20000, 2)
    for seed in range(3):
        part = A.apply(A.RandomCrop(5000), sound, 44100, seed)
        want = torchaudio.transforms.Resample(44100, 16000)(torch.from_numpy(part)).numpy()
        got = A.apply(A.Compose([A.RandomCrop(5000), A.Resample(16000)]), sound, 44100, seed)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-4)
        mono = A.apply(A.Compose([A.RandomCrop(5000), A.Resample(16000), A.Mono()]), sound, 44100, seed)
        np.testing.assert_allclose(mono, want.mean(0, keepdims=True), rtol=0, atol=1e-4)
        last = A.Compose([A.RandomCrop(5000), A.Resample(16000), A.PadTrim(700), A.Resample(8000)])
        want = torchaudio.transforms.Resample(16000, 8000)(torch.from_numpy(got[:, :700])).numpy()
        np.testing.assert_allclose(A.apply(last, sound, 44100, seed), want, rtol=0, atol=1e-4)


@pytest.mark.parametrize("n_fft", [400, 512, 480, 1024, 93])
@pytest.mark.parametrize(
    "how",
    [{}, {"hop_length": 100}, {"win_length": 64, "hop_length": 31}, {"power": 1.0}, {"center": False}],
)
def test_spectrogram_is_torchaudios(torchaudio, n_fft, how):
    sound = noise(8000, 2)
    want = torchaudio.transforms.Spectrogram(n_fft, **how)(torch.from_numpy(sound)).numpy()
    got = A.apply(A.Spectrogram(n_fft, **how), sound, 16000)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6 * want.max())


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"n_fft": 1024, "n_mels": 64, "hop_length": 160},
        {"n_mels": 40, "f_min": 50.0, "f_max": 7000.0},
        {"n_mels": 80, "power": 1.0, "win_length": 320, "n_fft": 512},
    ],
)
@pytest.mark.filterwarnings("ignore:At least one mel filterbank")
def test_mel_spectrogram_is_torchaudios(torchaudio, how):
    sound = noise(16000, 2)
    want = torchaudio.transforms.MelSpectrogram(16000, **how)(torch.from_numpy(sound)).numpy()
    got = A.apply(A.MelSpectrogram(16000, **how), sound, 16000)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6 * want.max())


def test_mono_gain_normalize():
    sound = noise(1000, 3)
    np.testing.assert_allclose(A.apply(A.Mono(), sound, 8000), sound.mean(0, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(A.apply(A.Gain(-6), sound, 8000), sound * 10 ** (-6 / 20), atol=1e-6)
    np.testing.assert_allclose(A.apply(A.Normalize(0.1, 2), sound, 8000), (sound - 0.1) / 2, atol=1e-6)
    own = A.apply(A.Normalize(), sound, 8000)
    assert abs(own.mean()) < 1e-4 and abs(own.std() - 1) < 1e-3
    loud = [
        np.abs(A.apply(A.Gain((-6, 6)), sound, 8000, seed)).max() / np.abs(sound).max()
        for seed in range(20)
    ]
    assert min(loud) > 0.5 and max(loud) < 2 and len({float(k) for k in loud}) == 20


def test_short_sounds_are_padded():
    sound = noise(100, 2)
    for transform in (A.PadTrim(250), A.RandomCrop(250), A.Compose([A.Gain(0), A.PadTrim(250)])):
        got = A.apply(transform, sound, 8000)
        assert got.shape == (2, 250)
        assert (got[:, :100] == sound).all() and not got[:, 100:].any()


def test_folder(folder):
    data = AudioFolder(folder, A.Compose([A.Resample(16000), A.Mono(), A.RandomCrop(seconds=0.25)]))
    assert data.classes == ["left", "right"] and len(data) == 11
    sound, label = data[7]
    assert tuple(sound.shape) == (1, 4000) and label == 1
    clone = pickle.loads(pickle.dumps(data))
    assert len(clone) == 11 and clone[0][0].shape == (1, 4000)
    batches = list(torch.utils.data.DataLoader(data, batch_size=4))
    assert [tuple(sounds.shape) for sounds, _ in batches] == [(4, 1, 4000), (4, 1, 4000), (3, 1, 4000)]


def test_loader_of_fixed_lengths(folder):
    data = AudioFolder(
        folder,
        A.Compose(
            [A.Resample(16000), A.Mono(), A.RandomCrop(seconds=0.25), A.MelSpectrogram(n_mels=32)]
        ),
    )
    epochs = []
    for workers in (0, 2):
        loader = stoker.DataLoader(data, batch_size=4, shuffle=True, seed=3, num_workers=workers)
        epochs.append([(sounds.clone(), labels.tolist()) for sounds, labels in loader])
    assert [tuple(sounds.shape) for sounds, _ in epochs[0]] == [
        (4, 1, 32, 21),
        (4, 1, 32, 21),
        (3, 1, 32, 21),
    ]
    for (one, some), (two, others) in zip(*epochs, strict=True):
        assert torch.equal(one, two) and some == others
    assert len({tuple(sounds.flatten()[:5].tolist()) for sounds, _ in epochs[0]}) == 3


def test_loader_of_lengths_that_differ(folder):
    data = AudioFolder(folder, A.Mono())
    seen = []
    for sounds, lengths, labels in stoker.DataLoader(data, batch_size=4, num_workers=2):
        assert sounds.shape == (len(labels), 1, int(lengths.max())) and lengths.dtype == torch.int64
        for sound, length in zip(sounds, lengths, strict=True):
            assert not sound[:, length:].any()
            seen.append(sound[:, :length].clone())
    for k, (path, _) in enumerate(data.samples):
        want = soundfile.read(path, dtype="float32", always_2d=True)[0].mean(1)
        np.testing.assert_allclose(seen[k][0].numpy(), want, rtol=0, atol=1e-4)
    spectra, lengths, _ = next(
        iter(stoker.DataLoader(AudioFolder(folder, A.Compose([A.Mono(), A.Spectrogram()])), 3))
    )
    assert (
        spectra.shape[:3] == (3, 1, 201)
        and spectra.shape[3] == lengths.max()
        and len(set(lengths.tolist())) == 3
    )


def test_channels_that_differ(folder):
    with pytest.raises(ValueError, match="2 channels, but the first one of the dataset has 1: add Mono"):
        next(iter(stoker.DataLoader(AudioFolder(folder), batch_size=4)))
    skipping = stoker.DataLoader(AudioFolder(folder), batch_size=4, on_error="skip")
    assert all(sounds.shape[1] == 1 for sounds, _, _ in skipping)
    assert {bad["sample"] for bad in skipping.bad_samples()} == {
        k for k, (path, _) in enumerate(skipping.dataset.samples) if soundfile.info(path).channels != 1
    }
    mono = next(iter(stoker.DataLoader(AudioFolder(folder, A.Mono()), batch_size=4)))[0]
    assert mono.shape[:2] == (4, 1)
    both, _, _ = next(iter(stoker.DataLoader(AudioFolder(folder, A.Channels(2)), batch_size=4)))
    assert both.shape[:2] == (4, 2)
    assert torch.equal(both[0, 0], both[0, 1]) and not torch.equal(both[1, 0], both[1, 1])
    assert torch.allclose(both.mean(1, keepdim=True), mono, atol=1e-6)
    fixed = AudioFolder(folder, A.Compose([A.Channels(2), A.PadTrim(500)]))
    cut, _ = next(iter(stoker.DataLoader(fixed, batch_size=4)))
    assert torch.equal(cut, both[:, :, :500])
    assert repr(A.Channels(2)) == "Channels(2)"


@pytest.mark.parametrize("before", [[], [A.Gain(0)], [A.Resample(4000)], [A.Mono()]])
def test_one_channel_is_repeated(before):
    sound = noise(900)
    one = A.apply(A.Compose([*before, A.PadTrim(200)]), sound, 8000)
    three = A.apply(A.Compose([*before, A.Channels(3), A.PadTrim(200)]), sound, 8000)
    assert three.shape == (3, 200) and all(np.array_equal(channel, one[0]) for channel in three)
    with pytest.raises(NotImplementedError, match="2 channels cannot be converted to 3"):
        A.apply(A.Channels(3), noise(100, 2), 8000)


def test_resume(folder):
    data = AudioFolder(folder, A.Compose([A.Mono(), A.RandomCrop(2000)]))
    loader = stoker.DataLoader(data, batch_size=3, shuffle=True, seed=5)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    rest = [sounds.clone() for sounds, _ in batches]
    other = stoker.DataLoader(data, batch_size=3, shuffle=True, seed=5)
    other.load_state_dict(state)
    again = [sounds.clone() for sounds, _ in other]
    assert len(rest) == 3 and all(torch.equal(a, b) for a, b in zip(rest, again, strict=True))


@pytest.mark.parametrize(("kind", "subtype"), [("WAV", "PCM_16"), ("FLAC", "PCM_16"), ("OGG", "VORBIS")])
def test_damaged_sounds(kind, subtype):
    data = encoded(noise(20000, 2), 44100, kind, subtype)
    rng = np.random.default_rng(1)
    for cut in (0, 3, 11, 27, 43, 200, len(data) // 2):
        try:
            run(data[:cut], A.Decode())
        except (stoker.StokerError, ValueError) as why:
            assert len(str(why)) > 20
    for _ in range(60):
        bytes_ = bytearray(data)
        for at in rng.integers(0, min(len(data), 200), 3):
            bytes_[at] = rng.integers(256)
        try:
            run(bytes(bytes_), A.Compose([A.Mono(), A.RandomCrop(1000)]), pixel_limit=1 << 22)
        except (stoker.StokerError, ValueError) as why:
            assert len(str(why)) > 20


def test_bad_sounds_follow_the_policy():
    good, bad = encoded(noise(3000), 8000), b"RIFF but no sound at all" * 9
    batch = run([good, bad, good], A.Mono(), on_error="replace")
    assert array(batch.labels).tolist() == [0, -100, 0]
    assert array(batch.lengths).tolist() == [3000, 0, 3000] and not array(batch.images)[1].any()
    batch = run([good, bad, good], A.Compose([A.Mono(), A.PadTrim(50)]), on_error="replace")
    assert array(batch.images).shape == (3, 1, 50) and not array(batch.images)[1].any()
    with pytest.raises(stoker.CorruptSample):
        run(bad, A.Mono())


@pytest.mark.parametrize(
    ("transform", "sentence"),
    [
        (A.Compose([A.Spectrogram(), A.Resample(8000)]), "works on samples"),
        (A.Compose([A.Resample(8000), A.MelSpectrogram(16000)]), "resampled to 8000"),
        (A.Spectrogram(2 * 37), "prime factors above 31"),
        (A.Spectrogram(100, win_length=101), "win_length=101 is greater than n_fft"),
        (A.Compose([A.Mono(), stoker.transforms.Resize(8)]), "works on images"),
        (A.Compose([stoker.transforms.Resize(8), A.Mono()]), "works on sounds"),
        (A.Compose([A.PadTrim(100), A.Spectrogram(400)]), "too short for n_fft"),
    ],
)
def test_what_cannot_be_is_refused(transform, sentence):
    with pytest.raises((ValueError, NotImplementedError), match=sentence):
        stoker._ext.Pipeline(A.pipeline_text(transform))


def test_refusals_of_single_sounds(tmp_path):
    with pytest.raises((ValueError, stoker.StokerError), match="too short"):
        A.apply(A.Spectrogram(400), noise(100), 8000)
    with pytest.raises((ValueError, stoker.StokerError), match="audio_resample"):
        A.apply(A.MelSpectrogram(16000), noise(1000), 8000)
    with pytest.raises(stoker.LimitReached, match="limit"):
        run(encoded(noise(3000), 8000), A.Decode(), pixel_limit=2999)
    with pytest.raises(TypeError, match="which AudioFolder requires"):
        AudioFolder(tmp_path, stoker.transforms.ToTensor())
    with pytest.raises((ValueError, stoker.StokerError), match="float32"):
        run(encoded(noise(3000), 8000), A.Decode(), dtype="uint8")


def test_random_apply():
    sound = noise(500)
    transform = A.Compose([A.Mono(), A.RandomApply([A.Gain(20)], p=0.5)])
    loud = [bool(np.abs(A.apply(transform, sound, 8000, seed)).max() > 2) for seed in range(30)]
    assert 5 < sum(loud) < 25


def test_sounds_in_archives(tmp_path):
    """A field that is a sound goes through the pipeline, wherever it stands; others stay beside it."""
    path = tmp_path / "sounds.tar"
    with tarfile.open(path, "w") as tar:
        for k in range(5):
            flac = encoded(noise(2000 + 100 * k, 2, k), 16000, "FLAC", "PCM_16")
            for suffix, data in (("cls", str(k).encode()), ("flac", flac), ("txt", b"word")):
                member = tarfile.TarInfo(f"{k:03}.{suffix}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    data = stoker.datasets.WebDataset(path, fields=("txt", "flac", "cls"), transform=A.Mono())
    word, sound, label = data[3]
    assert word == "word" and sound.shape == (1, 2300) and label == 3
    words, sounds, lengths, labels = next(iter(stoker.DataLoader(data, batch_size=5, num_workers=0)))
    assert words == ["word"] * 5 and labels.tolist() == [0, 1, 2, 3, 4]
    assert sounds.shape == (5, 1, 2400) and lengths.tolist() == [2000, 2100, 2200, 2300, 2400]
    for k in range(5):
        want = noise(2000 + 100 * k, 2, k).mean(0)
        np.testing.assert_allclose(sounds[k, 0, : lengths[k]], want, atol=1e-4)
