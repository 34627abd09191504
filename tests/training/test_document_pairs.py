"""Training pairs with context: by hand, and a translator that needs it."""

import random

import pytest

from keras_transformer.evaluation.assess import read_metrics
from keras_transformer.training.document_pairs import separated, with_context
from keras_transformer.training.translation import train
from keras_transformer.translate.document_translation import translate_documents
from keras_transformer.translate.translator import Translator
from tests.training.made_up import SETTINGS, WORDS


@pytest.mark.once("text: no tensor is read")
def test_pairs_with_context():
    pairs = [("a", "A"), ("b", "B"), ("c", ""), ("d", "D"), ("", ""), ("e", "E")]
    windows = [("a", "A"), ("a <sep> b", "A <sep> B"), ("d", "D"), ("e", "E")]
    assert with_context(pairs, 1, alone=False) == windows
    assert with_context(pairs, 1) == [*windows, ("a", "A"), ("b", "B"), ("d", "D"), ("e", "E")]
    assert with_context(separated(pairs[:2]), 1, alone=False) == pairs[:2]
    assert separated([]) == [] == with_context([], 1)
    with pytest.raises(ValueError, match="pairs must be pairs of a source and a target, got 'ab'"):
        with_context(["ab"], 1)
    with pytest.raises(ValueError, match="pairs must hold strings, got int"):
        with_context([("a", 3)], 1)


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
        for side in (0, 1):
            text = "\n".join(line.split("\t")[side] for line in lines)
            (tmp_path / f"{name}.{side}").write_text(text, "utf-8")
    files = {
        f"{name}_files": [tmp_path / f"{name}.{side}" for side in (0, 1)]
        for name in ("train", "validation", "test")
    }
    settings = ["context_sentences=1", "subword_sampling=0.0", "epochs=40", "average_last=1"]
    train(output=tmp_path / "run", changes=[*SETTINGS, *settings], **files)
    metrics = read_metrics(tmp_path / "run")["test"]
    # Without the sentence before, half of the pronouns are wrong: three quarters at most.
    assert metrics["sentences"] == 40 and metrics["exact_match"] > 80
    translator = Translator.load(tmp_path / "run")
    texts = [x for noun in nouns for x in (noun, f"it {verbs[0]}", "")]
    expected = [x for noun in "ER SIE".split() * 3 for x in (noun, "")]
    found = translate_documents(translator, texts, 1)
    assert [x.split()[0] if x else "" for x in found if x not in map(str.upper, nouns)] == expected
