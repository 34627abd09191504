"""Glossaries: which terms a source has, which of them a translation keeps, files, bad input."""

import pytest

from keras_transformer.text.glossary import Glossary, goes_on, is_kept, spellings

pytestmark = pytest.mark.once("texts: no tensor is read")

TERMS = {"dog": ["Hund", "Hunde"], "Hot  dog": ["Hotdog"], "C++": ["C++"], "狗": ["Hund"]}
TERMS |= {"Straße": ["street"], "man of war ship": ["warship"], "war": ["Krieg"]}


@pytest.mark.parametrize(
    "source,expected",
    [
        ("A DOG barks, the dog.", [("Hund", "Hunde")]),
        ("A hot\u00a0dog for the dog", [("Hotdog",), ("Hund", "Hunde")]),
        ("dogs, dogma, underdog, dog_1", []),
        ("C++, not C+++", [("C++",)]),
        ("一只狗在跑", [("Hund",)]),
        ("", []),
        ("Die straße, die STRAßE", [("street",)]),
        ("man of war ship", [("warship",)]),
    ],
)
def test_terms_are_whole_words_and_the_longest_count(source, expected):
    assert Glossary(TERMS).terms_in(source) == expected


@pytest.mark.parametrize(
    "translation,kept",
    [
        ("Ein Hund.", True),
        ("„Hunde!“", True),
        ("Die Hundehütte", False),
        ("ein hund", False),
        ("Der Schäferhund", False),
        ("", False),
    ],
)
def test_a_form_is_kept_as_a_whole_word(translation, kept):
    assert is_kept(("Hund", "Hunde"), translation) == kept


def test_the_first_letter_may_be_a_capital_but_not_small():
    assert spellings("gelber Hund") == ["gelber Hund", "Gelber Hund"]
    assert spellings("Hund") == ["Hund"]
    assert is_kept(["gelber Hund"], "Gelber  Hund bellt") and not is_kept(["Hund"], "hund")


@pytest.mark.parametrize("text,expected", [("e", True), ("\ufffd", True), (" e", False)])
def test_what_goes_on_with_a_word(text, expected):
    assert goes_on(text) == expected and not goes_on(".") and not goes_on("") and not goes_on("狗")


def test_a_file(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("\ufeff# animals\n\ndog\tHund\tHunde\r\ncat \t Katze\ndog\tHunden\n", "utf-8")
    glossary = Glossary.read(path)
    assert len(glossary) == 2 and repr(glossary) == "a glossary of 2 terms"
    assert glossary.forms() == ["Hund", "Hunde", "Hunden", "Katze"]
    assert glossary.terms_in("cat, dog") == [("Katze",), ("Hund", "Hunde", "Hunden")]


@pytest.mark.parametrize("line", ["dog", "dog\t", "\tHund", "dog\tHund\t\tHunde"])
def test_a_line_without_a_side(tmp_path, line):
    path = tmp_path / "terms.tsv"
    path.write_text(f"cat\tKatze\n{line}\n")
    with pytest.raises(ValueError, match=r"terms.tsv, line 2: must have a source term, a tab and"):
        Glossary.read(path)


def test_bad_input(tmp_path):
    for terms in ({}, [("dog", ["Hund"])]):
        with pytest.raises(ValueError, match="terms must be one or more source terms with their f"):
            Glossary(terms)
    for forms in (None, 1):
        with pytest.raises(ValueError, match="forms of 'dog' must be a list of texts, got"):
            Glossary({"dog": forms})
    with pytest.raises(ValueError, match="a term and its forms must hold strings, got int at"):
        Glossary({"dog": ["Hund", 1]})
    with pytest.raises(ValueError, match="a term must be a source and its forms, none of them em"):
        Glossary({"dog": ["  "]})
    with pytest.raises(ValueError, match="a term must be a source and its forms, none of them em"):
        Glossary({"dog": []})
    with pytest.raises(ValueError, match="forms of 'dog' must be a list of texts, got 'Hund'"):
        Glossary({"dog": "Hund"})
    path = tmp_path / "terms.tsv"
    path.write_bytes(b"dog\t\xff\n")
    with pytest.raises(ValueError, match=r"terms.tsv must be UTF-8 text"):
        Glossary.read(path)
    path.write_text("# nothing\n")
    with pytest.raises(ValueError, match=r"the terms must be at least one in .*terms.tsv"):
        Glossary.read(path)
