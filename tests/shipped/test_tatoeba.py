"""The translator that comes with the project: what it translates, and what odd text becomes."""

import re
import shutil
from pathlib import Path

import pytest

from keras_transformer import Translator

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "saved_models" / "tatoeba"
# Per line: the language to translate into, what a translation should copy (between bars), the text.
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
    french = translator.between("de", "fr").translate(["Wo ist der Bahnhof?"])
    assert french == ["Où est la gare ?"]
    text = "Lies https://www.keras.io/a-b_c, bitte!"
    (spanish,) = translator.between("de", "es").translate([text])
    assert "https://www.keras.io/a-b_c" in spanish


@pytest.mark.once("the same translations under each, as tests of the search show")
def test_odd_text_never_loops_and_is_mostly_copied(translator):
    assert len(ODD) == 50
    kept = []
    for code in ("de", "en", "es", "fr"):
        rows = [(copied, text) for language, copied, text in ODD if language == code]
        translations = translator.between(None, code).translate([text for _, text in rows])
        for (copied, text), translation in zip(rows, translations, strict=True):
            assert not loops(translation) or loops(text), (text, translation)
            assert translation.isupper() == text.isupper(), (text, translation)
            assert len(translation) <= 2 * len(text) + 20, (text, translation)
            assert bool(translation) == bool(text.strip()), (text, translation)
            if copied:
                kept.append(all(part in translation for part in copied.split("|")))
    assert len(kept) == 26 and sum(kept) >= 22  # as the card says


@pytest.mark.once("CTranslate2 and PyTorch")
def test_odd_text_is_the_same_by_ctranslate2(translator, tmp_path):
    pytest.importorskip("ctranslate2")
    copy = shutil.copytree(FOLDER, tmp_path / "tatoeba")  # beside which the engine keeps its files
    theirs, ours = (
        x.between(None, "de") for x in (Translator.load(copy, engine="ctranslate2"), translator)
    )
    texts = [text for _, _, text in ODD]
    assert theirs.translate(texts) == ours.translate(texts)


@pytest.mark.once("files")
def test_the_folder_is_small_and_says_where_it_comes_from():
    names = {"config.json", "model.keras", "shared.model", "shortlist.safetensors"}
    names |= {"tokenizer.json", "README.md", "pyproject.toml"}
    files = [path for path in FOLDER.iterdir() if not path.name.startswith(".")]
    assert {path.name for path in files} == names
    assert sum(path.stat().st_size for path in files) < 16e6
    card = (FOLDER / "README.md").read_text("utf-8")
    for part in ("license: cc-by-2.0", "tatoeba.org", "manythings.org", "Changes:", "Limits"):
        assert part in card
