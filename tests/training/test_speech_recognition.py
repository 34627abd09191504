"""Runs of image classification, speech recognition and synthesis, from files to a folder."""

import gzip
import io
import tarfile
import wave

import numpy as np
import pytest

from keras_transformer import ImageClassifier, Synthesizer, Transcriber
from keras_transformer.data.images import read_idx
from keras_transformer.evaluation.assess import read_metrics
from keras_transformer.speech.word_times import Word
from tests.backends import BACKEND
from training import image_classification, speech_recognition, speech_synthesis


def write_digits(folder, rng):
    folder.mkdir()
    for part, count in (("train", 40), ("t10k", 12)):
        labels = rng.integers(0, 10, count).astype("uint8")
        images = rng.integers(0, 256, (count, 28, 28)).astype("uint8")
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            data = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
            path = folder / f"{part}-{kind}-ubyte.gz"
            path.write_bytes(gzip.compress(data + array.tobytes()))


def write_clips(folder, rng):
    folder.mkdir()
    with tarfile.open(folder / "recordings.tar.gz", "w:gz") as archive:
        for name in ("0_ann_0", "7_ann_5", "0_bob_4", "7_bob_9", "9_bob_10"):
            file = io.BytesIO()
            with wave.open(file, "wb") as sound:
                sound.setparams((1, 2, 8000, 0, "NONE", ""))
                sound.writeframes(rng.integers(-9999, 9999, 2000).astype("<i2").tobytes())
            member = tarfile.TarInfo(f"recordings/{name}.wav")
            member.size = len(file.getvalue())
            archive.addfile(member, io.BytesIO(file.getvalue()))


def test_images(rng, tmp_path):
    write_digits(tmp_path / "mnist", rng)
    options = dict(data_folder=tmp_path, output=tmp_path / "run", epochs=1, batch_size=8)
    image_classification.train(**options, patch_size=14, d_model=8, num_layers=1, num_heads=2)
    metrics = read_metrics(tmp_path / "run")
    assert 0 <= metrics["test"]["accuracy"] <= 1 and metrics["training"]["epochs"] == 1
    classifier = ImageClassifier.load(tmp_path / "run")
    images, labels = (
        read_idx(tmp_path / "mnist" / f"t10k-{kind}-ubyte.gz")
        for kind in ("images-idx3", "labels-idx1")
    )
    found = classifier.classify(list(images))
    right = [own[0].label == str(x) for own, x in zip(found, labels, strict=True)]
    assert np.mean(right) == pytest.approx(metrics["test"]["accuracy"])


def test_unknown_images():
    with pytest.raises(ValueError, match=r"dataset must be one of \('cifar10', 'mnist'\), got 'x'"):
        image_classification.train("x")


@pytest.mark.parametrize("held_out,clips", [(None, 2), ("bob", 3)])
def test_speech(rng, tmp_path, held_out, clips):
    write_clips(tmp_path / "fsdd", rng)
    options = dict(data_folder=tmp_path, output=tmp_path / "run", epochs=1, batch_size=2)
    speech_recognition.train(**options, held_out=held_out, d_model=8, num_layers=1)
    metrics = read_metrics(tmp_path / "run")
    assert metrics["test"]["clips"] == clips
    transcriber = Transcriber.load(tmp_path / "run")
    assert transcriber.model.config.num_mels == 40
    with tarfile.open(tmp_path / "fsdd" / "recordings.tar.gz") as archive:
        sound = archive.extractfile("recordings/0_ann_0.wav").read()
    assert len(transcriber.transcribe([io.BytesIO(sound)])) == 1


@pytest.mark.skipif(BACKEND != "torch", reason="batches and scores: PyTorch alone saves time")
def test_speech_of_several_words(rng, tmp_path, monkeypatch):
    write_clips(tmp_path / "fsdd", rng)
    options = dict(data_folder=tmp_path, output=tmp_path / "run", epochs=1, batch_size=2)
    # As if it had heard all words right: then their times are measured.
    monkeypatch.setattr(
        speech_recognition.Transcriber, "transcribe", lambda self, sounds, **_: Texts()
    )
    places = [Word("zero", 0.0, 0.25)]
    monkeypatch.setattr(
        speech_recognition.Transcriber,
        "transcribe_words",
        lambda self, sounds, **_: [places * (len(x) // 2000) for x in sounds],
    )
    speech_recognition.train(**options, words=2, d_model=8, num_layers=1)
    metrics = read_metrics(tmp_path / "run")
    assert metrics["training"]["words"] == 2 and metrics["test"]["accuracy"] == 1
    assert 0 <= metrics["test"]["seconds_off"] < 0.4


class Texts:
    """Texts that equal every text."""

    def __getitem__(self, i):
        return self

    def __eq__(self, other):
        return True


@pytest.mark.skipif(BACKEND != "torch", reason="the models and the loops have their own tests")
def test_synthesis(rng, tmp_path, capsys):
    write_clips(tmp_path / "fsdd", rng)
    options = dict(data_folder=tmp_path, epochs=1, batch_size=2, d_model=8, num_layers=1)
    speech_recognition.train(**options, output=tmp_path / "judge")
    judge = tmp_path / "judge"
    speech_synthesis.train(**options, output=tmp_path / "run", recognizer=judge)
    scores = read_metrics(tmp_path / "run")["test"]
    assert scores.keys() == {"real", "griffin_lim", "synthesized"}
    assert all(0 <= x <= 1 for x in scores.values())
    assert "synthesized: " in capsys.readouterr().out
    assert Synthesizer.load(tmp_path / "run").speakers == ("ann", "bob")
    with pytest.raises(ValueError, match="batch_size must be .* from 1 to 3, .*, got 9"):
        speech_synthesis.train(**options | dict(batch_size=9), output=tmp_path / "other")


def test_unknown_speaker(rng, tmp_path):
    write_clips(tmp_path / "fsdd", rng)
    with pytest.raises(ValueError, match=r"held_out must be one of \['ann', 'bob'\], got 'eve'"):
        speech_recognition.train(tmp_path, tmp_path / "run", "eve")


def test_images_that_do_not_fit(rng, tmp_path):
    write_digits(tmp_path / "mnist", rng)
    options = dict(data_folder=tmp_path, output=tmp_path / "run", patch_size=14)
    with pytest.raises(ValueError, match="batch_size must be at most 40, .*, got 64"):
        image_classification.train(**options)
    data = bytes([0, 0, 8, 3]) + np.array((12, 28, 24), ">i4").tobytes() + bytes(12 * 28 * 24)
    (tmp_path / "mnist" / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(data))
    with pytest.raises(ValueError, match=r"test image must be \(28, 28, 1\), got \(28, 24, 1\)"):
        image_classification.train(**options)


def test_recordings_that_do_not_fit(rng, tmp_path):
    write_clips(tmp_path / "fsdd", rng)
    with pytest.raises(ValueError, match="batch_size must be .* from 1 to 3, .*, got 32"):
        speech_recognition.train(tmp_path, tmp_path / "run")
    path = tmp_path / "fsdd" / "recordings.tar.gz"
    for name, message in (
        ("seven_ann_5.wav", "names in .* must be of the form 7_theo_12.wav, got 'seven_ann_5.wav'"),
        ("7_ann_5.wav", "recordings.tar.gz, 7_ann_5.wav: the file must be a WAV"),
        ("notes.txt", "clips for testing in .* must be one or more, got 0"),
    ):
        with tarfile.open(path, "w:gz") as archive:
            archive.addfile(tarfile.TarInfo(name))
        with pytest.raises(ValueError, match=message):
            speech_recognition.train(tmp_path, tmp_path / "run")
    path.write_bytes(b"no archive")
    with pytest.raises(ValueError, match="recordings.tar.gz must be a complete tar file"):
        speech_recognition.train(tmp_path, tmp_path / "run")
