"""From sound to text: the tokens that `transformers` generates, in any batch, at any length."""

import dataclasses
import json
import shutil
import wave

import numpy as np
import pytest
import torch
import transformers
from transformers.models.whisper import generation_whisper
from typer.testing import CliRunner

from keras_transformer import CausalLM, Transcriber, cli, load_pretrained
from keras_transformer.backend import BACKEND
from keras_transformer.models import Speech, SpeechConfig
from keras_transformer.running.batches import until_end
from keras_transformer.speech.hearing import Hearing
from keras_transformer.speech.word_times import words_of
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.backends import cases

LONGEST = 24 * 160  # samples


@pytest.fixture(scope="module")
def folder(whisper_folder, tmp_path_factory):
    return whisper_folder(tmp_path_factory.mktemp("whisper"))


@pytest.fixture(scope="module")
def transcriber(folder):
    return load_pretrained(folder)


def sounds(*lengths):
    generator = np.random.default_rng(0)
    return [(0.1 * generator.standard_normal(n)).astype("float32") for n in lengths]


def expected(folder, transcriber, clips, **options):
    theirs = transformers.WhisperForConditionalGeneration.from_pretrained(folder).eval()
    features = np.stack([transcriber._features(clip) for clip in clips])
    found = theirs.generate(
        torch.tensor(features).transpose(1, 2), do_sample=False, **options
    ).tolist()
    end = theirs.config.eos_token_id
    texts = [row[4:] if row[0] == theirs.config.decoder_start_token_id else row for row in found]
    return [text[: text.index(end)] if end in text else text for text in texts]


@pytest.mark.parametrize(
    "language,task", cases([("de", "translate"), (None, "transcribe")], (None, "transcribe"))
)
def test_the_tokens_of_transformers(folder, transcriber, language, task):
    clips = sounds(LONGEST, 900, 2500)
    options = dict(language=language, task=task, max_new_tokens=9)
    found = transcriber.transcribe_ids(clips, **options, batch_size=4)
    assert found == expected(folder, transcriber, clips, **options)
    assert len(set(map(tuple, found))) == 3


@pytest.mark.skipif(BACKEND != "torch", reason="the search is the same: PyTorch alone saves time")
def test_an_older_folder_suppresses_the_tokens_in_its_config(folder, transcriber, tmp_path):
    """Without `generation_config.json`, as whisper-tiny.en was published first."""
    copied = shutil.copytree(folder, tmp_path / "copy")
    facts = json.loads((copied / "generation_config.json").read_text())
    (copied / "generation_config.json").unlink()
    moved = {name: facts[name] for name in ("suppress_tokens", "begin_suppress_tokens")}
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps(config | moved))
    clips, options = sounds(LONGEST, 900), dict(language="de", max_new_tokens=9)
    found = load_pretrained(copied)
    assert found.hearing.suppressed_first == tuple(facts["begin_suppress_tokens"])
    assert found.transcribe_ids(clips, **options) == transcriber.transcribe_ids(clips, **options)


@pytest.mark.skipif(BACKEND != "torch", reason="the search is the same: PyTorch alone saves time")
def test_times_are_no_part_of_a_text(folder, monkeypatch):
    clips, options = sounds(LONGEST), dict(language="de", max_new_tokens=9)
    transcriber = load_pretrained(folder)
    ids = transcriber.transcribe_ids(clips, **options)[0]
    pieces = {piece: i for piece, i in transcriber.tokenizer.pieces().items() if i != ids[0]}
    pieces |= {"<|1.20|>": ids[0]}
    monkeypatch.setattr(transcriber.tokenizer, "pieces", lambda: pieces)
    left = transcriber.transcribe_ids(clips, **options)[0]
    assert left == [one for one in ids if one != ids[0]] != ids


@pytest.mark.skipif(BACKEND != "torch", reason="the search is the same: PyTorch alone saves time")
def test_the_language_of_the_folder(transcriber, monkeypatch):
    sound = np.sin(np.arange(3000) / 9).astype("float32")
    expected = transcriber.transcribe([sound], language="de")
    chosen = dataclasses.replace(transcriber.hearing, language="de")
    monkeypatch.setattr(transcriber, "hearing", chosen)
    monkeypatch.setattr(transcriber, "_likeliest", None)
    assert transcriber.transcribe([sound]) == expected


@pytest.mark.once("ends are searched under each in tests/decoding")
def test_any_of_several_ends_a_text(folder, transcriber, tmp_path):
    clips, options = sounds(LONGEST, 900, 2500), dict(language="de", max_new_tokens=9)
    longer = transcriber.transcribe_ids(clips, **options)
    end = longer[1][2]
    copied = shutil.copytree(folder, tmp_path / "copy")
    facts = json.loads((copied / "generation_config.json").read_text())
    facts["eos_token_id"] = [facts["eos_token_id"], end]
    (copied / "generation_config.json").write_text(json.dumps(facts))
    found = load_pretrained(copied).transcribe_ids(clips, **options)
    assert found == [until_end(ids, [end]) for ids in longer] != longer


@pytest.mark.once("samples, files and texts: no tensor differs")
def test_files_long_sounds_and_other_rates(transcriber, tmp_path):
    options = dict(language="en", max_new_tokens=4)
    (long,) = sounds(3 * LONGEST)
    quiet = LONGEST - 200
    long[quiet - 80 : quiet + 80] = 0  # where it is to be cut
    (parts,) = transcriber._parts([long], None)
    assert abs(len(parts[0]) - quiet) < 80 and sum(map(len, parts)) == len(long)
    assert max(map(len, parts)) <= LONGEST
    texts = transcriber.transcribe(parts, **options)
    (found,) = transcriber.transcribe([long], **options)
    assert found == " ".join(texts).strip()
    path = tmp_path / "sound.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1), file.setsampwidth(2), file.setframerate(8000)
        file.writeframes((long[:1500] * 32768).astype("<i2").tobytes())
    samples = np.frombuffer(path.read_bytes()[44:], "<i2").astype("float32") / 32768
    alike = transcriber.transcribe([path, samples], sample_rate=8000, **options)
    assert alike[0] == alike[1]
    transcriber.save(tmp_path / "saved")
    arguments = ["transcribe", str(tmp_path / "saved"), str(path), str(path), "--language", "en"]
    result = CliRunner().invoke(cli.app, arguments)
    (text,) = transcriber.transcribe([path], language="en")
    line = text.replace("\r", " ").replace("\n", " ")
    assert result.stdout == f"{line}\n{line}\n", result.output


def expected_starts(folder, transcriber, clip, ids, heads):
    """The start of each token by the attention and the functions of `transformers`."""
    theirs = transformers.WhisperForConditionalGeneration.from_pretrained(
        folder, attn_implementation="eager"
    ).eval()
    first = transcriber.first_ids("en")
    with torch.no_grad():
        cross = theirs(
            torch.tensor(transcriber._features(clip)).T[None],
            decoder_input_ids=torch.tensor([[*first, *ids]]),
            output_attentions=True,
        ).cross_attentions
    positions = -(-len(clip) // 320)
    weights = torch.stack([cross[i][0, j] for i, j in heads])[:, len(first) - 1 :, :positions]
    weights = weights / weights.sum(-1, keepdim=True)
    weights = (weights - weights.mean(1, keepdim=True)) / weights.std(1, keepdim=True, correction=0)
    score = generation_whisper._median_filter(weights[None], 7)[0].mean(0).double().numpy()
    tokens, places = generation_whisper._dynamic_time_warping(-score)
    return places[np.diff(tokens, prepend=-1).astype(bool)] * 0.02


@pytest.mark.once("the first test transcribes under each")
def test_the_times_of_words(folder, transcriber):
    clips, options = sounds(LONGEST, 2500), dict(language="en", max_new_tokens=9)
    ids = transcriber.transcribe_ids(clips, **options)
    heads = transcriber.hearing.alignment_heads
    assert heads == ((1, 0), (0, 1))  # of generation_config.json
    together = transcriber.transcribe_words(clips, **options)
    for clip, own, words in zip(clips, ids, together, strict=True):
        starts = expected_starts(folder, transcriber, clip, own, heads)
        starts = np.minimum(starts, len(clip) / 16_000)
        places = words_of(transcriber.tokenizer, own)
        assert [word.word for word in words] == [word for word, *_ in places] != []
        for word, (_, first, end) in zip(words, places, strict=True):
            np.testing.assert_allclose([word.start, word.end], starts[[first, end]], atol=1e-3)


@pytest.mark.skipif(BACKEND != "torch", reason="sounds and lists: PyTorch alone saves time")
def test_times_go_on_in_the_next_part_and_in_a_stream(transcriber):
    options = dict(language="en", max_new_tokens=4)
    (long,) = sounds(2 * LONGEST)
    ((first, *rest),) = transcriber._parts([long], None)
    (words,) = transcriber.transcribe_words([long], **options)
    begin, expected_words = 0.0, []
    for part in (first, *rest):
        for word in transcriber.transcribe_words([part], **options)[0]:
            expected_words.append((word.word, round(word.start + begin, 3)))
        begin += len(part) / 16_000
    assert [(word.word, pytest.approx(word.start, abs=2e-3)) for word in words] == expected_words
    # Shorter than the interval: one transcription, of the whole.
    chunks = [first[:300], first[300:500], first[500:1500]]
    streamed = list(transcriber.stream(chunks, interval=0.1, **options))
    assert streamed == transcriber.transcribe_words([first[:1500]], **options)[0] != []
    with pytest.raises(ValueError, match="interval must be above 0 and at most 0.12, half the"):
        list(transcriber.stream(chunks, interval=0.5))


@pytest.mark.once("made of parts that are tested under each backend")
def test_clips_of_their_own_length(randomize):
    """Models of `training.speech_recognition`: padding changes nothing."""
    tokenizer = TextTokenizer.train(["abc"], "characters")
    size = tokenizer.vocab_size
    config = SpeechConfig(
        size + 2, num_mels=5, d_model=8, num_encoder_layers=1, num_decoder_layers=1, num_heads=2,
        max_frames=32, max_length=9, pad_id=size, bos_id=size + 1, eos_id=0,
    )  # fmt: skip
    hearing = Hearing(8000, pads_clips=False, is_multilingual=False)
    transcriber = Transcriber(randomize(Speech(config), scale=2.0), tokenizer, hearing)
    clips = sounds(2400, 1300)
    together = transcriber.transcribe(clips)
    assert together == [transcriber.transcribe([clip])[0] for clip in clips]
    assert transcriber.languages == {} and any(together)
    words = transcriber.transcribe_words(clips)
    for own, text, clip in zip(words, together, clips, strict=True):
        assert [x.word for x in own] == text.split()
        assert all(0 <= x.start <= x.end <= len(clip) / 8000 for x in own)


@pytest.mark.once("samples, files and texts: no tensor differs")
def test_bad_input(folder, transcriber, tmp_path):
    (sound,) = sounds(900)
    for options, message in (
        (dict(language="fr"), r"language must be None or one of \['de', 'en'\], got 'fr'"),
        (dict(task="sing"), "task must be one of .*, got 'sing'"),
        (dict(beam_size=0), "beam_size must be"),
        (dict(max_new_tokens=0), "max_new_tokens must be"),
    ):
        with pytest.raises(ValueError, match=message):
            transcriber.transcribe([sound], **options)
    with pytest.raises(ValueError, match=r"samples \(N,\) of floats, got \(2, 9\) of float64"):
        transcriber.transcribe([np.zeros((2, 9))])
    with pytest.raises(ValueError, match="a Hugging Face checkpoint of type whisper: `keras-"):
        Transcriber.load(folder)
    for one in ("sound.wav", sound):
        with pytest.raises(ValueError, match="sounds must be a sequence of sounds, got one: "):
            transcriber.transcribe(one)
    with pytest.raises(ValueError, match="sample_rate must be a whole number .*, got 0"):
        transcriber.transcribe([sound], sample_rate=0)
    with pytest.raises(ValueError, match="is not a saved language model but a transcriber: use T"):
        transcriber.save(tmp_path)
        CausalLM.load(tmp_path)
