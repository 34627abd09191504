"""Text files, as people have them, are read as they are; what is broken is refused."""

import gzip
import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_transformer.data.text_files import (
    iterate_lines,
    iterate_pairs,
    read_lines,
    read_pairs,
    read_texts,
)
from tests.data.files import PAIRS, tmx, write

# Text that can stand in a line; U+2028, U+0085 and a bare carriage return end no line.
LINES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n\t\r\ufeff")
) | st.sampled_from(["a\u2028b", "a\x85b", "a\rb", "<b>&amp;\"'", " ", ""])


WRITERS = {
    ".tsv": lambda pairs: "".join(f"{en}\t{de}\n" for en, de in pairs),
    ".txt": lambda pairs: "".join(f"{en}\t{de}\tsome attribution\n" for en, de in pairs),
    ".tmx": tmx,
    ".jsonl": lambda pairs: "".join(json.dumps({"en": e, "de": d}) + "\n" for e, d in pairs),
    ".json": lambda pairs: "\n".join(
        json.dumps({"translation": {"de": d, "en": e}}, ensure_ascii=False) for e, d in pairs
    ),
}


def in_xml(text: str) -> bool:
    """Whether XML 1.0 allows the characters, and keeps them (a carriage return it does not)."""
    return all(c >= " " and c not in "\ufffe\uffff" for c in text)


def test_both_sides_of_parquet_and_zst(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    pairs = [("one", "eins"), ("two", "zwei")]
    rows = [{"translation": {"en": one, "de": other}} for one, other in pairs]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert read_pairs(tmp_path / "a.parquet") == pairs
    compress = pytest.importorskip("zstandard").ZstdCompressor().compress
    lines = "".join(f"{one}\t{other}\n" for one, other in pairs).encode()
    (tmp_path / "a.tsv.zst").write_bytes(compress(lines))
    assert read_pairs(tmp_path / "a.tsv.zst") == pairs
    (tmp_path / "b.tsv.zst").write_bytes(compress(lines)[:-4])
    with pytest.raises(ValueError, match="truncated or corrupt"):
        read_pairs(tmp_path / "b.tsv.zst")


def test_a_side_of_a_pair_may_have_any_format(tmp_path):
    """A JSON object was read as the text before."""
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    (tmp_path / "a.txt").write_text("eins\nzwei\n")
    expected = [("one", "eins"), ("two", "zwei")]
    assert read_pairs(tmp_path / "a.jsonl", tmp_path / "a.txt") == expected
    (tmp_path / "a.tsv").write_text("one\teins\n")
    with pytest.raises(ValueError, match="a.tsv has both sides of pairs: give it alone"):
        read_pairs(tmp_path / "a.tsv", tmp_path / "a.txt")


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("suffix", WRITERS)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(pairs=st.lists(st.tuples(LINES, LINES), max_size=4))
def test_one_file_round_trip(tmp_path, suffix, packed, pairs):
    pairs = [*pairs, PAIRS[0]]  # never all blank
    if suffix == ".tmx":
        pairs = [pair for pair in pairs if in_xml("".join(pair))]
    path = write(tmp_path / f"corpus{suffix}{packed}", WRITERS[suffix](pairs))
    assert read_pairs(path) == pairs
    assert read_pairs(str(path)) == pairs


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(pairs=st.lists(st.tuples(LINES, LINES), max_size=4), ended=st.booleans())
def test_two_files_round_trip(tmp_path, packed, newline, pairs, ended):
    pairs = [*pairs, PAIRS[0]]
    paths = [
        write(tmp_path / f"train.{name}{packed}", newline.join(side) + newline * ended)
        for name, side in zip(("en", "de"), zip(*pairs, strict=True), strict=True)
    ]
    assert read_pairs(*paths) == pairs
    assert read_pairs(*reversed(paths)) == [(de, en) for en, de in pairs]
    assert read_lines(paths[0]) == list(iterate_lines(paths[0])) == [en for en, _ in pairs]


def test_texts_of_one_side(tmp_path):
    for name in ("x.txt", "x.tsv"):
        (tmp_path / name).write_text("one\tlabel\n\n \ntwo\t1\n")
    assert read_texts(tmp_path / "x.txt") == ["one\tlabel", "two\t1"]
    assert read_texts(tmp_path / "x.tsv") == ["two"]


def test_a_tab_in_a_line_file_is_text(tmp_path):
    source = write(tmp_path / "a.en", "one\ttwo\nthree\n")
    target = write(tmp_path / "a.de", "eins\nzwei\n")
    assert read_pairs(source, target) == [("one\ttwo", "eins"), ("three", "zwei")]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("suffix", [".tsv", ".jsonl"])
def test_byte_order_mark_line_ends_and_blank_lines(tmp_path, suffix, newline):
    text = "\ufeff" + WRITERS[suffix](PAIRS).replace("\n", newline) + newline
    assert read_pairs(write(tmp_path / f"corpus{suffix}", text)) == PAIRS


def test_json_records_name_the_languages(tmp_path):
    record = {"en": "dog", "fr": "chien", "source": "x", "target": "y", "id": 3}
    path = write(tmp_path / "a.jsonl", json.dumps(record))
    assert read_pairs(path, source_language="fr", target_language="en") == [("chien", "dog")]
    assert read_pairs(path, source_language="fr", target_language="de") == [("x", "y")]


@pytest.mark.parametrize("form", ["languages", "roles", "translation"])
@pytest.mark.parametrize("streaming", [False, True])
def test_hugging_face_datasets(form, streaming):
    datasets = pytest.importorskip("datasets")
    keys = ("source", "target") if form == "roles" else ("en", "de")
    rows = [dict(zip(keys, pair, strict=True)) for pair in PAIRS]
    if form == "translation":
        rows = [{"id": i, "translation": row} for i, row in enumerate(rows)]
    dataset = datasets.Dataset.from_list(rows)
    if streaming:
        dataset = dataset.to_iterable_dataset()
    assert read_pairs(dataset) == PAIRS
    if form != "roles":
        swapped = read_pairs(dataset, source_language="de", target_language="en")
        assert swapped == [(de, en) for en, de in PAIRS]
    with pytest.raises(ValueError, match="target must be left out"):
        read_pairs(dataset, "train.de")
    with pytest.raises(ValueError, match=r"one split .*\['train'\]"):
        read_pairs(datasets.DatasetDict(train=datasets.Dataset.from_list(rows)))


@pytest.mark.parametrize("row", [{"text": "dog"}, {"en": "dog"}, {"translation": {"en": "dog"}}])
def test_dataset_without_the_columns(row):
    datasets = pytest.importorskip("datasets")
    with pytest.raises(ValueError, match="row 0: expected text under the keys 'en' and 'de'"):
        read_pairs(datasets.Dataset.from_list([row]))


# TMX


@pytest.mark.parametrize("name", ["none.en", "none.en.gz", "none.tsv", "none.tmx", "none.jsonl.gz"])
def test_missing_file(tmp_path, name):
    target = write(tmp_path / "a.de", "eins\n") if name.startswith("none.en") else None
    with pytest.raises(FileNotFoundError, match=name):
        read_pairs(tmp_path / name, target)


def test_pairs_come_before_an_error_of_a_later_line(tmp_path):
    one, other = write(tmp_path / "a.en", "one\ntwo\nthree\n"), write(tmp_path / "a.de", "eins\n")
    pairs = iterate_pairs(one, other)
    assert next(pairs) == ("one", "eins")
    with pytest.raises(ValueError, match=r"a.en has 3, .*a.de has 1\. .*a.de is the shorter one"):
        next(pairs)
    pairs = iterate_pairs(write(tmp_path / "a.tsv", "one\teins\ntwo\n"))
    assert next(pairs) == ("one", "eins")
    with pytest.raises(ValueError, match="line 2: expected two texts"):
        next(pairs)
    with pytest.raises(ValueError, match=r"source must end in one of .*got .*a.en"):
        iterate_pairs(one)


def test_files_of_different_lengths(tmp_path):
    three, two = write(tmp_path / "a.en", "1\n2\n3\n"), write(tmp_path / "a.de.gz", "1\n2\n")
    expected = "a.de.gz is the shorter one: line 3 of .*a.en is the first without a partner"
    with pytest.raises(ValueError, match=f"a.en has 3, .*a.de.gz has 2. .*{expected}"):
        read_pairs(three, two)
    with pytest.raises(ValueError, match=f"a.de.gz has 2, .*a.en has 3. .*{expected}"):
        read_pairs(two, three)


@pytest.mark.parametrize("text", ["", "\n", " \n\u00a0\n"])
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_empty_corpus(tmp_path, text, packed):
    paths = [write(tmp_path / f"a.{name}{packed}", text) for name in ("en", "de")]
    with pytest.raises(ValueError, match=r"empty corpus: .*a.en.* and .*a.de"):
        read_pairs(*paths)
    if text in ("", "\n"):
        with pytest.raises(ValueError, match=r"empty corpus: .*a.tsv"):
            read_pairs(write(tmp_path / f"a.tsv{packed}", text))


def test_one_sided_text_is_an_empty_corpus(tmp_path):
    with pytest.raises(ValueError, match="empty corpus"):
        read_pairs(write(tmp_path / "a.tsv", "one\t\n\tzwei\n"))


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz", "a.jsonl", "a.de", "a.de.gz"])
def test_invalid_utf8(tmp_path, name):
    path = write(tmp_path / name, "ä\t1\n".encode() + "ä\t2\n".encode("latin-1"))
    if name.startswith("a.jsonl"):
        path = write(tmp_path / name, b'{"en": "a", "de": "b"}\n"\xff"\n')
    with pytest.raises(ValueError, match=f"{name}, line 2: invalid UTF-8"):
        read_pairs(path, write(tmp_path / "other", "1\n2\n") if ".de" in name else None)


def test_a_broken_first_line_is_not_read_as_another_encoding(tmp_path):
    with pytest.raises(ValueError, match="line 1: invalid UTF-8"):
        read_lines(write(tmp_path / "a.en", "wide\n".encode("utf-16")))


@pytest.mark.parametrize("name", ["a.en.gz", "a.tmx.gz"])
@pytest.mark.parametrize("damage", ["truncated", "corrupt", "not gzip"])
def test_damaged_gzip(tmp_path, name, damage):
    text = tmx(PAIRS * 500) if ".tmx" in name else os.urandom(2000).hex()
    packed = bytearray(gzip.compress(text.encode()))
    if damage == "truncated":
        del packed[-20:]
    elif damage == "corrupt":
        packed[-5] ^= 255  # in the length field at the end
    else:
        packed = text.encode()
    path = tmp_path / name
    path.write_bytes(packed)
    with pytest.raises(ValueError, match=f"{name}: truncated or corrupt gzip file"):
        read_pairs(path) if ".tmx" in name else read_lines(path)


@pytest.mark.parametrize("line", ["no tab here", " "])
def test_tsv_line_without_a_tab(tmp_path, line):
    path = write(tmp_path / "a.tsv", f"one\teins\n{line}\n")
    with pytest.raises(ValueError, match=f"a.tsv, line 2: expected .* a tab .*got '{line}'"):
        read_pairs(path)


@pytest.mark.parametrize("line", ['{"en": "a"', "[" * 100_000, "en", "{'en': 'a'}"])
def test_malformed_json(tmp_path, line):
    path = write(tmp_path / "a.jsonl", f'{{"en": "a", "de": "b"}}\n\n{line}\n')
    with pytest.raises(ValueError, match=r"a.jsonl, line 3: malformed JSON"):
        read_pairs(path)


@pytest.mark.parametrize(
    "record",
    [
        {"en": "a", "fr": "b"},
        {"en": "a", "de": None},
        {"en": ["a"], "de": ["b"]},
        {"translation": "a"},
        {"translation": {"en": "a"}},
        ["a", "b"],
        "en de",
        7,
    ],
)
def test_json_without_the_keys(tmp_path, record):
    path = write(tmp_path / "a.jsonl", json.dumps(record))
    expected = "a.jsonl, line 1: expected text under the keys 'en' and 'de', or 'source' and"
    with pytest.raises(ValueError, match=expected):
        read_pairs(path)


@pytest.mark.parametrize("name", ["a.en", "a.csv", "a", "a.gz", "a.tmx.zip"])
def test_unknown_extension(tmp_path, name):
    with pytest.raises(ValueError, match=r"source must end in one of \.tsv.*\.gz.*got"):
        read_pairs(write(tmp_path / name, "one\teins\n"))


# Corpora by name


def test_a_file_without_texts(tmp_path):
    (tmp_path / "a.tsv").write_text("sentence\tlabel\n")
    with pytest.raises(ValueError, match="a.tsv must have a line of text, got none"):
        read_texts(tmp_path / "a.tsv")
