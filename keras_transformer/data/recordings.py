"""Recordings with transcripts: a reader of spoken digits, augmentation of features, batches."""

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
from keras_transformer.data.archives import read_tar
from keras_transformer.data.audio import log_mel, mel_middles, read_wav

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class Recording:
    """A recording with its transcript.

    Args:
        samples: Samples (N,) float32; full scale is from -1 to 1.
        text: The transcript.
        speaker: Name of the speaker.
        take: Number of the recording among those of this speaker and text.
    """

    samples: np.ndarray
    text: str
    speaker: str
    take: int


def read_spoken_digits(path: str | Path, sample_rate: int = 8000) -> list[Recording]:
    """Read the recordings of the Free Spoken Digit Dataset (Jackson 2016).

    Args:
        path: A tar file of `.../DIGIT_SPEAKER_TAKE.wav`; other files are ignored.
        sample_rate: Rate in Hz to resample to.

    Returns:
        The recordings in the order of the archive; the text of each is a word such as "seven".

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If it is not a tar file, or a `.wav` in it has a name of another form or is not
            16-bit PCM.
    """
    recordings = []
    for name, content in read_tar(path):
        if not name.endswith(".wav"):
            continue
        facts = re.findall(r"(\d)_([^_/]+)_(\d+)\.wav$", name)
        require(facts, f"names in {path}", name, "of the form 7_theo_12.wav")
        digit, speaker, take = facts[0]
        try:
            samples, _ = read_wav(io.BytesIO(content), sample_rate)
        except ValueError as error:
            raise ValueError(f"{path}, {name}: {error}") from error
        recordings.append(Recording(samples, DIGITS[int(digit)], speaker, int(take)))
    return recordings


def joined_words(
    recordings: Sequence[Recording],
    most: int,
    rng: np.random.Generator,
    sample_rate: int = 8000,
    pause: float = 0.2,
) -> list[tuple[Recording, list[tuple[float, float]]]]:
    """Join recordings of single words to recordings of 1 to `most` words.

    Each recording is the first word of one result; the other words of the result are random
    recordings of the same speaker.

    Args:
        recordings: Recordings of one word each.
        most: Maximum number of words per result.
        rng: Random number generator.
        sample_rate: Rate of the recordings in Hz.
        pause: Maximum silence before a word in seconds; there is none before the first word.

    Returns:
        Each joined recording, with the start and end of each of its words in seconds.

    Raises:
        ValueError: If `most` is below 1, or `pause` below 0.
    """
    require_whole("most", most, 1)
    require(pause >= 0, "pause", pause, "at least 0")
    speakers: dict[str, list[Recording]] = {}
    for recording in recordings:
        speakers.setdefault(recording.speaker, []).append(recording)
    results = []
    for first in recordings:
        group = speakers[first.speaker]
        words = [first, *(group[i] for i in rng.integers(len(group), size=rng.integers(most)))]
        sounds, places, length = [], [], 0
        for i, word in enumerate(words):
            silence = np.zeros(round(rng.uniform(0, pause) * sample_rate) * (i > 0), "float32")
            start = length + len(silence)
            length = start + len(word.samples)
            sounds += [silence, word.samples]
            places.append((start / sample_rate, length / sample_rate))
        text = " ".join(word.text for word in words)
        whole = Recording(np.concatenate(sounds), text, first.speaker, first.take)
        results.append((whole, places))
    return results


@dataclass(frozen=True)
class Augmentation:
    """Random changes of a clip's features that imitate other voices, rooms and microphones.

    Args:
        tempo: Maximum change of the length: a factor from exp(-tempo) to exp(tempo).
        pitch: Maximum change of the frequencies: a factor from exp(-pitch) to exp(pitch), as
            between longer and shorter vocal tracts (Jaitly & Hinton 2013, section 3).
        gain: Maximum change of the loudness in decibels; in addition, the lowest and the highest
            band change by up to half of it in opposite directions.
        noise: Probability of noise, 30 to 80 decibels below the loudest band of the clip.
        hidden: Maximum number of adjacent mels, and of adjacent frames, that are masked
            (SpecAugment; Park et al. 2019).

    Call arguments:
        clip: Features (F, mels) from `log_mel`.
        hertz: Center frequency of each mel band in Hz (mels,).
        rng: Random number generator.

    Returns:
        Features (F', mels) float32.

    Raises:
        ValueError: If a number is below 0, or `noise` is above 1.
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
        # Ten decibels are a factor of ten in power, and 1/4 in the features of `log_mel`.
        level, tilt = rng.uniform(-self.gain, self.gain, 2) / 40
        clip = clip + level + tilt / 2 * np.linspace(-1, 1, mels)
        if rng.random() < self.noise:
            noise = clip.max() - rng.uniform(0.75, 2) + rng.normal(0, 0.03, clip.shape)
            clip = np.logaddexp(clip * _E, noise * _E) / _E
        for features in (clip, clip.T):
            first, count = rng.integers(len(features)), rng.integers(self.hidden + 1)
            features[first : first + count] = 0
        return clip.astype("float32")


_E = 4 * math.log(10)  # features times this are natural logarithms of the power, plus a constant


def _at(rows, places):
    """Return rows at fractional indices `places`, interpolated linearly."""
    before = np.minimum(places.astype(int), max(0, len(rows) - 2))
    after = np.minimum(before + 1, len(rows) - 1)
    share = (places - before)[:, None]
    return rows[before] * (1 - share) + rows[after] * share


class SpeechBatches:
    """Endless batches of clips of any length with their transcripts, reshuffled in each epoch.

    Args:
        clips: Samples (N,) of each clip.
        ids: Token ids of each transcript, including EOS.
        batch_size: Clips per batch; an incomplete last batch of an epoch is dropped.
        sample_rate: Rate of the clips in Hz.
        num_mels: Number of mel bands of the features.
        pad_id, bos_id: Padding id of transcripts, and first id of the decoder's input.
        begin: Ids that follow BOS in the decoder's input, such as that of a language. They are not
            learned: positions whose next id is one of them have the label `pad_label`.
        pad_label: Padding of labels; None: `pad_id`.
        shape: The number of frames of a batch is padded to a multiple of this.
        augmentation: Augmentation of each clip, drawn anew each time; None: `Augmentation()`.
        seed: Seed of the order and the augmentation.

    Attributes:
        max_frames: Number of frames of the longest possible batch.

    Raises:
        ValueError: If a number is out of range, there are fewer clips than `batch_size`, or the
            numbers of transcripts and clips differ.
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
        begin: Sequence[int] = (),
        pad_label: int | None = None,
    ):
        accepted = f"a whole number from 1 to {len(clips)}, the number of training clips"
        require_whole("batch_size", batch_size, 1)
        require(batch_size <= len(clips), "batch_size", batch_size, accepted)
        require(len(ids) == len(clips), "ids", len(ids), f"{len(clips)}, one per clip")
        self.batch_size, self.num_mels, self.shape = batch_size, num_mels, shape
        self.augmentation = augmentation or Augmentation()
        self._hertz = mel_middles(sample_rate, num_mels)
        self._features = [ops.convert_to_numpy(log_mel(x, sample_rate, num_mels)) for x in clips]
        longest = max(map(len, self._features)) * math.exp(self.augmentation.tempo)
        self.max_frames = -(-round(longest) // shape) * shape
        first, length = [bos_id, *begin], len(begin) + max(map(len, ids))
        pad_label = pad_id if pad_label is None else pad_label
        self._labels = np.full((len(ids), length), pad_label, "int32")
        self._targets = np.full((len(ids), length), pad_id, "int32")
        for labels, targets, text in zip(self._labels, self._targets, ids, strict=True):
            labels[len(begin) : len(begin) + len(text)] = text
            shifted = [*first, *text][:length]
            targets[: len(shifted)] = shifted
        self._rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        """Return the number of batches per epoch."""
        return len(self._features) // self.batch_size

    def __iter__(self) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
        """Yield inputs and labels for `model.fit`.

        The inputs are `features` (B, F, num_mels) float32, `num_frames` (B,) and `target_ids`
        (B, T); the labels have the shape (B, T).
        """
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
