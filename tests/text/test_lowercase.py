"""Tokenizers that put texts in lower case first."""

from keras_transformer.text.lowercase import lowercased
from keras_transformer.text.text_tokenizer import TextTokenizer

TEXTS = ["a good film", "bad films"]


def test_texts_in_any_case(tmp_path):
    plain = TextTokenizer.train(TEXTS, "wordpiece", 40, lowercase=False)
    lower = lowercased(plain)
    assert lower.encode(["A GOOD film"]) == plain.encode(TEXTS[:1]) != plain.encode(["A GOOD film"])
    assert lowercased(lower) is lower
    lower.save(tmp_path)
    assert TextTokenizer.read(tmp_path).fingerprint() == lower.fingerprint()


def test_without_a_normalizer():
    letters = TextTokenizer.train(TEXTS, "characters")
    assert lowercased(letters).encode(["GOOD"]) == letters.encode(["good"])
