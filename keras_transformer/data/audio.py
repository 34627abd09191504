"""Sound: WAV files, resampling, and log-mel features (Radford et al. 2022, section 2.2)."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import shlex
import struct
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from keras import ops

from keras_transformer.config import require, require_whole
from keras_transformer.system.files import replacing

MOST_HERTZ = 1_000_000  # maximum sample rate
MOST_TAPS = 2_000_000  # maximum number of filter taps in `resample`, 8 bytes each
# Programs that write a WAV file to a pipe do not know its size: ffmpeg writes 2^32 - 1 into the
# header, SoX slightly less than 2^31 (a multiple of the frame), GStreamer 0. Sizes of at least
# UNKNOWN_SIZE bytes count as unknown; so does 0 if the file's size in the header is 0 or unknown.
UNKNOWN_SIZE = 0x7FFF0000


def read_wav(
    file: str | os.PathLike | BinaryIO, sample_rate: int | None = None
) -> tuple[np.ndarray, int]:
    """Read the samples of a 16-bit PCM WAV file; several channels are averaged.

    Args:
        file: Path, or file open for reading. If its header gives no size, as from a pipe, it is
            read to its end.
        sample_rate: Rate in Hz to resample to; None keeps the rate of the file.

    Returns:
        Samples (N,) float32 in [-1, 1), which resampling can exceed slightly; and their rate in Hz.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file is not a 16-bit PCM WAV file, is truncated, has a rate above
            `MOST_HERTZ`, or cannot be resampled to `sample_rate`, see `resample`.
    """
    name = os.fspath(file) if isinstance(file, str | os.PathLike) else "the file"
    with (
        open(file, "rb")
        if isinstance(file, str | os.PathLike)
        else contextlib.nullcontext(file) as sound
    ):
        channels, rate, size = _header(sound.read, name)
        data = sound.read(-1 if size is None else size)
    frame = 2 * channels
    if size is not None and len(data) // frame != size // frame:
        raise ValueError(f"{name} is truncated: its header announces {size // frame} samples")
    _check_rate(f"the sample rate of {name}", rate)
    data = data[: len(data) // frame * frame]
    samples = np.frombuffer(data, "<i2").reshape(-1, channels).mean(axis=1) / 32768
    if sample_rate is not None and sample_rate != rate:
        samples, rate = resample(samples, rate, sample_rate), sample_rate
    return samples.astype("float32"), rate


def _header(read: Callable[[int], bytes], name: str) -> tuple[int, int, int | None]:
    """Read the header of a WAV file, up to its samples, without seeking: it may be a pipe.

    Args:
        read: The file's method `read`.
        name: Name of the file in error messages.

    Returns:
        Number of channels, rate in Hz, and number of bytes of all samples; the last is None if
        the samples end with the file.
    """

    def unpacked(layout, data):
        try:
            return struct.unpack_from(layout, data)
        except struct.error as error:
            raise _foreign(name, "it ends early") from error

    kind, whole, form = unpacked("<4sI4s", read(12))
    if kind not in (b"RIFF", b"RF64") or form != b"WAVE":
        raise _foreign(name, "it does not begin as one")
    facts, large = None, 0
    while True:
        chunk, size = unpacked("<4sI", read(8))
        if chunk == b"data":
            break
        content = read(size + size % 2)
        if chunk == b"fmt ":
            coding, *facts = unpacked("<HHIIHH", content)
            if coding == 0xFFFE:  # WAVE_FORMAT_EXTENSIBLE: its GUID begins with the format
                coding = unpacked("<24xH", content)[0]
            if coding != 1:
                raise _foreign(name, f"its samples have format {coding}")
        elif chunk == b"ds64":
            large = unpacked("<8xQ", content)[0]
    if facts is None or not facts[0]:
        raise _foreign(name, "it has no format or channel")
    channels, rate, _, _, bits = facts
    if not 8 < bits <= 16:  # samples of 9 to 15 bits are stored in 16 bits
        raise _foreign(name, f"its samples have {bits} bits")
    is_unknown = size >= UNKNOWN_SIZE or (not size and not 0 < whole < UNKNOWN_SIZE)
    if kind == b"RF64" and size == 2**32 - 1:
        size, is_unknown = large, not 0 < large < 2**48
    return channels, rate, None if is_unknown else size


def _foreign(name, problem):
    """Return the error for a file of another format, with the command that converts it."""
    path = Path(name)
    names = [path.name, f"{path.stem}.16-bit.wav"] if path.suffix else ["INPUT", "OUTPUT.wav"]
    command = shlex.join(["ffmpeg", "-i", names[0], "-c:a", "pcm_s16le", names[1]])
    return ValueError(
        f"{name} must be a WAV file of 16-bit PCM: {problem}; convert it with `{command}`"
    )


def sound_chunks(
    file: BinaryIO, sample_rate: int | None = None, seconds: float = 0.25
) -> tuple[int, Iterator[np.ndarray]]:
    """Read a sound of 16-bit PCM in chunks while it arrives, for example from a pipe.

    Args:
        file: File open for reading, such as `sys.stdin.buffer`; it may have no end.
        sample_rate: Rate in Hz of raw samples without a header, little-endian, one channel. None:
            the file is a WAV file, whose header gives the rate; if it gives no size, as from a
            pipe, the file is read to its end.
        seconds: Length of each chunk in seconds; the last may be shorter.

    Returns:
        The rate in Hz, and an iterator over chunks (N,) float32 in [-1, 1). Several channels of a
        WAV file are averaged.

    Raises:
        ValueError: If there are no samples, the rate is out of range, or the header is not that of
            a 16-bit PCM WAV file.
    """
    read, channels, rate = file.read, 1, sample_rate
    left = None
    if rate is None:
        channels, rate, left = _header(read, "the sound")
    _check_rate("sample_rate", rate)
    size = 2 * channels * max(1, round(seconds * rate))

    def chunk():
        nonlocal left
        data = read(size if left is None else min(size, left))
        left = left if left is None else left - len(data)
        return data

    def chunks(data):
        while len(data) >= 2 * channels:
            whole = data[: len(data) // (2 * channels) * 2 * channels]
            samples = np.frombuffer(whole, "<i2").reshape(-1, channels).mean(axis=1)
            yield (samples / 32768).astype("float32")
            data = chunk()

    first = chunk()
    require(len(first) > 1, "the sound", "no samples", "one or more samples of 16-bit PCM")
    return rate, chunks(first)


def _check_rate(name, rate):
    require_whole(name, rate, 1)
    require(rate <= MOST_HERTZ, name, rate, f"at most {MOST_HERTZ:,} Hz")


def write_wav(path: str | os.PathLike, samples: np.ndarray, sample_rate: int) -> None:
    """Write a WAV file of 16-bit PCM with one channel; an existing file is replaced.

    Args:
        path: File to write.
        samples: Samples (N,) in [-1, 1]; others are clipped.
        sample_rate: Rate in Hz.

    Raises:
        ValueError: If samples have another shape or are not finite.
    """
    is_signal = samples.ndim == 1 and bool(np.isfinite(samples).all())
    require(is_signal, "samples", samples.shape, "finite numbers (N,)")
    data = np.clip(np.round(samples * 32768.0), -32768, 32767).astype("<i2")
    with replacing(path) as temporary, wave.open(os.fspath(temporary), "wb") as sound:
        sound.setparams((1, 2, sample_rate, len(data), "NONE", ""))
        sound.writeframes(data.tobytes())


def resample(samples: np.ndarray, before: int, after: int, crossings: int = 16) -> np.ndarray:
    """Resample a sound with a low-pass filter, a sinc in a Hann window (Smith 2002).

    Args:
        samples: Samples (N,).
        before, after: Old and new rate in Hz, integers.
        crossings: Number of zeros of the sinc on either side; more zeros preserve more of the
            highest frequencies.

    Returns:
        Samples (ceil(N after / before),).

    Raises:
        ValueError: If the filters would take too much memory, because numerator and denominator of
            the ratio of the rates are too large, for example 44,101 to 16,000.
    """
    divisor = math.gcd(before, after)
    down, up = before // divisor, after // divisor
    cutoff = 0.95 * min(1.0, up / down)  # as a fraction of half the old rate
    reach = math.ceil(crossings / cutoff)
    accepted = f"of a simpler ratio to {after:,} Hz"
    require(up * (down + 2 * reach) <= MOST_TAPS, "the sample rate", before, accepted)
    # Each group of `down` old samples becomes `up` new ones, each with a filter of its own.
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

    Let x be log10 of the mel bands of the Fourier power, with a lower limit of the clip's maximum
    minus 8; the features are (x + 4) / 4. Padding the samples of a clip changes its features, so
    treat all clips alike: either pad their samples to one length, as Whisper does to 30 seconds, or
    compute the features of each clip separately and pad these.

    Args:
        samples: Samples (N,) or (B, N) in [-1, 1], N more than half a window.
        sample_rate: Rate in Hz.
        num_mels: Number of mel bands from 0 Hz to half the rate. If there are too many, some of
            the lowest contain no Fourier frequency and are empty: with the default window, more
            than 116 at 8 kHz.
        window, hop: Length of a frame and distance between frames, in seconds.

    Returns:
        A float32 tensor (N // hop, num_mels) or (B, N // hop, num_mels), where hop is in samples.

    Raises:
        ValueError: If there are too few samples.
    """
    # NumPy arrays are cut into frames with NumPy: JAX would compile the cutting for each length.
    is_numpy = isinstance(samples, np.ndarray)
    samples = (
        samples.astype("float32") if is_numpy else ops.convert_to_tensor(samples, dtype="float32")
    )
    size, step = round(window * sample_rate), round(hop * sample_rate)
    length, half = samples.shape[-1], size // 2
    require(length > half, "samples", length, f"more than {half}, half a window")
    edges = [(0, 0)] * (len(samples.shape) - 1)
    on = np if is_numpy else ops
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
    """Return the center frequency in Hz of each filter of `mel_filters`: (mels,)."""
    return _mel_corners(sample_rate, num_mels)[1:-1]


def _mel_corners(sample_rate, num_mels):
    high = sample_rate / 2
    octave = math.log(6.4) / 27  # log frequency ratio per mel above 1,000 Hz
    most = 15 + math.log(high / 1000) / octave if high > 1000 else high * 3 / 200
    mels = np.linspace(0, most, num_mels + 2)
    return np.where(mels < 15, mels * 200 / 3, 1000 * np.exp(octave * (mels - 15)))
