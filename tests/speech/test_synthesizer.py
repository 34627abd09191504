"""From text to sound: alone and in a batch, saved and loaded; what is refused."""

import json
import warnings

import numpy as np
import pytest

from keras_transformer import Synthesizer, Transcriber
from keras_transformer.models import TextToSpeech, TextToSpeechConfig
from keras_transformer.text.text_tokenizer import TextTokenizer

TEXTS = ["abc", "ca", "a"]
SPEAKERS = ["ann", "bob"]


@pytest.fixture(scope="module")
def synthesizer(randomize):
    tokenizer = TextTokenizer.train(["abc"], "characters")
    size = tokenizer.vocab_size
    config = TextToSpeechConfig(
        size + 3, num_mels=8, frames_per_step=2, d_model=8, num_encoder_layers=1,
        num_decoder_layers=1, num_heads=2, prenet_size=8, max_length=5, max_frames=12,
        pad_id=size + 2,
    )  # fmt: skip
    model = randomize(TextToSpeech(config), scale=2.0)
    return Synthesizer(model, tokenizer, 8000, SPEAKERS)


def features(synthesizer, texts, **options):
    with warnings.catch_warnings():  # random models do not know when to stop
        warnings.filterwarnings("ignore", message=".* is cut after 0.12 s")
        return synthesizer.features(texts, **options)


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_text_sounds_the_same_in_any_batch_and_after_saving(synthesizer, tmp_path):
    together = features(synthesizer, TEXTS, speaker="bob")
    for text, one in zip(TEXTS, together, strict=True):
        assert one.shape[1] == 8 and 2 <= len(one) <= 12
        (alone,) = features(synthesizer, [text], speaker="bob")
        np.testing.assert_allclose(alone, one, atol=1e-5)
    first, bob = features(synthesizer, TEXTS[:1])[0], together[0]
    assert len(first) != len(bob) or np.abs(first - bob).max() > 1e-3
    synthesizer.save(tmp_path)
    again = Synthesizer.load(tmp_path)
    assert again.speakers == ("ann", "bob") and again.sample_rate == 8000
    for one, other in zip(features(again, TEXTS, speaker="bob"), together, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    with pytest.raises(ValueError, match="is not a saved transcriber but a synthesizer: use"):
        Transcriber.load(tmp_path)


@pytest.mark.once("checks and NumPy: no tensor differs")
def test_the_sound_is_as_long_as_its_features(synthesizer):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        sounds = synthesizer.speak(TEXTS)
    lengths = [len(x) for x in features(synthesizer, TEXTS)]
    assert [len(x) for x in sounds] == [80 * n for n in lengths]
    assert all(np.abs(x).max() <= 1 for x in sounds)
    cut = [
        f"{text!r} is cut after 0.12 s" for text, n in zip(TEXTS, lengths, strict=True) if n == 12
    ]
    assert [str(x.message) for x in found if "is cut" in str(x.message)] == cut


@pytest.mark.once("checks: no tensor differs")
@pytest.mark.parametrize(
    "texts,options,message",
    [
        ("abc", {}, "texts must be"),
        ([""], {}, "texts must have one or more characters each, got ''"),
        (["abcab"], {}, "texts must have at most 4 characters each, got 5 in 'abcab'"),
        (["a7"], {}, "texts must consist of the characters 'abc', got 'a7'"),
        (["a"], dict(speaker="eve"), r"speaker must be one of \['ann', 'bob'\], got 'eve'"),
        (["a"], dict(batch_size=0), "batch_size must be"),
    ],
)
def test_bad_input(synthesizer, texts, options, message):
    with pytest.raises(ValueError, match=message):
        synthesizer.speak(texts, **options)


@pytest.mark.once("checks and files: no tensor differs")
def test_folders_that_do_not_fit(synthesizer, tmp_path):
    with pytest.raises(ValueError, match="6 pieces besides 9 speakers|4 pieces besides 9 speakers"):
        Synthesizer(synthesizer.model, synthesizer.tokenizer, 8000, ["x"] * 9)
    with pytest.raises(ValueError, match="is not a saved synthesizer: it has no config.json"):
        Synthesizer.load(tmp_path)
    synthesizer.save(tmp_path)
    path = tmp_path / "config.json"
    facts = json.loads(path.read_text())
    for change, message in (
        (dict(speakers=[]), "config.json: speakers must be one or more names, got "),
        (dict(speakers="ann"), "config.json: speakers must be one or more names, got 'ann'"),
        (dict(sample_rate=None), "config.json: sample_rate must be a whole number"),
    ):
        path.write_text(json.dumps(facts | change))
        with pytest.raises(ValueError, match=message):
            Synthesizer.load(tmp_path)
