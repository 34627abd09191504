"""Tests of keras_transformer.data.corpora."""

import functools
import gzip
import hashlib
import json
import os
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.sax.saxutils import escape

import keras
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_transformer.data import corpora, grammar
from keras_transformer.data.corpora import (
    iterate_lines,
    load_corpus,
    read_lines,
    read_pairs,
    read_texts,
)

PAIRS = [("A dog runs.", "Ein Hund läuft."), ("Two\u2028cats\u00a0sleep.", "Zwei Katzen schlafen.")]
# Text that can stand in a line; U+2028, U+0085 and a bare carriage return end no line.
LINES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n\t\r\ufeff")
) | st.sampled_from(["a\u2028b", "a\x85b", "a\rb", "<b>&amp;\"'", " ", ""])


def write(path: Path, text: str | bytes) -> Path:
    """Writes bytes, or text as UTF-8, packed if the name says so."""
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def tmx(pairs, header="", languages=("en", "de")) -> str:
    units = "".join(
        "<tu>"
        + "".join(
            f'<tuv xml:lang="{language}"><seg>{escape(text)}</seg></tuv>'
            for language, text in zip(languages, pair, strict=True)
        )
        + "</tu>"
        for pair in pairs
    )
    return f'<?xml version="1.0"?>{header}<tmx version="1.4"><header/><body>{units}</body></tmx>'


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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_tmx_encodings(tmp_path, encoding):
    text = tmx(PAIRS[:1])
    if encoding == "latin-1":
        text = text.replace("?>", ' encoding="ISO-8859-1"?>', 1)
    assert read_pairs(write(tmp_path / "a.tmx", text.encode(encoding))) == PAIRS[:1]


@pytest.mark.parametrize(
    ("in_file", "asked", "found"),
    [
        ("en-US", "en", True),
        ("EN_gb", "en", True),
        ("en", "EN", True),
        ("pt-BR", "pt-br", True),
        ("pt-BR", "pt-PT", False),
        ("en", "en-US", False),
        ("enm", "en", False),
    ],
)
def test_tmx_language_matching(tmp_path, in_file, asked, found):
    path = write(tmp_path / "a.tmx", tmx(PAIRS, languages=(in_file, "de-DE")))
    if found:
        assert read_pairs(path, source_language=asked) == PAIRS
    else:
        with pytest.raises(ValueError, match=rf"'{asked}' and 'de'.*\['de-DE', '{in_file}'\]"):
            read_pairs(path, source_language=asked)


def test_tmx_mark_up_variants_and_other_languages(tmp_path):
    body = """<tmx><body>
      <tu><prop>note</prop>
        <tuv xml:lang="fr"><seg>Le <hi>chien</hi></seg></tuv>
        <tuv xml:lang="de"><seg>Der <bpt i="1">&lt;b&gt;</bpt><hi>große <hi>Hund</hi></hi><ept
          i="1">&lt;/b&gt;</ept> &amp; <![CDATA[<ich>]]><ph>x<sub>alt</sub>y</ph>.</seg></tuv>
        <tuv lang="EN"><seg>The big dog &#38; I.</seg></tuv>
        <tuv lang="EN"><seg>A second English text.</seg></tuv>
        <tuv xml:lang="en"><seg>A third English text.</seg></tuv></tu>
      <tu><tuv xml:lang="en"><seg>No German.</seg></tuv></tu></body></tmx>"""
    path = write(tmp_path / "a.tmx", body)
    assert read_pairs(path) == [("The big dog & I.", "Der große Hund & <ich>.")]
    assert read_pairs(path, source_language="fr") == [("Le chien", "Der große Hund & <ich>.")]


def test_tmx_doctype_is_fine_but_no_entity_is_expanded(tmp_path):
    path = tmp_path / "a.tmx"
    system = '<!DOCTYPE tmx SYSTEM "tmx14.dtd">'
    assert read_pairs(write(path, tmx(PAIRS, system))) == PAIRS
    bomb = '<!DOCTYPE tmx [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
    secret = f'<!DOCTYPE tmx [<!ENTITY a SYSTEM "{(tmp_path / "a.tmx").as_uri()}">]>'
    for header in (bomb, secret, system):
        text = tmx([("A &a;", "B")], header).replace("&amp;a;", "&a;")
        with pytest.raises(ValueError, match=r"a.tmx, line 1: malformed TMX.*entity 'a'"):
            read_pairs(write(path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (tmx(PAIRS)[:-10], "a.tmx, line 1: malformed TMX"),
        ("<tmx>\n<body>\n</tmx>", "a.tmx, line 3: malformed TMX"),
        ("not xml", "a.tmx, line 1: malformed TMX"),
        ("", "a.tmx, line 1: malformed TMX"),
        ('<?xml version="1.0" encoding="klingon"?><tmx/>', "a.tmx, line 1: malformed TMX"),
        ('<?xml version="1.0" encoding="gb2312"?><tmx/>', "a.tmx, line 1: malformed TMX"),
        ("<html/>", "languages in the file: none"),
        ("<tmx><seg>a<seg>b</seg></seg><tu><tu></tu></tu></tmx>", "languages in the file: none"),
    ],
)
def test_malformed_tmx(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_pairs(write(tmp_path / "a.tmx", text))


# Bad input


@pytest.mark.parametrize("name", ["none.en", "none.en.gz", "none.tsv", "none.tmx", "none.jsonl.gz"])
def test_missing_file(tmp_path, name):
    target = write(tmp_path / "a.de", "eins\n") if name.startswith("none.en") else None
    with pytest.raises(FileNotFoundError, match=name):
        read_pairs(tmp_path / name, target)


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


def multi30k_files(folder: Path, packed: str = ".gz") -> dict[str, list[str]]:
    """A tiny Multi30k: a text of each file names the file and the line."""
    texts = {}
    for file in corpora.MULTI30K_SHA256:
        stem = file.removesuffix(".gz")
        texts[stem] = [f"{stem} {i}" for i in range(3)]
        write(folder / (stem + packed), "\n".join(texts[stem]) + "\n")
    return texts


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("languages", [("en", "de"), ("fr", "en"), ("cs", "de"), ("en", "cs")])
def test_multi30k_from_a_folder(tmp_path, packed, languages):
    texts = multi30k_files(tmp_path, packed)
    source, target = languages
    corpus = load_corpus("multi30k", tmp_path, source_language=source, target_language=target)

    def expected(part):
        return list(zip(texts[f"{part}.{source}"], texts[f"{part}.{target}"], strict=True))

    assert (corpus.name, corpus.source_language, corpus.target_language) == ("multi30k", *languages)
    assert corpus.train == expected("train")
    assert corpus.validation == expected("val")
    names = ["test_2016_flickr"] + ["test_2017_flickr"] * ("cs" not in languages)
    assert corpus.tests == {name: expected(name) for name in names}


def test_train_size(tmp_path):
    multi30k_files(tmp_path)
    whole = load_corpus("multi30k", tmp_path)
    part = load_corpus("multi30k", tmp_path, train_size=2)
    assert part.train == whole.train[:2]
    assert (part.validation, part.tests) == (whole.validation, whole.tests)
    with pytest.raises(ValueError, match="train_size of multi30k must be at most 3, got 4"):
        load_corpus("multi30k", tmp_path, train_size=4)
    for size in (0, -1):
        with pytest.raises(ValueError, match=f"train_size must be at least 1, got {size}"):
            load_corpus("multi30k", tmp_path, train_size=size)


def test_multi30k_folder_lacks_a_file(tmp_path):
    multi30k_files(tmp_path)
    (tmp_path / "val.de.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"has neither val.de.gz nor val.de"):
        load_corpus("multi30k", tmp_path)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A local home of a tiny Multi30k; gives its folder and the paths that were asked for."""
    folder = tmp_path / "home"
    folder.mkdir()
    multi30k_files(folder)
    asked = []

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    cached = functools.partial(keras.utils.get_file, cache_dir=str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    sums = {
        file: hashlib.sha256((folder / file).read_bytes()).hexdigest()
        for file in corpora.MULTI30K_SHA256
    }
    monkeypatch.setattr(keras.utils, "get_file", cached)
    monkeypatch.setattr(corpora, "MULTI30K_URL", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setattr(corpora, "MULTI30K_SHA256", sums)
    yield folder, asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_multi30k_is_fetched_once(home):
    folder, asked = home
    fetched = load_corpus("multi30k")
    assert fetched == load_corpus("multi30k", folder)
    assert len(asked) == 8  # four parts in two languages
    assert load_corpus("multi30k") == fetched
    assert len(asked) == 8


def test_wrong_checksum(home, monkeypatch):
    folder, _ = home
    write(folder / "val.en.gz", "something else\n")
    with pytest.raises(OSError, match=r"could not get .*val.en.gz.*hash.*Fetch the files by hand"):
        load_corpus("multi30k")


def test_file_gone_from_its_home(home):
    folder, _ = home
    (folder / "test_2016_flickr.de.gz").unlink()
    with pytest.raises(OSError, match=r"could not get .*test_2016_flickr.de.gz.*404"):
        load_corpus("multi30k")


def test_real_multi30k():
    data = os.environ.get("KT_DATA")
    if not data:
        pytest.skip("KT_DATA does not name the folder of the real data")
    folder = Path(data) / "multi30k"
    corpus = load_corpus("multi30k", folder)
    assert len(corpus.train) == 29_000
    assert len(corpus.validation) == 1_014
    assert {k: len(v) for k, v in corpus.tests.items()} == {
        "test_2016_flickr": 1_000,
        "test_2017_flickr": 1_000,
    }
    for file, checksum in corpora.MULTI30K_SHA256.items():
        assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == checksum


def test_grammar():
    splits = grammar.splits(train=50, validation=1_000, test=1_000, seed=1)
    corpus = load_corpus("grammar", train_size=50)
    assert corpus.validation == splits["validation"]
    assert corpus.tests["test"] == splits["test"]
    for lines, part in ((corpus.train, "train"), (corpus.tests["varied"], "test")):
        targets = " ".join(target for _, target in lines)
        assert targets == " ".join(german for _, german in splits[part])
        assert any(source.islower() for source, _ in lines)
        assert any(source.endswith(" .") for source, _ in lines)
        assert any(source[-1].isalpha() for source, _ in lines)
    assert set(corpus.train) & set(splits["train"])  # most are as they were
    assert not set(corpus.tests["varied"]) & set(splits["test"])
    assert corpus == load_corpus("grammar", train_size=50)
    swapped = load_corpus("grammar", source_language="de", target_language="en", train_size=50)
    assert swapped.tests["test"] == [(de, en) for en, de in splits["test"]]
    english = " ".join(en for en, _ in splits["train"])
    assert " ".join(target for _, target in swapped.train) == english


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "wmt14"}, r"name must be one of \['grammar', 'multi30k'\], got 'wmt14'"),
        (
            {"name": "multi30k", "target_language": "es"},
            r"target_language of multi30k must be one of .*'cs'.*got 'es'",
        ),
        (
            {"name": "grammar", "source_language": "fr"},
            r"source_language of grammar must be one of \('en', 'de'\), got 'fr'",
        ),
        ({"name": "grammar", "target_language": "en"}, "must differ"),
        ({"name": "grammar", "folder": "data"}, "folder must be None .*got 'data'"),
    ],
)
def test_unknown_corpus_or_language(arguments, message):
    with pytest.raises(ValueError, match=message):
        load_corpus(**arguments)


def test_a_file_without_texts(tmp_path):
    (tmp_path / "a.tsv").write_text("sentence\tlabel\n")
    with pytest.raises(ValueError, match="a.tsv must have a line of text, got none"):
        read_texts(tmp_path / "a.tsv")
