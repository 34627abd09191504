"""Recordings: read, played at other speeds, and drawn into batches."""

import io
import tarfile
import wave

import numpy as np
import pytest
from keras import ops

from keras_transformer.data.audio import log_mel
from keras_transformer.data.speech import SpeechBatches, at_speeds, read_spoken_digits


def archive(path, names, samples):
    with tarfile.open(path, "w:gz") as file:
        for name in names:
            content = io.BytesIO()
            with wave.open(content, "wb") as sound:
                sound.setparams((1, 2, 8000, 0, "NONE", ""))
                sound.writeframes((samples * 32768).astype("<i2").tobytes())
            member = tarfile.TarInfo(name)
            member.size = len(content.getvalue())
            file.addfile(member, io.BytesIO(content.getvalue()))
    return path


def test_read_digits(tmp_path):
    samples = np.arange(-500, 500) / 32768
    path = archive(
        tmp_path / "a.tar.gz", ["x/7_theo_12.wav", "x/0_eve_3.wav", "notes.txt"], samples
    )
    seven, zero = read_spoken_digits(path)
    assert (seven.text, seven.speaker, seven.take) == ("seven", "theo", 12)
    assert (zero.text, zero.speaker, zero.take) == ("zero", "eve", 3)
    np.testing.assert_allclose(seven.samples, samples, atol=1e-7)
    assert len(read_spoken_digits(path, 16000)[0].samples) == 2000


def test_other_names_are_refused(tmp_path):
    path = archive(tmp_path / "a.tar", ["seven_theo_12.wav"], np.zeros(300))
    with pytest.raises(ValueError, match="names in .*a.tar must be such as 7_theo_12.wav, got"):
        read_spoken_digits(path)


@pytest.mark.parametrize("speed", [(4, 5), (11, 10)])
def test_a_faster_tone_is_higher(speed):
    seconds = np.arange(8000) / 8000
    (found,) = at_speeds(np.sin(2 * np.pi * 400 * seconds), [speed])
    ratio = speed[0] / speed[1]
    assert len(found) == np.ceil(8000 / ratio)
    assert np.abs(np.fft.rfft(found)).argmax() / len(found) * 8000 == pytest.approx(
        400 * ratio, 2e-3
    )


def of(clips, **changes):
    options = dict(batch_size=2, sample_rate=8000, num_mels=5, pad_id=9, bos_id=8, gain=0, hidden=0)
    return SpeechBatches(clips, [[1, 0], [2, 3, 0], [4, 0]], **options | changes)


@pytest.fixture
def clips(rng):
    return [[0.1 * rng.standard_normal(n)] for n in (800, 5500, 1700)]


def test_batches(clips):
    """Each clip comes with its own text, in its own length."""
    batches = of(clips)
    assert len(batches) == 1 and batches.max_frames == 128
    (inputs, labels), seen = next(iter(batches)), set()
    assert inputs["features"].shape[1] in (64, 128) and inputs["features"].shape[2] == 5
    for features, num_frames, targets, ids in zip(*inputs.values(), labels, strict=True):
        (clip,) = clips[{10: 0, 68: 1, 21: 2}[int(num_frames)]]
        expected = ops.convert_to_numpy(log_mel(clip, 8000, 5))
        np.testing.assert_allclose(features[:num_frames], expected, atol=1e-6)
        assert not features[num_frames:].any()
        assert ids.tolist() == {10: [1, 0, 9], 68: [2, 3, 0], 21: [4, 0, 9]}[int(num_frames)]
        assert targets.tolist() == [8, *ids[:-1]]
        seen.add(int(num_frames))
    assert len(seen) == 2


def test_louder_clips_are_higher(clips):
    (plain, _), (louder, _) = next(iter(of(clips))), next(iter(of(clips, gain=20)))
    n = plain["num_frames"].min()
    np.testing.assert_array_equal(plain["num_frames"], louder["num_frames"])
    change = (louder["features"] - plain["features"])[:, :n]
    np.testing.assert_allclose(change, change[:, :1, :1] + np.zeros_like(change), atol=1e-5)
    assert 0 < np.abs(change).max() <= 0.5
    ten = ops.convert_to_numpy(log_mel(clips[0][0] * 10**0.5, 8000, 5))
    np.testing.assert_allclose(
        ten - ops.convert_to_numpy(log_mel(clips[0][0], 8000, 5)), 0.25, 1e-4
    )


def test_forms_and_bands_are_drawn(clips):
    forms = [[x, *at_speeds(x)] for (x,) in clips]
    batches = iter(of(forms, hidden=4))
    inputs = [next(batches)[0] for _ in range(40)]
    assert len({int(n) for x in inputs for n in x["num_frames"]}) > 10
    hidden = [(row[: int(n)] == 0).all(axis=0).sum() for x in inputs
              for row, n in zip(x["features"], x["num_frames"], strict=True)]  # fmt: skip
    assert set(hidden) == {0, 1, 2, 3, 4}


def test_bad_input(clips):
    with pytest.raises(
        ValueError, match="batch_size must be a whole number from 1 to 3, .*, got 4"
    ):
        of(clips, batch_size=4)
    with pytest.raises(ValueError, match="ids must be 2, as clips, got 3"):
        of(clips[:2])
