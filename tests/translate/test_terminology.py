"""Translations that have the terms of a glossary, from a model that has learnt nothing."""

import numpy as np
import pytest

from keras_transformer import Glossary
from keras_transformer.text.glossary import is_kept
from keras_transformer.translate import terminology
from tests.small_translator import TEXTS

GLOSSARY = Glossary(
    {"one": ["ten nine"], "two": ["four", "six six"], "eight": ["three"], "nine": ["nine"]}
)
OPTIONS = dict(max_extra_length=12)


def assert_kept(source, translation):
    for forms in GLOSSARY.terms_in(source):
        assert is_kept(forms, translation), (source, translation, forms)


@pytest.mark.once("tests/decoding searches with phrases on each backend")
def test_all_terms_are_kept_and_what_has_none_stays(translator):
    plain = translator.translate(TEXTS, **OPTIONS)
    found = translator.translate(TEXTS, constraint=GLOSSARY, **OPTIONS)
    changed = [text for text, old, new in zip(TEXTS, plain, found, strict=True) if old != new]
    assert changed
    for source, old, new in zip(TEXTS, plain, found, strict=True):
        assert_kept(source, new)
        if all(is_kept(forms, old) for forms in GLOSSARY.terms_in(source)):
            assert new == old
    assert list(translator.translate_stream(TEXTS, constraint=GLOSSARY, **OPTIONS)) == found
    alone = [translator.translate([x], constraint=GLOSSARY, **OPTIONS)[0] for x in TEXTS[:2]]
    assert alone == found[:2]


@pytest.mark.once("the search of the test above")
def test_all_hypotheses_have_the_terms_and_the_model_scores_them(translator):
    given = dict(constraint=GLOSSARY, length_penalty=0.0, **OPTIONS)
    found = translator.nbest(TEXTS, beam_size=3, **given)
    for source, hypotheses in zip(TEXTS, found, strict=True):
        assert hypotheses
        for one in hypotheses:
            assert_kept(source, one.text)
        scores = [one.score for one in hypotheses]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.once("the search of the tests above")
def test_forms_of_any_number(translator):
    """TensorFlow traces a search again when numbers change."""
    words = "one two three four five six seven eight nine ten".split()
    for count in (3, 10):
        glossary = Glossary({"six": [f"{x} {y}" for x in words[:count] for y in words[:2]]})
        (found,) = translator.translate(["six"], constraint=glossary, **OPTIONS)
        assert is_kept(glossary.forms(), found)


@pytest.mark.once("the search of the tests above")
def test_a_prefix_comes_first(translator):
    prefixes = ["seven seven"] * len(TEXTS)
    given = dict(prefixes=prefixes, constraint=GLOSSARY, **OPTIONS)
    for source, text in zip(TEXTS, translator.translate(TEXTS, **given), strict=True):
        assert text.startswith("seven seven")
        assert_kept(source, text)


@pytest.mark.once("phrases are searched under each in tests/decoding")
def test_only_texts_that_lack_a_term_are_searched_again(translator):
    plain = translator.translate(TEXTS, **OPTIONS)
    own, asked = max(TEXTS, key=len), []
    words = plain[TEXTS.index(own)].split()

    def search(request, search):
        asked.append((list(request.texts), search.beam_size))
        return translator.hypotheses(request, search)

    def translate(glossary):
        asked.clear()
        request = terminology.Request(TEXTS, constraint=glossary)
        options = terminology.Search(num_hypotheses=1, **OPTIONS)
        given = translator.tokenizer, translator.config, request, options
        return terminology.search_with_terms(search, *given)

    assert [x[0].text for x in translate(Glossary({own: [words[0]]}))] == plain
    assert asked == [(TEXTS, 4)]
    translate(Glossary({own: [f"{words[0]} nine nine ten"]}))
    assert asked == [(TEXTS, 4), ([own], terminology.LEAST_BEAMS)]


def test_which_pieces_go_on_with_a_word(translator):
    tokenizer = translator.tokenizer
    continues = terminology._continues(tokenizer)
    assert continues.shape == (tokenizer.target_vocab_size,)
    (ids,) = tokenizer.encode_target(["three nine"])
    assert not continues[ids[-1]]  # EOS
    begins = [i for i in ids[:-1] if not continues[i]]
    assert tokenizer.decode_target([[ids[0], i] for i in begins[1:]])[0].count(" ") == 1
    assert np.mean(continues) > 0.2


@pytest.mark.once("errors before any computation")
def test_bad_input(translator):
    def refused(message, glossary=GLOSSARY, **options):
        with pytest.raises(ValueError, match=message):
            translator.translate(["one"], constraint=glossary, **options)

    refused("a term of the glossary must be text that the voc.*'zebra'", Glossary({"x": ["zebra"]}))
    refused("constraint must be None with shortlist=True, got a glossary of 4 te", shortlist=True)
    many = Glossary({"one": [" ".join(["nine"] * 60)]})
    message = "the glossary for 'one' must be at most .* tokens, with a prefix and EOS: the longe"
    refused(message, many, max_extra_length=5)
    refused(message, Glossary({"one": ["nine nine"]}), max_extra_length=1, prefixes=["six " * 5])
    with pytest.raises(ValueError, match="constraint must be None, a Glossary, or an object with"):
        translator.translate(["one"], constraint="terms.tsv")
