"""Sound: WAV files, other sample rates, and log-mel features (Radford et al. 2022, section 2.2)."""

from __future__ import annotations

import functools
import math
import os
import wave
from typing import Any, BinaryIO

import numpy as np
from keras import ops


def read_wav(
    file: str | os.PathLike | BinaryIO, sample_rate: int | None = None
) -> tuple[np.ndarray, int]:
    """The samples of a WAV file of 16-bit PCM; of several channels their mean.

    Args:
        file: a path, or an open file.
        sample_rate: what to resample to, in Hz; None: as it is.

    Returns:
        Samples (N,) float32 in [-1, 1), and their rate in Hz.

    Raises:
        ValueError: if the file is no such WAV, or is cut off.
    """
    is_open = hasattr(file, "read")
    name = "the file" if is_open else os.fspath(file)
    try:
        with wave.open(file if is_open else name, "rb") as sound:
            width, channels = sound.getsampwidth(), sound.getnchannels()
            rate, length = sound.getframerate(), sound.getnframes()
            data = sound.readframes(length)
    except (wave.Error, EOFError) as error:
        raise ValueError(f"{name} must be a WAV file of 16-bit PCM: {error}") from error
    if width != 2:
        raise ValueError(f"{name} must have samples of 16 bits, got {8 * width}")
    if len(data) != 2 * channels * length:
        raise ValueError(f"{name} is cut off: {length} samples are promised")
    samples = np.frombuffer(data, "<i2").reshape(-1, channels).mean(axis=1) / 32768
    if sample_rate is not None and sample_rate != rate:
        samples, rate = resample(samples, rate, sample_rate), sample_rate
    return samples.astype("float32"), rate


def resample(samples: np.ndarray, before: int, after: int, crossings: int = 16) -> np.ndarray:
    """The same sound at another rate: a low-pass by a sinc in a Hann window (Smith 2002).

    Args:
        samples: (N,).
        before, after: rates in Hz, whole numbers.
        crossings: zeros of the sinc on either side; more keep more of the highest tones.

    Returns:
        (ceil(N after / before),).
    """
    divisor = math.gcd(before, after)
    down, up = before // divisor, after // divisor
    cutoff = 0.95 * min(1.0, up / down)  # as a share of the old rate's half
    reach = math.ceil(crossings / cutoff)
    # Of `up` new samples in `down` old ones each has a filter of its own.
    taps = np.arange(-reach, down + reach)
    distance = taps - np.arange(up)[:, None] * down / up
    window = np.cos(np.clip(distance * cutoff / crossings, -1, 1) * np.pi / 2) ** 2
    filters = cutoff * np.sinc(distance * cutoff) * window
    length = -(-len(samples) * up // down)
    padded = np.pad(samples, (reach, reach + down * (1 + len(samples) // down) - len(samples)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(taps))[::down]
    return (windows @ filters.T).reshape(-1)[:length]


def log_mel(
    samples: Any,
    sample_rate: int = 16_000,
    num_mels: int = 80,
    window: float = 0.025,
    hop: float = 0.01,
) -> Any:
    """Whisper's features: the log of the power in mel bands, its last 8 powers of ten.

    log10 of the mel bands of the power of Fourier transforms, not below 8 under the clip's
    highest, then (x + 4) / 4. A clip's features depend on its end: pad samples, as Whisper does
    to 30 seconds, or make each clip's alone and pad those.

    Args:
        samples: (N,) or (B, N) in [-1, 1], N more than half of a window.
        sample_rate: in Hz.
        num_mels: bands from 0 Hz to half of the rate; at 8 kHz no more than about 40 hold
            something each.
        window, hop: in seconds.

    Returns:
        (N // hop, mels) or (B, N // hop, mels) float32, a tensor.

    Raises:
        ValueError: if there are too few samples.
    """
    # NumPy cuts frames out of its own arrays: JAX would compile for each length of a clip.
    own = isinstance(samples, np.ndarray)
    samples = samples.astype("float32") if own else ops.convert_to_tensor(samples, dtype="float32")
    size, step = round(window * sample_rate), round(hop * sample_rate)
    length, half = samples.shape[-1], size // 2
    if length <= half:
        raise ValueError(f"samples must be more than {half}, half of a window, got {length}")
    edges = [(0, 0)] * (len(samples.shape) - 1)
    on = np if own else ops
    padded = on.pad(samples, [*edges, (half, half)], mode="reflect")
    places = np.arange(length // step)[:, None] * step + np.arange(size)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    frames = on.take(padded, places.astype("int32"), axis=-1) * hann.astype("float32")
    real, imaginary = ops.rfft(ops.convert_to_tensor(frames))
    power = real * real + imaginary * imaginary
    mels = ops.matmul(power, mel_filters(sample_rate, size, num_mels))
    x = ops.log10(ops.maximum(mels, 1e-10))
    x = ops.maximum(x, ops.max(x, axis=(-2, -1), keepdims=True) - 8.0)
    return (x + 4.0) / 4.0


@functools.lru_cache
def mel_filters(sample_rate: int, size: int, num_mels: int) -> np.ndarray:
    """Triangles of equal area, evenly spaced on Slaney's mel scale (Auditory Toolbox, 1998).

    The scale is linear up to 1,000 Hz, 15 mels, and logarithmic above.

    Args:
        sample_rate: in Hz.
        size: of the Fourier transform.
        num_mels: triangles between 0 Hz and half of the rate.

    Returns:
        (1 + size // 2, mels) float32.
    """
    corners = _mel_corners(sample_rate, num_mels)
    low, middle, top = corners[:-2], corners[1:-1], corners[2:]
    tones = np.linspace(0, sample_rate / 2, 1 + size // 2)[:, None]
    rising, falling = (tones - low) / (middle - low), (top - tones) / (top - middle)
    triangles = np.maximum(np.minimum(rising, falling), 0)
    return (triangles * 2 / (top - low)).astype("float32")


def mel_middles(sample_rate: int, num_mels: int) -> np.ndarray:
    """The tops of the triangles of `mel_filters`, in Hz (mels,)."""
    return _mel_corners(sample_rate, num_mels)[1:-1]


def _mel_corners(sample_rate, num_mels):
    high = sample_rate / 2
    octave = math.log(6.4) / 27  # of a mel above 1,000 Hz
    most = 15 + math.log(high / 1000) / octave if high > 1000 else high * 3 / 200
    mels = np.linspace(0, most, num_mels + 2)
    return np.where(mels < 15, mels * 200 / 3, 1000 * np.exp(octave * (mels - 15)))
