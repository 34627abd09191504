"""The benchmark of many pairs: test sets without pairs of their own, and a row a direction."""

import gzip
import sys

import pytest

from benchmarks import many_pairs
from keras_transformer import Translator
from keras_transformer.text import SentencePieceTokenizer

TEXTS = {
    "de": [("one", "eins"), ("one", "ein"), ("two", "zwei"), ("three", "drei")],
    "fr": [("three", "trois"), ("one", "un"), ("four", "quatre")],
}


@pytest.fixture
def data(tmp_path):
    for code, pairs in TEXTS.items():
        folder = tmp_path / f"tatoeba-en-{code}"
        folder.mkdir()
        for language, side in zip(("en", code), zip(*pairs, strict=True), strict=True):
            with gzip.open(folder / f"dev.{language}.gz", "wt") as file:
                file.writelines(f"{text}\n" for text in side)
    return tmp_path


@pytest.mark.once("reads files")
def test_directions_without_pairs_share_a_source(data):
    sets = many_pairs.test_sets(data, "dev", ["de", "fr"])
    assert sets["en", "de"] == TEXTS["de"] and sets["fr", "en"][0] == ("trois", "three")
    assert sets["de", "fr"] == [("eins", "un"), ("drei", "trois")]
    assert sets["fr", "de"] == [("un", "eins"), ("trois", "drei")] and len(sets) == 6


@pytest.mark.once("needs no backend")
def test_all_references_of_a_source():
    rows = many_pairs.references([("two", "zwei"), ("one", "ein")], TEXTS["de"])
    assert rows == [["zwei", "ein"], [None, "eins"]]


@pytest.mark.once("runs what other tests run under each backend")
def test_the_table(data, tiny_transformer, monkeypatch, capsys):
    texts = [[text for pairs in TEXTS.values() for _, text in pairs], ["one two three four"]]
    codes = ("en", "de", "fr")
    languages = dict(source_languages=codes, target_languages=codes)
    tokenizer = SentencePieceTokenizer.train(*texts, vocab_size=320, **languages)
    size = tokenizer.source_vocab_size
    ids = {name: getattr(tokenizer, name) for name in ("pad_id", "bos_id", "eos_id")}
    model = tiny_transformer(source_vocab_size=size, target_vocab_size=size, **ids)
    Translator(model, tokenizer).save(data / "many")
    command = ["many_pairs", str(data / "many"), "--data", str(data), "--limit", "2"]
    command += ["--single", f"en-de={data / 'many'}", "--beam-size", "1"]
    monkeypatch.setattr(sys, "argv", command)
    monkeypatch.setattr(many_pairs.contest, "report", lambda *given: print(*given[2]))
    many_pairs.main()
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    rows = {row[0].removeprefix("| "): row for row in rows if len(row) == 9}
    assert rows["de-fr"][1:3] == ["zero-shot", "2"] and rows["de-fr"][5] != ""
    assert rows["en-de"][1] == "trained" and rows["en-de"][3] == rows["en-de"][8].split(" ")[0]
    assert rows["en-de"][5] == "" and rows["en-de"][7] == "0.0" and rows["en-fr"][7] == ""
    monkeypatch.setattr(sys, "argv", [*command, "--single", "en-de"])
    with pytest.raises(SystemExit):
        many_pairs.main()
    assert "--single must read SOURCE-TARGET=FOLDER, got 'en-de'" in capsys.readouterr().err
