"""SentencePiece's rules of normalization, run by `tokenizers`."""

import json

import pytest
import sentencepiece
import tokenizers

from keras_transformer.text.charsmap import normalizers_of, replacement, rules_of
from keras_transformer.text.pieces import fields_of
from tests.text.odd_texts import odd_texts
from tests.text.sentences import trained

pytestmark = pytest.mark.once("tokenizers run on no backend")
START = "\ufdd2"


def charsmap_of(model):
    return dict(fields_of(dict(fields_of(model))[3]))[2]


def normalizer(charsmap):
    """Return the rules as a normalizer of `tokenizers`."""
    steps = [{"type": "Prepend", "prepend": START}, *normalizers_of(charsmap)]
    file = json.loads(tokenizers.Tokenizer(tokenizers.models.BPE()).to_str())
    file["normalizer"] = {"type": "Sequence", "normalizers": [*steps, replacement(START, "")]}
    return tokenizers.Tokenizer.from_str(json.dumps(file)).normalizer


def test_rules_are_those_of_the_library():
    rules = rules_of(charsmap_of(trained().source_model))
    assert rules["\ufb01"] == "fi" and rules["e\u0301"] == "\u00e9" and rules["\t"] == " "
    assert rules["\u1100\u1161\u11a8"] == "\uac01" and rules["\x01"] == "" and "a" not in rules
    assert rules_of(b"") == {} and normalizers_of(b"") == ()


@pytest.mark.parametrize("lowercase", [False, True])
def test_odd_texts_are_normalized_alike(lowercase):
    model = trained(lowercase=lowercase).source_model
    theirs = sentencepiece.SentencePieceNormalizer(
        model_proto=model,
        add_dummy_prefix=False,
        escape_whitespaces=False,
        remove_extra_whitespaces=False,
    )
    ours = normalizer(charsmap_of(model))
    for text in odd_texts(500):
        assert ours.normalize_str(text) == theirs.normalize(text), ascii(text)


def test_other_rules_are_refused(monkeypatch):
    rules = {"ab": "c"}
    monkeypatch.setattr("keras_transformer.text.charsmap.rules_of", lambda charsmap: rules)
    with pytest.raises(ValueError, match="rules like nmt_nfkc, got a rule from 'ab' to 'c'"):
        normalizers_of(b"other rules")
