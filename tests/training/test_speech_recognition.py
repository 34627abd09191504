"""Runs of speech recognition, from clips to a folder."""

import io
import tarfile

import pytest

from keras_transformer import Transcriber
from keras_transformer.evaluation.assess import read_metrics
from keras_transformer.speech.word_times import Word
from keras_transformer.training import speech_recognition
from tests.backends import BACKEND
from tests.training.senses import write_clips


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


def test_unknown_speaker(rng, tmp_path):
    write_clips(tmp_path / "fsdd", rng)
    with pytest.raises(ValueError, match=r"held_out must be one of \['ann', 'bob'\], got 'eve'"):
        speech_recognition.train("eve", output=tmp_path / "run", data_folder=tmp_path)


def test_recordings_that_do_not_fit(rng, tmp_path):
    write_clips(tmp_path / "fsdd", rng)
    folders = dict(data_folder=tmp_path, output=tmp_path / "run")
    with pytest.raises(ValueError, match="batch_size must be .* from 1 to 3, .*, got 32"):
        speech_recognition.train(**folders)
    path = tmp_path / "fsdd" / "recordings.tar.gz"
    for name, message in (
        ("seven_ann_5.wav", "names in .* must be of the form 7_theo_12.wav, got 'seven_ann_5.wav'"),
        ("7_ann_5.wav", "recordings.tar.gz, 7_ann_5.wav: the file must be a WAV"),
        ("notes.txt", "clips for testing in .* must be one or more, got 0"),
    ):
        with tarfile.open(path, "w:gz") as archive:
            archive.addfile(tarfile.TarInfo(name))
        with pytest.raises(ValueError, match=message):
            speech_recognition.train(**folders)
    path.write_bytes(b"no archive")
    with pytest.raises(ValueError, match="recordings.tar.gz must be a complete tar file"):
        speech_recognition.train(**folders)
