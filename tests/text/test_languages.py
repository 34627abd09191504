"""Languages of pretrained models: how many there are, and what others call them."""

import sys

import pytest

from keras_transformer.text.languages import M2M100, MBART50, NLLB200, WMT21, short_code


def test_each_model_has_as_many_as_its_paper_says():
    # Fan et al. 2020: 100; Tang et al. 2020: 52 tokens; NLLB Team 2022: 202 with both scripts.
    for languages, count in ((M2M100, 100), (WMT21, 8), (MBART50, 52), (NLLB200, 202)):
        assert len(set(languages)) == len(languages) == count


@pytest.mark.parametrize(
    "language,code",
    [
        ("de", "de"),
        ("xx", "xx"),
        ("deu", "de"),
        ("deu_Latn", "de"),
        ("de_DE", "de"),
        ("en_XX", "en"),
        ("ces_Latn", "cs"),
        ("arb_Arab", "ar"),
        ("ace_Arab", "ace"),
        ("?!", "?!"),
    ],
)
def test_short_code(language, code):
    assert short_code(language) == code


def test_two_letters_need_no_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "langcodes", None)
    assert short_code("de") == "de"
    with pytest.raises(ImportError, match='deu_Latn needs the extra "pretrained": .*langcodes'):
        short_code("deu_Latn")
