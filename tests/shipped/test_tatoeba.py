"""The translator that comes with the project: what it translates, and what odd text becomes."""

import re
from pathlib import Path

import pytest

from keras_transformer import Translator

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "saved_models" / "tatoeba"
# Per line: the language to translate into, what a translation must copy (between bars), the text.
ODD = [x.split("\t") for x in Path(__file__).with_name("odd_lines.tsv").read_text().splitlines()]


@pytest.fixture(scope="module")
def translator():
    return Translator.load(FOLDER)


def loops(text):
    """Whether one to four words, or as many letters, occur five times in a row."""
    return re.search(r"(\b\S+(?: \S+){0,3})(?: \1){4}|(\S{1,4})\2{9}", text) is not None


def test_it_translates(translator):
    german = translator.between("en", "de").translate(["Where is the station?", "I love you."])
    assert german[0].startswith("Wo ist") and german[1] == "Ich liebe dich."
    assert translator.between("de", "fr").translate(["Ich liebe dich."]) == ["Je t'aime."]
