"""Recordings with their texts: spoken digits, changes of speed, and batches for training."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from keras import ops

from keras_transformer.config import require, require_whole
from keras_transformer.data.audio import log_mel, read_wav, resample
from keras_transformer.data.images import read_archive

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SPEEDS = ((4, 5), (9, 10), (11, 10), (5, 4))


@dataclass(frozen=True)
class Recording:
    """What someone said: samples (N,) in [-1, 1), the text, who, and which take it is."""

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


def at_speeds(
    samples: np.ndarray, speeds: Sequence[tuple[int, int]] = SPEEDS
) -> Iterator[np.ndarray]:
    """The sound played slower or faster, its pitch with it (Ko et al. 2015, section 2.1).

    It stands in for speakers with longer or shorter vocal tracts.

    Args:
        samples: (N,).
        speeds: as fractions: (11, 10) is a tenth faster, and as much higher.
    """
    return (resample(samples, *speed).astype("float32") for speed in speeds)


class SpeechBatches:
    """Batches of clips of any length with their texts, in a new order each epoch, without end.

    Each time a clip is louder or softer, and a band of its mels and one of its frames are hidden
    (SpecAugment; Park et al. 2019, section 2).

    Args:
        clips: of each recording the forms that it may take, each (N,) samples: one is drawn at
            random each time.
        ids: token ids of each text, the one that ends it included.
        batch_size: clips of a batch; what is left of an epoch is dropped.
        sample_rate: in Hz.
        num_mels: bands of the features.
        pad_id, bos_id: what pads texts, and what stands before them in the decoder.
        shape: batches are padded to a multiple of so many frames.
        gain: decibels that a clip may be louder or softer.
        hidden: most mels, and most frames, that are hidden.
        seed: of order, forms, gains and bands.

    Attributes:
        max_frames: of the longest batch there may be.

    Raises:
        ValueError: if a number is out of range, there are fewer clips than a batch takes, or
            more or fewer texts than clips.
    """

    def __init__(
        self,
        clips: Sequence[Sequence[np.ndarray]],
        ids: Sequence[Sequence[int]],
        batch_size: int,
        sample_rate: int,
        num_mels: int,
        pad_id: int,
        bos_id: int,
        shape: int = 64,
        gain: float = 20.0,
        hidden: int = 8,
        seed: int = 0,
    ):
        accepted = f"a whole number from 1 to {len(clips)}, as there are clips for training"
        require_whole("batch_size", batch_size, 1)
        require(batch_size <= len(clips), "batch_size", batch_size, accepted)
        require(len(ids) == len(clips), "ids", len(ids), f"{len(clips)}, as clips")
        self.batch_size, self.num_mels, self.shape = batch_size, num_mels, shape
        self.gain, self.hidden = gain, hidden
        self._features = [
            [ops.convert_to_numpy(log_mel(x, sample_rate, num_mels)) for x in forms]
            for forms in clips
        ]
        longest = max(len(x) for forms in self._features for x in forms)
        self.max_frames = -(-longest // shape) * shape
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
        draw = self._rng.integers
        chosen = [self._features[row][draw(len(self._features[row]))] for row in rows]
        num_frames = np.array([len(clip) for clip in chosen], "int32")
        length = -(-num_frames.max() // self.shape) * self.shape
        features = np.zeros((len(rows), length, self.num_mels), "float32")
        for padded, clip in zip(features, chosen, strict=True):
            # Ten decibels are a power of ten, and a quarter in `log_mel`.
            padded[: len(clip)] = clip + self._rng.uniform(-self.gain, self.gain) / 40
            low, first = draw(self.num_mels), draw(len(clip))
            padded[:, low : low + draw(self.hidden + 1)] = 0
            padded[first : first + draw(self.hidden + 1)] = 0
        return {"features": features, "num_frames": num_frames}
