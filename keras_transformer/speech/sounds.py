"""Preparation of sounds for a transcriber: read, resample, and cut into parts at quiet places."""

from __future__ import annotations

import os
from typing import BinaryIO, TypeAlias

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.data.audio import read_wav, resample

Sound: TypeAlias = str | os.PathLike | BinaryIO | np.ndarray


def samples_of(sound: Sound, sample_rate: int | None, rate: int) -> np.ndarray:
    """Return the samples (N,) of a sound as float32.

    Args:
        sound: WAV file of 16-bit PCM, or samples (N,) in [-1, 1].
        sample_rate: Rate in Hz if `sound` is an array; None: `rate`. A file names its own rate.
        rate: Rate of the result in Hz.

    Raises:
        ValueError: If the file cannot be read, the array has another shape or dtype, the sound is
            empty or not finite, or `sample_rate` is not a whole number from 1.
    """
    if not isinstance(sound, np.ndarray):
        samples = read_wav(sound, rate)[0]
        _require_samples(samples)
        return samples
    if sound.ndim != 1 or not np.issubdtype(sound.dtype, np.floating):
        raise ValueError(
            f"sounds must be files or samples (N,) of floats, got {sound.shape} of {sound.dtype}"
        )
    _require_samples(sound)
    is_finite = bool(np.isfinite(sound).all())
    require(is_finite, "samples of the sound", "NaN or infinity", "finite numbers")
    before = rate if sample_rate is None else sample_rate
    require_whole("sample_rate", before, 1)
    return (sound if before == rate else resample(sound, before, rate)).astype("float32")


def _require_samples(samples):
    if not len(samples):
        raise ValueError("the sound is empty: it has no samples")


def cut(samples: np.ndarray, longest: int) -> list[np.ndarray]:
    """Return samples (N,) in parts of at most `longest` samples, cut at quiet places."""
    parts = []
    while len(samples) > longest:
        end = _quietest(samples[:longest])
        parts.append(samples[:end])
        samples = samples[end:]
    return [*parts, samples]


def _quietest(samples: np.ndarray) -> int:
    """Return the index of the quietest place in the last sixth of the samples.

    It is the middle of the interval with the least power, whose length is 1/300 of the samples. In
    30 s of sound, this is 0.1 s within the last 5 s.
    """
    begin, size = len(samples) * 5 // 6, max(1, len(samples) // 300)
    power = np.concatenate([[0.0], np.cumsum(np.square(samples[begin:], dtype="float64"))])
    return begin + int((power[size:] - power[:-size]).argmin()) + size // 2
