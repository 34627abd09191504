"""Files of lines: each format, from the start and from the middle, and lines that are none."""

import gzip
import json
import re

import pytest

from keras_transformer.data.lines import one_line, open_lines

TEXTS = ["one two", "", "drei\tvier", "línea", "a\x0bb\u2028c", "six"]
PAIRS = [(text, text.upper()) for text in TEXTS if "\t" not in text]


def written(folder, kind):
    """A file of `kind` that holds TEXTS"""
    path = folder / f"texts{kind}"
    if kind == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table({"id": range(6), "text": TEXTS}), path, row_group_size=4)
        return path
    lines = [json.dumps({"id": 1, "text": x}) if "json" in kind else x for x in TEXTS]
    data = "".join(f"{line}\r\n" for line in lines).encode()[:-2]  # the last line has no end
    if kind.endswith(".gz"):
        data = gzip.compress(data)
    elif kind.endswith(".zst"):
        compress = pytest.importorskip("zstandard").ZstdCompressor().compress
        data = compress(data[:9]) + compress(data[9:])  # of two frames, as parallel tools write
    path.write_bytes(data)
    return path


KINDS = [".txt", ".en.gz", ".zst", ".jsonl", ".json.gz", ".ndjson.zst", ".parquet"]


@pytest.mark.parametrize("kind", KINDS)
def test_each_format_can_be_read_from_any_line_on(tmp_path, kind):
    path, fields = str(written(tmp_path, kind)), ("text",)
    reader, offsets = open_lines(path, fields), [0]
    for number, (text,) in enumerate(reader.records(0, 0)):
        assert text == TEXTS[number]
        offsets.append(reader.offset)
    assert number == len(TEXTS) - 1
    for first in (2, 4, 0, 3):  # forwards and backwards
        found = reader.records(first, offsets[first], 2)
        assert [text for (text,) in found] == TEXTS[first : first + 2]
    reader.close()
    again = open_lines(path, fields)
    assert len(list(again.records(3, offsets[3]))) == len(TEXTS) - 3
    again.close()


def test_pairs_come_from_tabs_and_from_fields(tmp_path):
    (tmp_path / "a.tsv").write_text("one\ttwo\tthree\nfour\t\n")
    reader = open_lines(str(tmp_path / "a.tsv"), ("source", "target"))
    assert list(reader.records(0, 0)) == [("one", "two"), ("four", "")]
    (tmp_path / "a.jsonl").write_text('{"source": "one", "target": "two"}\n')
    reader = open_lines(str(tmp_path / "a.jsonl"), ("source", "target"))
    assert list(reader.records(0, 0)) == [("one", "two")]


TMX = (
    "<tmx><body><tu><tuv xml:lang='en'><seg>one</seg></tuv><tuv xml:lang='de'><seg>eins</seg></tuv>"
    "</tu><tu><tuv xml:lang='fr'><seg>deux</seg></tuv></tu>"
    "<tu><tuv xml:lang='de-AT'><seg>drei</seg></tuv><tuv xml:lang='en'><seg>three</seg></tuv></tu>"
    "</body></tmx>"
)


def test_units_of_translation_memories(tmp_path):
    path = tmp_path / "a.tmx.gz"
    path.write_bytes(gzip.compress(TMX.encode()))
    for fields, expected in (
        (("de",), [("eins",), ("drei",)]),
        (("de", "en"), [("eins", "one"), ("drei", "three")]),
    ):
        reader = open_lines(str(path), fields)
        assert list(reader.records(0, 0)) == expected and reader.offset == 2
        assert list(reader.records(1, 1, 1)) == expected[1:]
        reader.close()
    with pytest.raises(ValueError, match="no translation unit has 'text'; languages in the file"):
        list(open_lines(str(path), ("text",)).records(0, 0))


def test_columns_of_tables(tmp_path):
    (tmp_path / "a.tsv").write_text("one\ttwo\nthree\tfour\n")
    for field, expected in (("1", ["one", "three"]), ("2", ["two", "four"]), ("text", ["one"])):
        records = open_lines(str(tmp_path / "a.tsv"), (field,)).records(0, 0)
        assert [text for (text,) in records][: len(expected)] == expected
    with pytest.raises(ValueError, match="a.tsv, line 1: expected 3 columns"):
        list(open_lines(str(tmp_path / "a.tsv"), ("3",)).records(0, 0))


def test_fields_of_translations(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"translation": {"en": "one", "de": "eins"}}\n')
    assert list(open_lines(str(tmp_path / "a.jsonl"), ("de",)).records(0, 0)) == [("eins",)]
    with pytest.raises(ValueError, match=r"expected text in 'text'.*its fields are \['transla"):
        list(open_lines(str(tmp_path / "a.jsonl"), ("text",)).records(0, 0))


@pytest.mark.parametrize("name", ["a.html", "a.csv.gz", "a.docx", "a.srt", "a.xliff"])
def test_other_formats_are_refused(name):
    """Their mark-up would be read as text."""
    with pytest.raises(
        ValueError, match=f"input must be text, TSV, JSON lines.*not read here.*{name}"
    ):
        open_lines(name, ("text",))


@pytest.mark.parametrize(
    ("name", "data", "fields", "message"),
    [
        ("a.txt", b"one\ntwo\xff\n", 1, "a.txt, line 2: invalid UTF-8"),
        ("a.tsv", b"one\ttwo\nthree\n", 2, "a.tsv, line 2: expected two texts with a tab"),
        ("a.jsonl", b'{"text": "one"}\n{"txt": "two"}\n', 1, "line 2: expected text in 'text'"),
        ("a.jsonl", b'{"text": "one"}\n\n', 1, "a.jsonl, line 2: malformed JSON"),
        ("a.jsonl", b'{"text": 1}\n', 1, "a.jsonl, line 1: expected text in 'text', got {'text'"),
        ("a.jsonl", b'{"text": "\\ud83d"}\n', 1, "line 1: 'text' holds half of a surrogate pair"),
        ("a.jsonl", b"[" * 100_000, 1, "a.jsonl, line 1: JSON too deep"),
        ("a.gz", gzip.compress(b"one\n" * 9)[:-9], 1, "a.gz: truncated or corrupt file"),
        ("a.gz", b"one\n", 1, "a.gz: truncated or corrupt file"),
        ("a.parquet", b"one\n", 1, "a.parquet: unreadable Parquet file"),
    ],
)
def test_a_line_that_is_none_is_named(tmp_path, name, data, fields, message):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(data)
    names = ("text",) if fields == 1 else ("source", "target")
    with pytest.raises(ValueError, match=re.escape(message)):
        list(open_lines(str(tmp_path / name), names).records(0, 0))


def test_a_row_that_is_none_is_named(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    path = str(tmp_path / "a.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"text": ["one", None]}), path)
    with pytest.raises(ValueError, match=r"a.parquet, row 2: expected text in 'text'"):
        list(open_lines(path, ("text",)).records(0, 0))
    with pytest.raises(ValueError, match=r"has no column 'words'; its columns are \['text'\]"):
        list(open_lines(path, ("words",)).records(0, 0))


def test_one_line():
    assert one_line("a\nb\r\nc") == "a b  c"
