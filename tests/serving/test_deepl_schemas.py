"""Terms in the formats of DeepL's API."""

import pytest

from keras_transformer.serving.deepl_schemas import DictionaryRequest

pytestmark = pytest.mark.once("no model is used")


def terms(entries, kind="tsv"):
    fields = dict(source_lang="en", target_lang="de", entries=entries, entries_format=kind)
    return DictionaryRequest(**fields).terms()


def test_formats():
    expected = {"dog": "Hund", 'a "b", c': "d"}
    assert terms('dog\tHund\r\n\na "b", c\t d \n') == expected
    assert terms('dog,Hund,en,de\n"a ""b"", c",d', "csv") == expected


@pytest.mark.parametrize(
    "entries, message",
    [
        ("dog", "entry 1 of entries must be a new term and its translation"),
        ("dog\tHund\ndog\tTier", "entry 2 of entries must be a new term"),
        ("dog\t ", "entry 1 of entries"),
        ("\n", "entries must be one or more terms"),
    ],
)
def test_bad_entries(entries, message):
    with pytest.raises(ValueError, match=message):
        terms(entries)
