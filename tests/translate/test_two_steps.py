"""Translation in two steps, for pairs that a model of many languages was not trained in."""

import json

import pytest

from keras_transformer.analysis.alignment import align, attention
from keras_transformer.evaluation.assess import assess
from keras_transformer.serving.catalogue import Catalogue
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.text.glossary import Glossary
from keras_transformer.translate.translator import Translator, middle_of
from tests.small_translator import SHORT, TEXTS, make

CODES = ("en", "de", "fr", "it")
DIRECTIONS = [("en", "de"), ("de", "en"), ("en", "fr"), ("fr", "en"), ("en", "it")]


@pytest.fixture(scope="module")
def many():
    """A translator of four languages; no direction leads from Italian."""
    options = dict(vocab_size=72, byte_fallback=False)
    sides = dict(source_languages=CODES, target_languages=CODES)
    tokenizer = SentencePieceTokenizer.train(TEXTS, TEXTS, **options, **sides)
    model = make(SentencePieceTokenizer(tokenizer.source_model)).model
    return Translator(model, tokenizer, directions=DIRECTIONS)


def test_the_second_step_reads_what_the_first_writes(many):
    english = many.between("de", "en").translate(TEXTS, beam_size=2, **SHORT)
    expected = many.between("en", "fr").nbest(english, beam_size=2, **SHORT)
    both = many.between("de", "fr")
    assert (both.middle, both.source_language, both.target_language) == ("en", "de", "fr")
    assert len(set(english)) > 2 and english != TEXTS
    assert both.nbest(TEXTS, beam_size=2, **SHORT) == expected
    first = both.translate(TEXTS[:2], beam_size=2, prefixes=["one", ""], **SHORT)
    assert first[0].startswith("one") and first[1] == expected[1][0].text
    samples = many.between("fr", "de").sample(TEXTS, seed=1, **SHORT)
    assert samples == many.between("fr", "de").sample(TEXTS, seed=1, **SHORT)


@pytest.mark.once("languages, files and errors")
def test_a_saved_translator_knows_its_directions(many, tmp_path):
    many.save(tmp_path)
    loaded = Translator.load(tmp_path, source_language="fr", target_language="de")
    assert loaded.middle == "en" and loaded.directions == tuple(DIRECTIONS)
    expected = many.between("fr", "de").translate(TEXTS, **SHORT)
    assert loaded.translate(TEXTS, **SHORT) == expected
    catalogue = Catalogue.load([tmp_path], **SHORT)
    assert catalogue.targets("de") == ["en", "fr", "it"] and "it" not in catalogue.sources
    assert len(catalogue.route("de", "fr")) == 2 and len(catalogue.route("fr", "en")) == 1
    path = tmp_path / "config.json"
    for wrong in ("en-de", [["en"]], [["en", 1]], [[["en"], "de"]]):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"directions": wrong}))
        with pytest.raises(ValueError, match='"directions" in .* must be a list of pairs of lang'):
            Translator.load(tmp_path)


@pytest.mark.once("languages, files and errors")
def test_two_steps_have_no_probability(many):
    both = many.between("de", "fr")
    message = "must be one of en-de, .* here; de-fr is translated in two steps, through en"
    for call in (both.require_direct, lambda: both.score(["one"], ["two"])):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match=message):
        align(both, ["one"], ["two"])
    with pytest.raises(ValueError, match=message):
        attention(both, "one", "two")
    with pytest.raises(ValueError, match="constraint must be left out for a pair that is transl"):
        both.translate(["one"], constraint=Glossary({"one": ["two"]}))
    metrics = assess(both, [("one two", "two"), ("three", "six")], beam_size=1, **SHORT)
    assert metrics["perplexity"] is None and metrics["bleu"] >= 0
    assert many.between("de", "en").require_direct().score(["one"], ["two"])


@pytest.mark.once("languages, files and errors")
@pytest.mark.parametrize("wrong", [["en-de"], [("en",)], "de", [1]])
def test_directions_are_pairs(many, wrong):
    with pytest.raises(ValueError, match="directions must be pairs of source and target language"):
        Translator(many.model, many.tokenizer, directions=wrong)


@pytest.mark.once("languages")
def test_the_language_between():
    assert middle_of(DIRECTIONS, "de", "fr") == "en" and middle_of(DIRECTIONS, "fr", "it") == "en"
    for pair in (("en", "de"), ("it", "de"), ("de", "de"), (None, "fr"), ("de", None)):
        assert middle_of(DIRECTIONS, *pair) is None
    assert middle_of((), "de", "fr") is None
    assert middle_of([("a", "c"), ("a", "b"), ("b", "z"), ("c", "z")], "a", "z") == "b"
