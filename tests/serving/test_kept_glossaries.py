"""Glossaries of DeepL's API: whose they are, and how many there may be."""

import json

import pytest

from keras_transformer.serving import kept_glossaries
from keras_transformer.serving.kept_glossaries import KeptGlossaries, KeptGlossary
from keras_transformer.serving.waiting import TooLargeError

pytestmark = pytest.mark.once("no model is used")


def test_limits(monkeypatch):
    monkeypatch.setattr(kept_glossaries, "MOST_OF_A_KEY", 2)
    monkeypatch.setattr(kept_glossaries, "MOST_CHARACTERS", 200)
    kept, terms = KeptGlossaries(), {("en", "de"): {"dog": "Hund"}}
    first, second = (KeptGlossary("anna", name, terms) for name in "ab")
    for glossary in (first, second, second):  # one that is kept already is only replaced
        kept.keep(glossary)
    with pytest.raises(TooLargeError, match="got 3 and"):
        kept.keep(KeptGlossary("anna", "c", terms))
    kept.keep(KeptGlossary("bob", "c", terms))
    with pytest.raises(TooLargeError, match="200 characters in all glossaries, got 2 and 2"):
        kept.keep(KeptGlossary("bob", "d" * 200, {}))
    assert kept.of("anna") == [first, second]


TERMS = {("en", "de"): {"dog": "Hund"}, ("de", "fr"): {"Hund": "chien"}}


def test_a_folder(tmp_path):
    folder = tmp_path / "new" / "glossaries"
    kept = KeptGlossaries(folder)
    first, second = (KeptGlossary("anna", name, TERMS) for name in "ab")
    for glossary in (first, second):
        kept.keep(glossary)
    kept.keep(KeptGlossary(first.owner, "ä", TERMS, first.id, first.created))
    kept.drop("anna", second.id)
    third = KeptGlossary("bob", "c", {("en", "de"): {"a": "b"}})
    kept.keep(third)
    again = KeptGlossaries(folder)
    first.name = "ä"
    assert (again.of("anna"), again.of("bob")) == ([first], [third])
    assert {x.name for x in folder.iterdir()} == {f"{first.id}.json", f"{third.id}.json"}


def test_what_cannot_be_written_is_not_kept(tmp_path):
    kept = KeptGlossaries(tmp_path / "folder")
    (tmp_path / "folder").rmdir()
    (tmp_path / "folder").write_text("a file")
    with pytest.raises(OSError):
        kept.keep(KeptGlossary("anna", "a", TERMS))
    assert kept.of("anna") == []


def test_broken_files(tmp_path):
    glossary = KeptGlossary("anna", "a", {("en", "de"): {"dog": "Hund"}})
    facts, path = glossary.facts(), tmp_path / f"{glossary.id}.json"
    pair = facts["dictionaries"][0]
    for content, message in (
        ("{", "x.json is not a glossary: .*x.json is not valid JSON"),
        ("[]", "x.json is not a glossary: body: Input should be a valid dictionary"),
        (json.dumps(facts | {"owner": 1}), "is not a glossary: owner: Input should be a valid str"),
        (
            json.dumps(facts | {"more": 1}),
            "is not a glossary: more: Extra inputs are not",
        ),
        (
            json.dumps(facts | {"dictionaries": [pair | {"entries": {"": "b"}}]}),
            "is not a glossary: a term must be a source",
        ),
        (json.dumps(facts | {"id": "y"}), "id in .* must be the name of the file, got 'y'"),
    ):
        path.write_text(content)
        with pytest.raises(ValueError, match=message.replace("x.json", path.name)):
            KeptGlossaries(tmp_path)
    with pytest.raises(ValueError, match="glossaries must be a folder, got"):
        KeptGlossaries(path)
