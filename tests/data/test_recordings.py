"""Recordings: read, changed, and drawn into batches."""

import io
import itertools
import tarfile
import wave

import numpy as np
import pytest
from keras import ops

from keras_transformer.data.audio import log_mel, mel_middles
from keras_transformer.data.recordings import (
    Augmentation,
    Recording,
    SpeechBatches,
    joined_words,
    read_spoken_digits,
)


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
    with pytest.raises(ValueError, match="names in .*a.tar must be of the form 7_theo_12.wav, got"):
        read_spoken_digits(path)


PLAIN = dict(tempo=0, pitch=0, gain=0, noise=0, hidden=0)


def features_of(samples):
    return ops.convert_to_numpy(log_mel(samples, 8000, 40))


def changed(samples, rng, **changes):
    return Augmentation(**PLAIN | changes)(features_of(samples), mel_middles(8000, 40), rng)


@pytest.fixture
def sound(rng):
    return 0.1 * rng.standard_normal(4000) * np.hanning(4000)


def test_nothing_changes_without_ranges(sound, rng):
    np.testing.assert_allclose(changed(sound, rng), features_of(sound), atol=1e-6)


def test_tempo(sound, rng):
    found = [changed(sound, rng, tempo=0.5) for _ in range(50)]
    lengths = list(map(len, found))
    assert 30 <= min(lengths) < 40 and 62 < max(lengths) <= 82
    middles = [x.mean(axis=1) @ np.arange(len(x)) / x.mean(axis=1).sum() / len(x) for x in found]
    assert max(middles) - min(middles) < 0.03


def test_pitch(rng):
    """A tone's band moves as far as the tone would."""
    seconds, hertz = np.arange(4000) / 8000, mel_middles(8000, 40)
    found = [
        hertz[changed(np.sin(2 * np.pi * 800 * seconds), rng, pitch=0.3)[20].argmax()]
        for _ in range(50)
    ]
    assert 800 * np.exp(-0.35) <= min(found) < 660 and 980 < max(found) <= 800 * np.exp(0.35)


def test_gain(sound, rng):
    """Louder samples shift all bands alike; only tilts make high and low bands differ."""
    ten = features_of(sound * 10**0.5) - features_of(sound)
    np.testing.assert_allclose(ten, 0.25, atol=1e-3)
    change = changed(sound, rng, gain=20) - features_of(sound)
    np.testing.assert_allclose(change, change[:1] + np.zeros_like(change), atol=1e-5)
    steps = np.diff(change[0])
    np.testing.assert_allclose(steps, steps[0], atol=1e-5)
    assert 0 < np.abs(change).max() <= 0.75


def test_noise(sound, rng):
    """It fills the silence, and leaves what is louder."""
    plain, noisy = features_of(sound), changed(sound, rng, noise=1)
    assert (noisy > plain - 1e-6).all() and noisy.min() > plain.max() - 2.2
    assert noisy.max() == pytest.approx(plain.max(), abs=0.1)


def test_hidden_bands(sound, rng):
    plain = features_of(sound)
    gone = [changed(sound, rng, hidden=4) != plain for _ in range(200)]
    assert {int(x.all(axis=0).sum()) for x in gone} == {0, 1, 2, 3, 4}
    assert {int(x.all(axis=1).sum()) for x in gone} == {0, 1, 2, 3, 4}


def of(clips, **changes):
    options = dict(batch_size=2, sample_rate=8000, num_mels=5, pad_id=9, bos_id=8)
    options |= dict(augmentation=Augmentation(**PLAIN))
    return SpeechBatches(clips, [[1, 0], [2, 3, 0], [4, 0]], **options | changes)


@pytest.fixture
def clips(rng):
    return [0.1 * rng.standard_normal(n) for n in (800, 5500, 1700)]


def test_batches(clips):
    """Each clip comes with its own text, in its own length."""
    batches = of(clips)
    assert len(batches) == 1 and batches.max_frames == 128
    inputs, labels = next(iter(batches))
    assert inputs["features"].shape[1] in (64, 128) and inputs["features"].shape[2] == 5
    for features, num_frames, targets, ids in zip(*inputs.values(), labels, strict=True):
        clip = clips[{10: 0, 68: 1, 21: 2}[int(num_frames)]]
        expected = ops.convert_to_numpy(log_mel(clip, 8000, 5))
        np.testing.assert_allclose(features[:num_frames], expected, atol=1e-6)
        assert not features[num_frames:].any()
        assert ids.tolist() == {10: [1, 0, 9], 68: [2, 3, 0], 21: [4, 0, 9]}[int(num_frames)]
        assert targets.tolist() == [8, *ids[:-1]]
    assert len(set(inputs["num_frames"])) == 2


def test_changed_batches(clips):
    """One seed gives the same result, which is never longer than the limit."""
    batches, again = of(clips, augmentation=None), of(clips, augmentation=None)
    assert batches.max_frames == 128
    lengths = set()
    for _, (one, _), (other, _) in zip(range(40), batches, again, strict=False):
        np.testing.assert_array_equal(one["features"], other["features"])
        assert one["features"].shape[1] <= 128
        lengths |= set(map(int, one["num_frames"]))
    assert len(lengths) > 30


def test_bad_input(clips):
    with pytest.raises(
        ValueError, match="batch_size must be a whole number from 1 to 3, .*, got 4"
    ):
        of(clips, batch_size=4)
    with pytest.raises(ValueError, match="ids must be 2, one per clip, got 3"):
        of(clips[:2])
    with pytest.raises(ValueError, match="tempo must be at least 0, got -1"):
        Augmentation(tempo=-1)
    with pytest.raises(ValueError, match="noise must be at most 1, got 2"):
        Augmentation(noise=2)


def test_joined_words_are_where_they_are_said_to_be(rng):
    recordings = [
        Recording(rng.uniform(0.1, 1, 80 + 8 * i).astype("float32"), f"w{i}", "ab"[i % 2], i)
        for i in range(20)
    ]
    by_text = {x.text: x for x in recordings}
    found = joined_words(recordings, 3, rng)
    assert {len(places) for _, places in found} == {1, 2, 3}
    for first, (whole, places) in zip(recordings, found, strict=True):
        words = whole.text.split()
        assert words[0] == first.text and len(words) == len(places)
        assert {by_text[x].speaker for x in words} == {whole.speaker}
        silent = np.ones(len(whole.samples), bool)
        for word, (start, end) in zip(words, places, strict=True):
            part = slice(round(start * 8000), round(end * 8000))
            np.testing.assert_array_equal(whole.samples[part], by_text[word].samples)
            silent[part] = False
        assert places[0][0] == 0 and not whole.samples[silent].any()
        ends = itertools.pairwise(places)
        assert all(-1e-9 <= later[0] - earlier[1] <= 0.2 for earlier, later in ends)
    alone = joined_words(recordings, 1, rng)
    assert [x.text for x, _ in alone] == [x.text for x in recordings]
    for change in (dict(most=0), dict(most=2, pause=-1)):
        with pytest.raises(ValueError, match="most must be|pause must be at least 0"):
            joined_words(recordings, rng=rng, **change)
