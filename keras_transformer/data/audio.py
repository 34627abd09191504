"""Sound: WAV files, resampling, and log-mel features (Radford et al. 2022, section 2.2)."""

from __future__ import annotations

import functools
import math
import os
import wave
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
from keras import ops

from keras_transformer.config import require, require_whole
from keras_transformer.system.files import replacing

MOST_HERTZ = 1_000_000
MOST_TAPS = 2_000_000  # numbers in the filters of `resample`, of 8 bytes
_BROKEN = (wave.Error, EOFError, RuntimeError)  # of the module wave for a damaged file


def read_wav(
    file: str | os.PathLike | BinaryIO, sample_rate: int | None = None
) -> tuple[np.ndarray, int]:
    """Read the samples of a 16-bit PCM WAV file; several channels are averaged.

    Args:
        file: Path, or file open for reading.
        sample_rate: Rate in Hz to resample to; None keeps the rate of the file.

    Returns:
        Samples (N,) float32 in [-1, 1), and their rate in Hz.

    Raises:
        ValueError: If the file is not a 16-bit PCM WAV file, or is truncated.
    """
    is_open = hasattr(file, "read")
    name = "the file" if is_open else os.fspath(file)
    try:
        with wave.open(file if is_open else name, "rb") as sound:
            width, channels = sound.getsampwidth(), sound.getnchannels()
            rate, length = sound.getframerate(), sound.getnframes()
            data = sound.readframes(length)
    except _BROKEN as error:
        problem = str(error) or "it is damaged"
        raise ValueError(f"{name} must be a WAV file of 16-bit PCM: {problem}") from error
    if width != 2:
        raise ValueError(f"{name} must have samples of 16 bits, got {8 * width}")
    if len(data) != 2 * channels * length:
        raise ValueError(f"{name} is truncated: its header announces {length} samples")
    _check_rate(f"the sample rate of {name}", rate)
    samples = np.frombuffer(data, "<i2").reshape(-1, channels).mean(axis=1) / 32768
    if sample_rate is not None and sample_rate != rate:
        samples, rate = resample(samples, rate, sample_rate), sample_rate
    return samples.astype("float32"), rate


def sound_chunks(
    file: BinaryIO, sample_rate: int | None = None, seconds: float = 0.25
) -> tuple[int, Iterator[np.ndarray]]:
    """Read a sound of 16-bit PCM while it arrives, from a pipe for example.

    Args:
        file: File open for reading, such as `sys.stdin.buffer`; it may have no end.
        sample_rate: Rate in Hz of samples without a header, little-endian and of one channel;
            None: a WAV file, whose header gives the rate. Its stated length may be wrong, as it
            is in a pipe.
        seconds: Length of each chunk but the last.

    Returns:
        The rate in Hz and an iterator over chunks (N,) float32 in [-1, 1).

    Raises:
        ValueError: If there is no sound, or it is not 16-bit PCM.
    """
    read, channels, rate = file.read, 1, sample_rate
    if rate is None:
        try:
            sound = wave.open(file, "rb")  # noqa: SIM115 - `chunks` reads it
        except _BROKEN as error:
            problem = str(error) or "it is damaged"
            raise ValueError(f"the sound must be a WAV file of 16-bit PCM: {problem}") from error
        width, channels, rate = sound.getsampwidth(), sound.getnchannels(), sound.getframerate()
        require(width == 2, "the sound's sample width", 8 * width, "16 bits")

        def read(size):
            return sound.readframes(size // (2 * channels))

    _check_rate("sample_rate", rate)
    size = 2 * channels * max(1, round(seconds * rate))

    def chunks(data):
        while len(data) >= 2 * channels:
            whole = data[: len(data) // (2 * channels) * 2 * channels]
            samples = np.frombuffer(whole, "<i2").reshape(-1, channels).mean(axis=1)
            yield (samples / 32768).astype("float32")
            data = read(size)

    first = read(size)
    require(len(first) > 1, "the sound", "no samples", "one or more samples of 16-bit PCM")
    return rate, chunks(first)


def _check_rate(name, rate):
    require_whole(name, rate, 1)
    require(rate <= MOST_HERTZ, name, rate, f"at most {MOST_HERTZ:,} Hz")


def write_wav(path: str | os.PathLike, samples: np.ndarray, sample_rate: int) -> None:
    """Write a WAV file of 16-bit PCM with one channel; an existing file is replaced as a whole.

    Args:
        path: File to write.
        samples: Samples (N,) in [-1, 1]; others are clipped.
        sample_rate: Rate in Hz.

    Raises:
        ValueError: If samples have another shape or are not finite.
    """
    fits = samples.ndim == 1 and bool(np.isfinite(samples).all())
    require(fits, "samples", samples.shape, "finite numbers (N,)")
    data = np.clip(np.round(samples * 32768.0), -32768, 32767).astype("<i2")
    with replacing(path) as temporary, wave.open(os.fspath(temporary), "wb") as sound:
        sound.setparams((1, 2, sample_rate, len(data), "NONE", ""))
        sound.writeframes(data.tobytes())


def resample(samples: np.ndarray, before: int, after: int, crossings: int = 16) -> np.ndarray:
    """Resample a sound with a low-pass filter, a sinc in a Hann window (Smith 2002).

    Args:
        samples: Samples (N,).
        before, after: Old and new rate in Hz, integers.
        crossings: Zeros of the sinc on either side; a higher number preserves more of the highest
            frequencies.

    Returns:
        Samples (ceil(N after / before),).

    Raises:
        ValueError: If the ratio of the rates has numerator and denominator so large that the
            filters would take too much memory, as 44,101 to 16,000 has.
    """
    divisor = math.gcd(before, after)
    down, up = before // divisor, after // divisor
    cutoff = 0.95 * min(1.0, up / down)  # as a share of half the old rate
    reach = math.ceil(crossings / cutoff)
    accepted = f"of a simpler ratio to {after:,} Hz"
    require(up * (down + 2 * reach) <= MOST_TAPS, "the sample rate", before, accepted)
    # Every `down` old samples become `up` new ones, each computed with a separate filter.
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
    """Compute Whisper's features: log power in mel bands, limited to a range of 8 powers of ten.

    The features are x = log10 of the mel bands of the Fourier power, clipped from below at the
    clip's maximum minus 8, then (x + 4) / 4. The features depend on where a clip ends, so pad all
    samples to one length, as Whisper does to 30 seconds, or compute the features of each clip
    separately and pad those.

    Args:
        samples: Samples (N,) or (B, N) in [-1, 1], N more than half a window.
        sample_rate: Rate in Hz.
        num_mels: Mel bands from 0 Hz to half the rate; at 8 kHz, more than about 40 leave some
            bands empty.
        window, hop: Length of a frame and distance between frames, in seconds.

    Returns:
        A float32 tensor (N // hop, mels) or (B, N // hop, mels), hop in samples.

    Raises:
        ValueError: If there are too few samples.
    """
    # Frames of a NumPy array are cut by NumPy: JAX would compile for each clip length.
    own = isinstance(samples, np.ndarray)
    samples = samples.astype("float32") if own else ops.convert_to_tensor(samples, dtype="float32")
    size, step = round(window * sample_rate), round(hop * sample_rate)
    length, half = samples.shape[-1], size // 2
    if length <= half:
        raise ValueError(f"samples must be more than {half}, half a window, got {length}")
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
    """Return triangular filters of equal area, evenly spaced on Slaney's mel scale.

    The scale (Auditory Toolbox, 1998) is linear up to 1,000 Hz (15 mels) and logarithmic above.

    Args:
        sample_rate: Rate in Hz.
        size: Size of the Fourier transform.
        num_mels: Number of triangles between 0 Hz and half the rate.

    Returns:
        Filters (1 + size // 2, mels) float32.
    """
    corners = _mel_corners(sample_rate, num_mels)
    low, middle, top = corners[:-2], corners[1:-1], corners[2:]
    tones = np.linspace(0, sample_rate / 2, 1 + size // 2)[:, None]
    rising, falling = (tones - low) / (middle - low), (top - tones) / (top - middle)
    triangles = np.maximum(np.minimum(rising, falling), 0)
    return (triangles * 2 / (top - low)).astype("float32")


def mel_middles(sample_rate: int, num_mels: int) -> np.ndarray:
    """Return the center frequency of each filter of `mel_filters` in Hz, (mels,)."""
    return _mel_corners(sample_rate, num_mels)[1:-1]


def _mel_corners(sample_rate, num_mels):
    high = sample_rate / 2
    octave = math.log(6.4) / 27  # log frequency ratio per mel above 1,000 Hz
    most = 15 + math.log(high / 1000) / octave if high > 1000 else high * 3 / 200
    mels = np.linspace(0, most, num_mels + 2)
    return np.where(mels < 15, mels * 200 / 3, 1000 * np.exp(octave * (mels - 15)))
