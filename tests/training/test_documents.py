"""Training pairs with context: by hand, and a translator that needs it."""

import random

import pytest

from keras_transformer.inference.documents import translate_documents
from keras_transformer.inference.translator import Translator
from keras_transformer.training.documents import separated, with_context
from tests.training.made_up import WORDS, train_here


@pytest.mark.once("text: no tensor is read")
def test_pairs_with_context():
    pairs = [("a", "A"), ("b", "B"), ("c", ""), ("d", "D"), ("", ""), ("e", "E")]
    windows = [("a", "A"), ("a <sep> b", "A <sep> B"), ("d", "D"), ("e", "E")]
    assert with_context(pairs, 1, alone=False) == windows
    assert with_context(pairs, 1) == [*windows, ("a", "A"), ("b", "B"), ("d", "D"), ("e", "E")]
    assert with_context(separated(pairs[:2]), 1, alone=False) == pairs[:2]
    assert separated([]) == []


@pytest.mark.once("options of the run: text and files")
def test_a_translator_reads_the_sentence_before(tmp_path):
    generator = random.Random(0)
    nouns, verbs = WORDS[:6], WORDS[6:12]
    for name, count in (("train", 1200), ("validation", 20), ("test", 20)):
        lines = []
        for _ in range(count):
            noun, verb = generator.choice(nouns), generator.choice(verbs)
            pronoun = ("ER", "SIE")[nouns.index(noun) % 2]  # that only the noun tells
            lines += [f"{noun}\t{noun.upper()}", f"it {verb}\t{pronoun} {verb.upper()}", "\t"]
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines), "utf-8")
    settings = ["context_sentences=1", "subword_sampling=0.0", "epochs=40", "average_last=1"]
    train_here(tmp_path, tmp_path / "run", *settings, "bleu_every=0")
    translator = Translator.load(tmp_path / "run")
    texts = [x for noun in nouns for x in (noun, f"it {verbs[0]}", "")]
    expected = [x for noun in "ER SIE".split() * 3 for x in (noun, "")]
    found = translate_documents(translator, texts, 1)
    assert [x.split()[0] if x else "" for x in found if x not in map(str.upper, nouns)] == expected
