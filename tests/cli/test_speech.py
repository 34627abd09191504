"""`keras-transformer transcribe` and `speak`: sounds and pipes in, words and sounds out."""

import dataclasses
import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from keras_transformer import Transcriber, cli
from keras_transformer.data.audio import read_wav, sound_chunks, write_wav
from keras_transformer.models import Speech, SpeechConfig, TextToSpeech, TextToSpeechConfig
from keras_transformer.speech.cue_limits import CueLimits
from keras_transformer.speech.cues import cues_of, subtitle_file
from keras_transformer.speech.hearing import Hearing
from keras_transformer.speech.synthesizer import Synthesizer
from keras_transformer.speech.word_times import Word
from keras_transformer.text.text_tokenizer import TextTokenizer

pytestmark = pytest.mark.once("files and pipes: no tensor differs")
SIZES = dict(d_model=8, num_encoder_layers=1, num_decoder_layers=1, num_heads=2)


def run(*arguments, input=None):
    return CliRunner().invoke(cli.app, list(map(str, arguments)), input=input)


@pytest.fixture(scope="module")
def transcriber(randomize, tmp_path_factory):
    """Random, and its folder."""
    tokenizer = TextTokenizer.train(["ab "], "characters")
    size = tokenizer.vocab_size
    ids = dict(pad_id=size, bos_id=size + 1, eos_id=0)
    config = SpeechConfig(size + 2, num_mels=5, max_frames=40, max_length=9, **SIZES, **ids)
    first = dict(suppressed_first=(0, tokenizer.id_of(" ")))  # there is always a word
    hearing = Hearing(8000, pads_clips=False, is_multilingual=False, **first)
    found = Transcriber(randomize(Speech(config), scale=2.0), tokenizer, hearing)
    folder = tmp_path_factory.mktemp("transcriber")
    found.save(folder)
    return found, folder


@pytest.fixture
def sound(tmp_path, rng):
    path = tmp_path / "sound.wav"
    write_wav(path, rng.uniform(-0.5, 0.5, 2000), 8000)
    return path


def words_of(transcriber, path):
    (words,) = transcriber.transcribe_words([path])
    assert words
    return [dataclasses.asdict(x) for x in words]


def test_words_of_files(transcriber, sound):
    transcriber, folder = transcriber
    result = run("transcribe", folder, sound, sound, "--words")
    words = words_of(transcriber, sound)
    text = " ".join(x["word"] for x in words)
    line = {"sound": str(sound), "text": text, "words": words}
    assert [json.loads(x) for x in result.stdout.splitlines()] == [line, line], result.output


@pytest.mark.parametrize("pcm", [None, 8000])
def test_a_pipe(transcriber, sound, pcm):
    transcriber, folder = transcriber
    data, options = sound.read_bytes(), ["-"]
    if pcm:
        data, options = data[44:], ["-", "--pcm", pcm]
    _, chunks = sound_chunks(io.BytesIO(data), pcm)
    words = [dataclasses.asdict(x) for x in transcriber.stream(chunks)]
    result = run("transcribe", folder, *options, "--words", input=data)
    assert [json.loads(x) for x in result.stdout.splitlines()] == words != [], result.output
    plain = run("transcribe", folder, *options, input=data)
    assert plain.stdout == " ".join(x["word"] for x in words) + "\n"


def test_what_is_no_sound(transcriber, sound):
    folder = transcriber[1]
    for arguments, data, message in (
        (["-"], b"ID3 no sound", "the sound must be a WAV file of 16-bit PCM: "),
        (["-"], b"", "the sound must be a WAV file of 16-bit PCM: "),
        (["-", "--pcm", 8000], b"", "the sound must be one or more samples of 16-bit PCM, got"),
        (["-", sound], b"", "SOUND must be - alone, or files, got '- and others'"),
        ([sound, "--pcm", 8000], b"", "--pcm must be given only with - as SOUND, got 8000"),
        ([__file__], b"", "test_speech.py must be a WAV file of 16-bit PCM: "),
    ):
        result = run("transcribe", folder, *arguments, input=data)
        assert result.exit_code == 2 and message in " ".join(result.output.split()), result.output


def test_speak(randomize, tmp_path):
    tokenizer = TextTokenizer.train(["ab"], "characters")
    size = tokenizer.vocab_size
    config = TextToSpeechConfig(
        size + 3, num_mels=8, prenet_size=4, max_length=5, max_frames=9, pad_id=size + 2, **SIZES
    )
    synthesizer = Synthesizer(randomize(TextToSpeech(config)), tokenizer, 8000, ["ann", "bob"])
    synthesizer.save(tmp_path)
    result = run("speak", tmp_path, "ab", "--speaker", "bob", "-o", tmp_path / "out.wav")
    assert result.exit_code == 0, result.output
    samples, rate = read_wav(tmp_path / "out.wav")
    (expected,) = synthesizer.speak(["ab"], speaker="bob")
    assert rate == 8000
    np.testing.assert_allclose(samples, expected, atol=1e-4)
    for arguments, message in (
        (["a7"], "texts must consist of the characters 'ab', got 'a7'"),
        (["a", "--speaker", "eve"], "speaker must be one of ['ann', 'bob'], got 'eve'"),
    ):
        result = run("speak", tmp_path, *arguments, "-o", tmp_path / "none.wav")
        assert result.exit_code == 2 and message in result.output
        assert not (tmp_path / "none.wav").exists()
    info = run("info", tmp_path).output.split()
    assert info[info.index("speakers") :][1:3] == ["['ann',", "'bob']"] and "8000" in info


def test_subtitles_of_a_recording(transcriber, sound, tmp_path, monkeypatch):
    folder, path = transcriber[1], tmp_path / "sound.vtt"
    words = [Word("Yes.", 0.0, 0.1), Word("No.", 0.1, 1.0)]
    monkeypatch.setattr(Transcriber, "transcribe_words", lambda *arguments, **options: [words])
    result = run("subtitles", folder, sound, "--characters", "2", "--lines", "1")
    assert result.stdout == "".join(subtitle_file(cues_of(words, CueLimits(2, 1))))
    assert "2 of 4 cues are shorter than --rate demands" in result.stderr
    assert run("subtitles", folder, sound, "-o", path).exit_code == 0
    assert path.read_text("utf-8") == "".join(subtitle_file(cues_of(words), ".vtt"))
    result = run("subtitles", folder, sound, "-o", "sound.txt")
    assert result.exit_code == 2 and "output must be a file that ends with" in result.stderr


def test_translated_subtitles(transcriber, sound, translator, tmp_path):
    translator.save(tmp_path / "translator")
    result = run("subtitles", transcriber[1], sound, "--translator", tmp_path / "translator")
    assert result.exit_code == 0 and result.stdout.startswith("1\n00:00:0")
