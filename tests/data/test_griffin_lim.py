"""Sound from its features: a chord comes back, and what is refused."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.data.audio import log_mel
from keras_transformer.data.griffin_lim import from_log_mel, griffin_lim

pytestmark = pytest.mark.once("NumPy alone")
RATE = 8000


def magnitudes(samples, size, step):
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    starts = range(0, len(samples) - size + 1, step)
    return np.abs(np.stack([np.fft.rfft(samples[i : i + size] * window) for i in starts]))


@pytest.fixture(scope="module")
def chord():
    seconds = np.arange(4000) / RATE
    tones = [np.sin(2 * np.pi * hertz * seconds) for hertz in (300, 750, 1900)]
    return (0.2 * np.sum(tones, axis=0) * np.hanning(4000)).astype("float32")


def test_magnitudes_are_approached(chord):
    wanted = magnitudes(chord, 200, 50)
    errors = []
    for iterations in (1, 10, 100):
        found = griffin_lim(wanted, 50, iterations)
        assert len(found) == 50 * (len(wanted) - 1) + 200
        difference = np.linalg.norm(magnitudes(found, 200, 50) - wanted)
        errors.append(difference / np.linalg.norm(wanted))
    assert errors[0] > errors[1] > errors[2] and errors[2] < 0.25


def test_features_come_back(chord):
    features = ops.convert_to_numpy(log_mel(chord, RATE, 40))
    found = from_log_mel(features, RATE)
    assert found.shape == chord.shape and found.dtype == np.float32
    again = ops.convert_to_numpy(log_mel(found, RATE, 40))
    loud = features > features.max() - 0.5  # within 20 dB
    assert np.abs(again - features)[loud].mean() < 0.05  # 2 dB
    peaks = np.abs(np.fft.rfft(found))
    for hertz in (300, 750, 1900):
        near = peaks[round((hertz - 60) / 2) : round((hertz + 60) / 2)]
        assert near.max() > 10 * np.median(peaks)


def test_bad_input():
    with pytest.raises(ValueError, match=r"features must be an array \(frames, mels\), not empty"):
        from_log_mel(np.zeros((0, 40)), RATE)
    with pytest.raises(ValueError, match="features must be finite numbers, got 'NaN or infinity'"):
        from_log_mel(np.full((3, 40), np.nan), RATE)
    with pytest.raises(ValueError, match="step must be at most 5, half a frame, got 6"):
        griffin_lim(np.ones((3, 6)), 6)
    with pytest.raises(ValueError, match="iterations must be"):
        griffin_lim(np.ones((3, 6)), 5, 0)
    with pytest.raises(ValueError, match=r"magnitudes must be an array .*, got \(6,\)"):
        griffin_lim(np.ones(6), 2)
