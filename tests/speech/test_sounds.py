"""Sounds of any kind and length as samples of one rate, in parts."""

import numpy as np
import pytest

from keras_transformer.data.audio import resample, write_wav
from keras_transformer.speech.sounds import cut, samples_of

pytestmark = pytest.mark.once("NumPy alone")


def test_a_file_and_its_samples(tmp_path, rng):
    samples = np.round(rng.uniform(-0.5, 0.5, 900) * 32768) / 32768
    write_wav(tmp_path / "a.wav", samples, 8000)
    expected = resample(samples, 8000, 16000).astype("float32")
    for sound in (tmp_path / "a.wav", samples):
        found = samples_of(sound, 8000, 16000)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert len(samples_of(samples, None, 16000)) == 900


def test_cut_where_it_is_quiet(rng):
    samples = rng.standard_normal(2500).astype("float32")
    samples[930:960] = 0
    parts = cut(samples, 1000)
    assert 930 <= len(parts[0]) <= 960 and max(map(len, parts)) <= 1000
    np.testing.assert_array_equal(np.concatenate(parts), samples)
    assert [len(x) for x in cut(samples[:1000], 1000)] == [1000]


def test_bad_input(tmp_path):
    write_wav(tmp_path / "a.wav", np.zeros(0), 8000)
    for empty in (np.zeros(0), tmp_path / "a.wav"):
        with pytest.raises(ValueError, match="the sound is empty"):
            samples_of(empty, None, 8000)
    with pytest.raises(ValueError, match="must be finite numbers, got 'NaN or infinity'"):
        samples_of(np.array([0.0, np.nan]), None, 8000)
    with pytest.raises(ValueError, match=r"samples \(N,\) of floats, got \(2, 9\) of float64"):
        samples_of(np.zeros((2, 9)), None, 8000)
    with pytest.raises(ValueError, match="sample_rate must be a whole number .*, got 0"):
        samples_of(np.zeros(9), 0, 8000)
