"""Every command reads every format: the same texts, and no mark-up."""

import gzip
import json
from types import SimpleNamespace

import pytest

from keras_transformer.cli.reading import read_lines, read_whole_lines
from keras_transformer.translate.translator import Translator

PAIRS = [("one two", "eins zwei"), ("three", "drei")]


class Echo:
    """A translator whose translations are the texts in capitals."""

    source_language, target_language, tokenizer = "en", "de", None

    def translate(self, texts, **options):
        return [x.upper() for x in texts]

    def nbest(self, texts, **options):
        return [[SimpleNamespace(text=x.upper())] for x in texts]

    def sample(self, texts, **options):
        return [x.upper() for x in texts]


def tmx():
    unit = "<tu><tuv xml:lang='en'><seg>{}</seg></tuv><tuv xml:lang='de'><seg>{}</seg></tuv></tu>"
    return "<tmx><body>" + "".join(unit.format(*x) for x in PAIRS) + "</body></tmx>"


@pytest.fixture
def files(tmp_path):
    """The same pairs in each format."""
    records = [{"en": one, "de": other} for one, other in PAIRS]
    contents = {
        "a.jsonl": "".join(json.dumps(x) + "\n" for x in records),
        "a.tsv": "".join("\t".join(x) + "\n" for x in PAIRS),
        "a.tmx": tmx(),
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(contents["a.jsonl"].encode()))
    found = {"a.jsonl": "en", "a.tsv": None, "a.tmx": None, "b.jsonl.gz": "en"}
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        pass
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), tmp_path / "a.parquet")
        found["a.parquet"] = "en"
    return {tmp_path / name: field for name, field in found.items()}


def test_texts_of_each_format(files):
    for path, field in files.items():
        assert list(read_lines(path, field, "en")) == [one for one, _ in PAIRS]
        other = {"a.tsv": "2"}.get(path.name, "de")
        assert list(read_lines(path, other, "en")) == [two for _, two in PAIRS]


def test_whole_lines(files, tmp_path):
    assert len(list(read_whole_lines(tmp_path / "a.jsonl"))) == 2
    with pytest.raises(ValueError, match="--input must be text, TSV or JSON lines, got"):
        read_whole_lines(tmp_path / "a.tmx")


def test_translate_distill_and_back_translate(run, failure, files, tmp_path, monkeypatch):
    monkeypatch.setattr(Translator, "load", lambda folder, *_, **options: Echo())
    upper = [one.upper() for one, _ in PAIRS]
    for number, (path, field) in enumerate(files.items()):
        given = ["--input", path, *(["--text-field", field] if field else [])]
        assert run("translate", "x", *given).stdout.splitlines() == upper
        out = tmp_path / f"{number}.out"
        run("distill", "x", *given, "--output", out)
        expected = [f"{one}\t{one.upper()}" for one, _ in PAIRS]
        assert out.read_text().splitlines() == expected
        out = tmp_path / f"{number}.back"
        if path.suffix == ".tsv":
            wanted = failure(run("back-translate", "x", *given, "--output", out, status=2))
            assert "--text-field must be the column of" in wanted
            given += ["--text-field", "1"]
        run("back-translate", "x", *given, "--output", out)
        expected = [f"<BT> {one.upper()}\t{one}" for one, _ in PAIRS]
        assert out.read_text().splitlines() == expected
    text = tmp_path / "a.txt"
    text.write_text("one\n")
    for command in ("translate", "distill", "back-translate"):
        given = [command, "x", "--input", text, "--text-field", "en", "--output", tmp_path / "o"]
        assert "--text-field names a field of JSON lines" in failure(run(*given, status=2))
    assert "--text-field must be left out with stdin" in failure(
        run("translate", "x", "--text-field", "en", stdin="one\n", status=2)
    )


def test_references_of_any_format(run, files, tmp_path, monkeypatch):
    monkeypatch.setattr(Translator, "load", lambda folder, *_, **options: Echo())
    given = ["--input", tmp_path / "a.tmx", "--reference", tmp_path / "a.tmx"]
    run("distill", "x", *given, "--output", tmp_path / "o")
    assert (tmp_path / "o").read_text().splitlines()[0] == "one two\tONE TWO"
