"""The engine of CTranslate2: the strings and scores of our own engine, and what it refuses."""

import random
import sys

import ctranslate2
import pytest

from keras_transformer import load_pretrained
from keras_transformer.translate.translator import Translator
from tests.small_translator import MAX_LENGTH, WORDS

choose = random.Random(7)
TEXTS = [" ".join(choose.choices(WORDS, k=choose.randint(0, 9))) for _ in range(40)]
ENGLISH = ["The old man sees the dog.", "A dog sleeps here.", "I see 3 dogs, don't I?"] * 20
GERMAN = ["Der alte Mann sieht den Hund.", "Ein Hund schläft hier.", "Ich sehe 3 Hunde."] * 20


def check(theirs, ours, texts, **options):
    """The same n-best lists, with the same scores."""
    found, expected = theirs.nbest(texts, **options), ours.nbest(texts, **options)
    assert [[x.text for x in y] for y in found] == [[x.text for x in y] for y in expected]
    for one, other in zip(found, expected, strict=True):
        assert [x.score for x in one] == pytest.approx([x.score for x in other], abs=1e-3)


@pytest.mark.once("CTranslate2 and PyTorch: each further backend has its own tests of searches")
def test_translations_by_default(theirs, ours):
    expected = ours.translate(TEXTS)
    assert theirs.translate(TEXTS) == expected and len(set(expected)) > 10
    assert list(theirs.translate_stream(iter(TEXTS), chunk_size=7)) == expected
    assert theirs.translate(TEXTS, tokens_per_batch=20) == expected
    assert theirs.translate([]) == [] and theirs.translate(["", " "]) == ["", ""]


@pytest.mark.once("CTranslate2 and PyTorch: each further backend has its own tests of searches")
@pytest.mark.parametrize("scoring", ["wu", "transformers"])
@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_n_best_lists(scoring, beam_size, theirs, ours):
    options = dict(beam_size=beam_size, scoring=scoring)
    for length_penalty, extra in ((0.0, 30), (0.6, 6), (1.5, 1)):
        options |= dict(length_penalty=length_penalty, max_extra_length=extra)
        check(theirs, ours, TEXTS, **options)
        assert theirs.translate(TEXTS, **options) == ours.translate(TEXTS, **options)


@pytest.mark.once("CTranslate2 and PyTorch")
@pytest.mark.parametrize("beam_size", [1, 4])
def test_prefixes(beam_size, theirs, ours):
    prefixes = [("six", "ten one", "", "se")[i % 4] for i in range(len(TEXTS))]
    for options in ({}, dict(scoring="transformers", max_extra_length=1)):
        check(theirs, ours, TEXTS, prefixes=prefixes, beam_size=beam_size, **options)
    found = theirs.translate(TEXTS, prefixes=prefixes, beam_size=beam_size, length_penalty=0.0)
    assert all(x.startswith(y) for x, y, z in zip(found, prefixes, TEXTS, strict=True) if z)


@pytest.mark.once("CTranslate2 and PyTorch")
def test_scores(theirs, ours):
    targets = ours.translate(TEXTS, beam_size=1)
    expected = ours.score(TEXTS, targets)
    assert theirs.score(TEXTS, targets) == pytest.approx(expected, abs=1e-3)
    assert theirs.score(TEXTS, targets, tokens_per_batch=9) == pytest.approx(expected, abs=1e-3)
    with pytest.raises(ValueError, match="sources and targets must have the same length"):
        theirs.score(["one"], [])


@pytest.mark.once("texts and files")
def test_a_text_too_long_is_cut_with_a_warning_or_refused(theirs, ours):
    long = "six " * MAX_LENGTH
    with pytest.warns(UserWarning, match=f"texts must have at most {MAX_LENGTH} tokens"):
        found = theirs.translate([long])
    with pytest.warns(UserWarning):
        assert found == ours.translate([long])
    with pytest.raises(ValueError, match=f"{MAX_LENGTH} tokens"):
        theirs.translate([long], strict=True)


@pytest.mark.once("an error before any computation")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(min_length=2), 'min_length must be left out for engine="ctranslate2" .*, got 2'),
        (dict(beam_size=40), "beam_size must be at most 28, half the vocabulary, .*, got 40"),
        (dict(beam_size=0), "beam_size must be .*, got 0"),
        (dict(tokens_per_batch=0), "tokens_per_batch must be .*, got 0"),
        (dict(prefixes=["six"]), "prefixes must have one entry per text"),
    ],
)
def test_refused_options(options, message, theirs):
    with pytest.raises(ValueError, match=message):
        theirs.translate(TEXTS, **options)


@pytest.mark.once("an error before any computation")
def test_refused_methods(theirs, folder):
    with pytest.raises(ValueError, match=r"engine must be one of \('keras', .*\), got"):
        Translator.load(folder, engine="marian")


@pytest.mark.once("files and types")
def test_precisions_and_threads(folder, theirs, monkeypatch):
    made, peer = [], ctranslate2.Translator

    def spy(*arguments, **options):
        made.append(options)
        return peer(*arguments, **options)

    monkeypatch.setattr(ctranslate2, "Translator", spy)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    small = Translator.load(folder, "int8", engine="ctranslate2")
    assert len(small.translate(TEXTS)) == len(TEXTS)
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda device: {"float32"})
    with pytest.warns(UserWarning, match="precision is float32 in place of bfloat16"):
        Translator.load(folder, "bfloat16", engine="ctranslate2")
    assert [x["compute_type"] for x in made] == ["int8", "float32"]
    assert made[0]["intra_threads"] == 3 and made[1]["intra_threads"] >= 1
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(ImportError, match='engine="ctranslate2" needs the extra "ctranslate2"'):
        Translator.load(folder, engine="ctranslate2")


@pytest.mark.once("CTranslate2 and PyTorch")
def test_what_is_hidden_is_searched_by_our_engine(folder, ours):
    # With few tokens and many beams, EOS is often among the best where a text must end.
    theirs, asked = Translator.load(folder, engine="ctranslate2"), []
    theirs.translate(TEXTS)
    assert "keras_engine" not in vars(theirs._engine)
    search = theirs._engine.keras_engine.search
    theirs._engine.keras_engine.search = lambda tokenizer, request, options: (
        asked.extend(request.texts) or search(tokenizer, request, options)
    )
    check(theirs, ours, TEXTS, beam_size=6, max_extra_length=1)
    assert 0 < len(asked) < len(TEXTS) / 2


@pytest.mark.once("CTranslate2 and PyTorch")
@pytest.mark.parametrize(
    ("kind", "languages"),
    [("m2m_100", ("en", "fr")), ("mbart", ("en_XX", "fr_XX")), ("t5", ("en", "de"))],
)
def test_imported_families(kind, languages, pretrained_folder, tmp_path):
    (tmp_path / "theirs").mkdir()
    pretrained_folder(kind, tmp_path / "theirs", ENGLISH, GERMAN)
    load_pretrained(tmp_path / "theirs").save(tmp_path / "saved")
    ours = Translator.load(tmp_path / "saved", None, *languages)
    theirs = Translator.load(tmp_path / "saved", None, *languages, engine="ctranslate2")
    texts = ENGLISH[:3]
    greedy = dict(beam_size=1, max_extra_length=10)
    assert theirs.translate(texts, **greedy) == ours.translate(texts, **greedy)
    other = theirs.between(*languages[::-1]) if kind != "t5" else theirs
    expected = ours.between(*languages[::-1]) if kind != "t5" else ours
    assert other.translate(texts, **greedy) == expected.translate(texts, **greedy)


@pytest.mark.once("CTranslate2 and PyTorch")
def test_the_model_is_there_when_it_is_needed(theirs, ours, tmp_path):
    assert theirs.config == ours.config and theirs.model.config == ours.config
    theirs.save(tmp_path)
    assert Translator.load(tmp_path).translate(TEXTS[:4]) == ours.translate(TEXTS[:4])
