"""Recordings with their texts: spoken digits, changes of how they sound, and batches."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from keras import ops

from keras_transformer.config import require, require_whole
from keras_transformer.data.audio import log_mel, mel_middles, read_wav
from keras_transformer.data.images import read_archive

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class Recording:
    """A recording: samples (N,) in [-1, 1), the text, the speaker, and the number of the take."""

    samples: np.ndarray
    text: str
    speaker: str
    take: int


def read_spoken_digits(path: str | Path, sample_rate: int = 8000) -> list[Recording]:
    """The recordings of the Free Spoken Digit Dataset (Jackson 2016).

    Args:
        path: of a tar file of `.../DIGIT_SPEAKER_TAKE.wav`.
        sample_rate: in Hz, what to resample to.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no tar file, or a file has another name or is no such WAV.
    """
    recordings = []
    for name, content in read_archive(path):
        if not name.endswith(".wav"):
            continue
        facts = re.search(r"(\d)_([^_/]+)_(\d+)\.wav$", name)
        require(bool(facts), f"names in {path}", name, "such as 7_theo_12.wav")
        digit, speaker, take = facts.groups()
        try:
            samples, _ = read_wav(io.BytesIO(content), sample_rate)
        except ValueError as error:
            raise ValueError(f"{path}, {name}: {error}") from error
        recordings.append(Recording(samples, DIGITS[int(digit)], speaker, int(take)))
    return recordings


@dataclass(frozen=True)
class Augmentation:
    """Changes a clip's features as another voice, room or microphone might; each is drawn anew.

    Args:
        tempo: it gets up to exp(tempo) times as long or as short.
        pitch: frequencies get up to exp(pitch) times as high or as low, as those of shorter or
            longer vocal tracts are (Jaitly & Hinton 2013, section 3).
        gain: decibels that it gets louder or softer; high and low bands by half of it apart.
        noise: share of the clips that get noise, 30 to 80 decibels below their loudest band.
        hidden: most mels, and most frames, that are hidden (SpecAugment; Park et al. 2019).

    Call arguments:
        clip: (F, mels), of `log_mel`.
        hertz: the middle of each mel (mels,).
        rng: draws.

    Returns:
        (F', mels) float32.

    Raises:
        ValueError: if a number is below 0, or `noise` above 1.
    """

    tempo: float = 0.3
    pitch: float = 0.2
    gain: float = 20.0
    noise: float = 0.5
    hidden: int = 8

    def __post_init__(self):
        for name, value in vars(self).items():
            require(value >= 0, name, value, "at least 0")
        require(self.noise <= 1, "noise", self.noise, "at most 1")

    def __call__(self, clip: np.ndarray, hertz: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        length, mels = clip.shape
        longer = math.exp(rng.uniform(-self.tempo, self.tempo))
        clip = _at(clip, np.linspace(0, length - 1, max(1, round(length * longer))))
        higher = math.exp(rng.uniform(-self.pitch, self.pitch))
        clip = _at(clip.T, np.interp(hertz / higher, hertz, np.arange(mels))).T
        # Ten decibels are a power of ten, and a quarter in `log_mel`.
        level, tilt = rng.uniform(-self.gain, self.gain, 2) / 40
        clip = clip + level + tilt / 2 * np.linspace(-1, 1, mels)
        if rng.random() < self.noise:
            noise = clip.max() - rng.uniform(0.75, 2) + rng.normal(0, 0.03, clip.shape)
            clip = np.logaddexp(clip * _E, noise * _E) / _E
        for features in (clip, clip.T):
            first, count = rng.integers(len(features)), rng.integers(self.hidden + 1)
            features[first : first + count] = 0
        return clip.astype("float32")


_E = 4 * math.log(10)  # what turns features into natural logarithms


def _at(rows, places):
    """Rows at places between them, of their neighbours' mixture."""
    before = np.minimum(places.astype(int), max(0, len(rows) - 2))
    after = np.minimum(before + 1, len(rows) - 1)
    share = (places - before)[:, None]
    return rows[before] * (1 - share) + rows[after] * share


class SpeechBatches:
    """Batches of clips of any length with their texts, in a new order each epoch, without end.

    Args:
        clips: samples (N,) of each.
        ids: token ids of each text, the one that ends it included.
        batch_size: clips of a batch; what is left of an epoch is dropped.
        sample_rate: in Hz.
        num_mels: bands of the features.
        pad_id, bos_id: what pads texts, and what stands before them in the decoder.
        shape: batches are padded to a multiple of so many frames.
        augmentation: changes each clip each time.
        seed: of the order and the changes.

    Attributes:
        max_frames: of the longest batch there may be.

    Raises:
        ValueError: if a number is out of range, there are fewer clips than a batch takes, or
            more or fewer texts than clips.
    """

    def __init__(
        self,
        clips: Sequence[np.ndarray],
        ids: Sequence[Sequence[int]],
        batch_size: int,
        sample_rate: int,
        num_mels: int,
        pad_id: int,
        bos_id: int,
        shape: int = 64,
        augmentation: Augmentation | None = None,
        seed: int = 0,
    ):
        accepted = f"a whole number from 1 to {len(clips)}, as there are clips for training"
        require_whole("batch_size", batch_size, 1)
        require(batch_size <= len(clips), "batch_size", batch_size, accepted)
        require(len(ids) == len(clips), "ids", len(ids), f"{len(clips)}, as clips")
        self.batch_size, self.num_mels, self.shape = batch_size, num_mels, shape
        self.augmentation = augmentation or Augmentation()
        self._hertz = mel_middles(sample_rate, num_mels)
        self._features = [ops.convert_to_numpy(log_mel(x, sample_rate, num_mels)) for x in clips]
        longest = max(map(len, self._features)) * math.exp(self.augmentation.tempo)
        self.max_frames = -(-round(longest) // shape) * shape
        length = max(map(len, ids))
        self._labels = np.full((len(ids), length), pad_id, "int32")
        for row, text in zip(self._labels, ids, strict=True):
            row[: len(text)] = text
        self._targets = np.roll(self._labels, 1, axis=1)
        self._targets[:, 0] = bos_id
        self._rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return len(self._features) // self.batch_size

    def __iter__(self) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
        """For `model.fit`: (features, num_frames, target_ids), labels."""
        while True:
            order = self._rng.permutation(len(self._features))
            for batch in range(len(self)):
                rows = order[batch * self.batch_size : (batch + 1) * self.batch_size]
                inputs = self._drawn(rows) | {"target_ids": self._targets[rows]}
                yield inputs, self._labels[rows]

    def _drawn(self, rows):
        clips = [self.augmentation(self._features[i], self._hertz, self._rng) for i in rows]
        num_frames = np.array([len(clip) for clip in clips], "int32")
        length = -(-num_frames.max() // self.shape) * self.shape
        features = np.zeros((len(rows), length, self.num_mels), "float32")
        for padded, clip in zip(features, clips, strict=True):
            padded[: len(clip)] = clip
        return {"features": features, "num_frames": num_frames}
