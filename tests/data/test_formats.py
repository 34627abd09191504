"""Which field of a file a command reads."""

import pytest

from keras_transformer.data.formats import check_sides, field_of, require_lines, suffix_of


@pytest.mark.parametrize(
    "name,field,language,expected",
    [
        ("a.txt", None, "en", "text"),
        ("a.en", None, None, "text"),
        ("a.jsonl.gz", None, "en", "text"),
        ("a.JSONL", "en", None, "en"),
        ("a.parquet", "de", None, "de"),
        ("a.tsv", None, None, "1"),
        ("a.tsv.zst", "2", None, "2"),
        ("a.tmx", None, "en", "en"),
        ("a.tmx.gz", "de", "en", "de"),
    ],
)
def test_fields(name, field, language, expected):
    assert field_of(name, field, language) == expected


def test_one_file_of_both_sides_or_two_files():
    for paths in (["a.tsv"], ["a.txt.gz"], ["a.JSONL"], ["a.en", "a.de"], ["a.tsv", "b.tsv"]):
        check_sides("--train", paths)
    message = "--train names one side only, a.en: give it twice, for source and target, or name a"
    with pytest.raises(ValueError, match=message):
        check_sides("--train", ["a.en"])
    with pytest.raises(ValueError, match="--input takes one file or two, got 3"):
        check_sides("--input", ["a.en"] * 3)


@pytest.mark.parametrize(
    "name,field,message",
    [
        ("a.txt", "en", "--text-field names a field of JSON lines.*'en' for a.txt.*leave it out"),
        ("a.de.gz", "en", "leave it out"),
        ("a.tsv", "en", "--text-field must be the number of a column of a.tsv, from 1, got 'en'"),
        ("a.tsv", "0", "--text-field must be the number"),
        ("a.tmx", None, "--text-field must be a language of the file, such as en, got None"),
    ],
)
def test_a_field_that_does_not_apply(name, field, message):
    with pytest.raises(ValueError, match=message):
        field_of(name, field)


def test_suffixes():
    assert [suffix_of(x) for x in ("a.b.TMX.gz", "a.zst", "b/a", "a.tsv")] == [
        ".tmx",
        "",
        "",
        ".tsv",
    ]


def test_what_has_no_lines_of_text():
    require_lines("a.txt", "text")
    for name in ("a.tmx", "a.jsonl.gz", "a.html"):
        with pytest.raises(
            ValueError, match=f"input must be text; .* is not read here, got '{name}"
        ):
            require_lines(name, "text")
