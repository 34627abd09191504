"""Tests of keras_transformer.text.scripts."""

import unicodedata

import pytest

from keras_transformer.text import scripts
from keras_transformer.text.scripts import ScriptFilter, scripts_of

HELLO = {
    "de": "Guten Tag", "ru": "Добрый день", "el": "Καλημέρα", "ja": "こんにちはー", "zh": "你好",
    "ko": "안녕하세요", "ar": "مرحبا", "he": "שלום", "hi": "नमस्ते", "th": "สวัสดี", "hy": "Բարեւ",
    "ka": "გამარჯობა", "am": "ሰላም", "my": "မင်္ဂလာပါ", "km": "សួស្តី",
}  # fmt: skip


def test_each_script_is_its_own():
    for one, text in HELLO.items():
        for language in HELLO:
            same = one == language or (one, language) == ("zh", "ja")  # Japanese uses characters
            expected = None if same else "script"
            assert ScriptFilter("en", language)("Good day", text) == expected, (one, language)
            assert ScriptFilter(language, "en")(text, "Good day") is None or not same


def test_most_letters_decide():
    drop = ScriptFilter("en", "ru")
    assert drop("The BBC and the NHL", "Би-би-си и NHL") is None
    assert drop("The BBC and the NHL", "BBC and the НХЛ") == "script"
    assert drop("1995", "1995 ª") is None  # no letter of a known script


def test_languages_in_several_scripts_and_unknown_ones():
    for text in ("Добар дан", "Dobar dan"):
        assert ScriptFilter("en", "sr")("Good day", text) is None
    assert ScriptFilter("en", "xx")("Good day", "Добар дан") is None
    assert scripts_of("xx") == frozenset()
    assert scripts_of("deu_Latn") == scripts_of("de") == {"LATIN"}


@pytest.mark.parametrize("name", scripts._WRITTEN)
def test_names_are_those_of_unicode(name):
    letters = (chr(i) for i in range(0x10000))
    assert any(unicodedata.name(x, "").startswith(f"{name} ") for x in letters)
