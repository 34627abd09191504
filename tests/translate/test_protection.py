"""Translations that copy addresses, tags and numbers, from a model that has learnt nothing."""

import pytest

from keras_transformer import Glossary
from keras_transformer.decoding import Phrases
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.text.lexical_shortlist import Shortlist
from keras_transformer.text.protected import is_copied
from keras_transformer.translate.translator import Translator
from tests.small_translator import SHORT, TEXTS, WORDS, make

ODD = {
    "one https://keras.io two": ["https://keras.io"],
    "<b>four</b> five @tom": ["<b>", "</b>", "@tom"],
    "nine 58 {name} six 12 three": ["58", "{name}", "12"],
    "SIX %s TEN": ["%s"],
    "eight 👍 nine": ["👍"],
}
OPTIONS = dict(SHORT, max_extra_length=16)


def made(**sides):
    texts = [f"{word} {'0123456789'[i:]}" for i, word in enumerate(WORDS)] * 9
    options = dict(vocab_size=88, byte_fallback=False)
    tokenizer = SentencePieceTokenizer.train(texts, texts, **options, **sides)
    model = make(SentencePieceTokenizer(tokenizer.source_model)).model
    return Translator(model, tokenizer, search={"protect": True})


@pytest.fixture(scope="module")
def protects():
    return made()


def test_spans_are_copied_and_other_texts_stay(protects):
    texts = [*TEXTS, "", " ", *ODD]
    plain = protects.translate(texts, protect=False, **OPTIONS)
    translations = protects.translate(texts, **OPTIONS)
    assert translations[: -len(ODD)] == plain[: -len(ODD)]
    for translation, parts in zip(translations[-len(ODD) :], ODD.values(), strict=True):
        assert all(is_copied((part,), translation) for part in parts), translation
    assert translations[-4].startswith("<b>") and translations[-2].replace("%s", "").isupper()
    assert protects.translate([texts[-1]], **OPTIONS) == translations[-1:]


@pytest.mark.once("the search of the test above")
def test_every_hypothesis_has_the_spans(protects):
    text = "one https://keras.io two"
    hypotheses = protects.nbest([text], beam_size=3, **OPTIONS)[0]
    assert len(hypotheses) > 1
    assert all("https://keras.io" in x.text for x in hypotheses)
    samples = protects.sample([*ODD], seed=1, **OPTIONS)
    protects.search = {}
    try:
        assert samples == protects.sample([*ODD], seed=1, **OPTIONS)
    finally:
        protects.search = {"protect": True}


@pytest.mark.once("the search of the test above")
def test_a_text_of_spans_alone_is_its_own_translation(protects):
    texts = ["https://keras.io", " <br> ", "3.14 12!"]
    assert protects.translate(texts, **OPTIONS) == [text.strip() for text in texts]
    (forced,) = protects.translate(["12"], prefixes=["six "], **OPTIONS)
    assert forced.startswith("six") and is_copied(("12",), forced)


@pytest.mark.once("the search of the test above")
def test_with_a_glossary_a_prefix_and_a_shortlist(protects):
    text = "<b>four</b> five @tom"
    glossary = Glossary({"five": ["58"], "tom": ["ten"], "b": ["ten"]})
    (translation,) = protects.translate([text], constraint=glossary, **OPTIONS)
    assert all(x in translation for x in ("<b>", "</b>", "@tom"))
    assert is_copied(("58",), translation) and "ten" not in translation.split()
    prefix = "seven 47"
    (translation,) = protects.translate([text], prefixes=[prefix], **OPTIONS)
    assert translation.startswith(prefix)
    assert all(x in translation for x in ("<b>", "</b>", "@tom"))
    lists = Translator(protects.model, protects.tokenizer)
    lists.shortlist = Shortlist.train(lists.tokenizer, TEXTS, TEXTS, per_piece=1, frequent=1)
    options = dict(OPTIONS, shortlist=True)
    plain = lists.translate(TEXTS, **options)
    *others, translation = lists.translate([*TEXTS, text], protect=True, **options)
    assert others == plain and "@tom" in translation


@pytest.mark.once("the search of the test above")
def test_what_does_not_fit_or_cannot_be_spelled_is_not_required(protects, translator):
    many = " ".join(f"one {i}" for i in range(10, 20))
    assert len(protects.translate([many], max_length=6)) == 1
    assert len(protects.translate(["one @a two @b" * 9], max_extra_length=2)) == 1
    assert translator.tokenizer.unk_id in translator.tokenizer.encode_target(["47"])[0]
    texts = ["one @tom two", "one 12"]
    plain = translator.translate(texts, **SHORT)
    assert translator.translate(texts, protect=True, **SHORT) == plain


@pytest.mark.once("the search of the test above")
def test_another_constraint_is_obeyed_without_protection(protects):
    class Six(Phrases):
        def start(self, texts, limits):
            return super().start([[[protects.tokenizer.encode_target(["six"])[0][:-1]]]], limits)

    continues = [False] * protects.tokenizer.target_vocab_size
    constraint = Six((protects.tokenizer.eos_id,), "", continues)
    options = dict(OPTIONS, constraint=constraint)
    translations = protects.translate(["one @tom"], **options)
    assert "six" in translations[0]
    assert translations == protects.translate(["one @tom"], protect=False, **options)


@pytest.mark.once("the search of the test above")
def test_in_two_steps_and_in_a_saved_folder(tmp_path):
    codes = ("en", "de", "fr")
    many = made(source_languages=codes, target_languages=codes)
    many.directions = (("de", "en"), ("en", "fr"))
    many.save(tmp_path)
    both = Translator.load(tmp_path, source_language="de", target_language="fr")
    assert both.middle == "en" and both.search == {"protect": True}
    text = "one https://keras.io two 12"
    translation = both.translate([text], **OPTIONS)[0]
    assert "https://keras.io" in translation and is_copied(("12",), translation)
