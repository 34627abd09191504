"""Conversion of log-mel features to sound, with estimated phases (Griffin and Lim 1984)."""

from __future__ import annotations

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.data.audio import mel_filters


def griffin_lim(
    magnitudes: np.ndarray, step: int, iterations: int = 60, seed: int = 0
) -> np.ndarray:
    """Return a signal whose short-time Fourier transform has approximately these magnitudes.

    Each iteration computes the signal that is nearest to the transform by least squares (Griffin
    and Lim 1984, equation 6), and replaces the phases of the transform by those of this signal.

    Args:
        magnitudes: Magnitudes (F, 1 + size // 2) of the transforms of F frames of `size` samples
            with a Hann window; `size` is even.
        step: Distance between frames in samples, at most half of `size`.
        iterations: Number of iterations, at least 1.
        seed: Seed of the first phases.

    Returns:
        Samples ((F - 1) * step + size,); frame i begins at sample i * step.

    Raises:
        ValueError: If an argument is out of range.
    """
    has_frames = magnitudes.ndim == 2 and len(magnitudes) > 0
    require(has_frames, "magnitudes", magnitudes.shape, "an array (frames, frequencies), not empty")
    size = 2 * (magnitudes.shape[1] - 1)
    require_whole("step", step, 1)
    require(step <= size // 2, "step", step, f"at most {size // 2}, half a frame")
    require_whole("iterations", iterations, 1)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    places = np.arange(len(magnitudes))[:, None] * step + np.arange(size)
    length = places[-1, -1] + 1
    weight = np.bincount(places.ravel(), np.tile(window**2, len(magnitudes)), length)
    weight = np.maximum(weight, 1e-3)  # the window is almost zero at both ends
    angles = np.random.default_rng(seed).uniform(-np.pi, np.pi, magnitudes.shape)
    spectrum = magnitudes * np.exp(1j * angles)
    for _ in range(iterations):
        frames = np.fft.irfft(spectrum, size) * window
        signal = np.bincount(places.ravel(), frames.ravel(), length) / weight
        estimate = np.fft.rfft(signal[places] * window)
        spectrum = magnitudes * estimate / np.maximum(np.abs(estimate), 1e-12)
    return signal


def from_log_mel(
    features: np.ndarray,
    sample_rate: int = 16_000,
    window: float = 0.025,
    hop: float = 0.01,
    iterations: int = 60,
) -> np.ndarray:
    """Return samples whose `log_mel` is approximately `features`.

    Multiplicative updates (Lee and Seung 1999) find a non-negative power at each frequency that
    explains the mel bands; `griffin_lim` estimates the phases.

    Args:
        features: (F, mels), from `log_mel` or a model.
        sample_rate: Rate in Hz.
        window, hop: Length of a frame and distance between frames in seconds, as in `log_mel`.
        iterations: Iterations of `griffin_lim`.

    Returns:
        Samples (F * hop,) float32 in [-1, 1], where hop is in samples.

    Raises:
        ValueError: If features have another shape or are not finite, or an argument is out of
            range.
    """
    features = np.asarray(features, "float64")
    has_frames = features.ndim == 2 and features.size > 0
    require(has_frames, "features", features.shape, "an array (frames, mels), not empty")
    require(bool(np.isfinite(features).all()), "features", "NaN or infinity", "finite numbers")
    size, step = round(window * sample_rate), round(hop * sample_rate)
    mels = 10.0 ** (4 * np.minimum(features, 2.0) - 4)  # 2: no clip in [-1, 1] at 16 kHz has more
    filters = mel_filters(sample_rate, size, features.shape[1]).astype("float64")
    power = mels @ filters.T + 1e-12
    for _ in range(50):
        power *= (mels @ filters.T) / (power @ filters @ filters.T + 1e-12)
    signal = griffin_lim(np.sqrt(power), step, iterations)
    signal = np.pad(signal[size // 2 :], (0, step))[: len(features) * step]
    return np.clip(signal, -1, 1).astype("float32")
