"""The folder of a page that translates: its files, its directions, and models that it refuses."""

import gzip
import json
import sys
from pathlib import Path
from unittest import mock

import pytest
from sentencepiece import SentencePieceTrainer

from keras_transformer import export
from keras_transformer.export import graph_folder, web_runtime
from keras_transformer.export.web import check_splits, directions
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translate.translator import Translator
from tests.export.translators import ENGLISH, MADE_UP, save_translator

pytestmark = pytest.mark.once("writes files: the graphs are made by another process")
PAIRS = [("en", "de"), ("de", "en"), ("en", "fr")]


@pytest.fixture(scope="module")
def folder(randomize, tmp_path_factory):
    return save_translator(randomize, tmp_path_factory.mktemp("small"), shared=False)


@pytest.fixture(autouse=True)
def without_programs(monkeypatch):
    """Let no export start a process, and no runtime be fetched."""

    def graphs(module, task, backend):
        assert (module, backend) == ("keras_transformer.export.web_graph", "torch")
        for name in ("encoder", "decoder"):
            Path(task["path"], f"{name}.onnx").write_text(name)

    files = {name: name.encode() for name in (*web_runtime.FILES, *web_runtime.LICENCES)}
    monkeypatch.setattr(graph_folder, "run_elsewhere", graphs)
    module = sys.modules[directions.__module__]  # the package has the function under its name
    monkeypatch.setattr(module, "runtime_files", lambda runtime: files)


def test_files(folder, tmp_path):
    out = export.web(folder, tmp_path / "page", target_language=None)
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert {"index.html", "app.js", "heatmap.js", "runtime/LICENSE"} <= names
    assert not any(name.endswith((".py", ".onnx")) for name in names)
    files = json.loads((out / "files.json").read_text())
    for name, sizes in files["files"].items():
        content = (out / name).read_bytes()
        assert sizes == dict(bytes=len(content), unpacked=len(gzip.decompress(content)))
    facts = json.loads(gzip.decompress((out / "model/translator.json.gz").read_bytes()))
    assert facts["name"] == folder.name
    (direction,) = facts["directions"]
    assert direction["source"] is None and direction["source_frame"] == [[], [3]]
    worker = (out / "service-worker.js").read_text()
    version, page = (line.partition(" = ")[2].rstrip(";") for line in worker.splitlines()[:2])
    assert json.loads(version) == files["version"]
    kept = {*json.loads(page), *files["files"], "service-worker.js"}
    assert kept == {*names, "./"}
    with pytest.raises(FileExistsError, match="page exists: choose another"):
        export.web(folder, out)
    before = files["version"]
    export.web(folder, out, overwrite=True)
    assert json.loads((out / "files.json").read_text())["version"] == before  # the same content


def test_modules_import_only_files_of_the_folder(folder, tmp_path):
    out = export.web(folder, tmp_path / "page")
    for path in out.glob("*.js"):
        for line in path.read_text().splitlines():
            if line.startswith("import "):
                assert (out / line.split('"')[1]).is_file(), line
    assert "//" not in (out / "index.html").read_text().replace("<!--", "")  # no other host


def test_directions(randomize, folder, tmp_path):
    translator = Translator.load(folder)
    assert directions(translator, None, None) == [(None, None)]
    languages = ("en", "de", "fr")
    tokenizer = SentencePieceTokenizer.train(
        ENGLISH, MADE_UP, vocab_size=320, source_languages=languages, target_languages=languages
    )
    translator.tokenizer = tokenizer
    assert len(directions(translator, None, None)) == 6
    assert directions(translator, None, "de") == [("en", "de"), ("fr", "de")]
    translator.directions = tuple(PAIRS)
    assert directions(translator, None, None) == PAIRS
    assert directions(translator, "en", None) == [("en", "de"), ("en", "fr")]
    with pytest.raises(ValueError, match="source_language must be None or one of de, en, got 'fr'"):
        directions(translator, "fr", None)
    with pytest.raises(ValueError, match="target_language must be None or one of en, got 'fr'"):
        directions(translator, "de", "fr")


def test_bad_input(folder, tmp_path, monkeypatch):
    out = tmp_path / "page"
    with pytest.raises(ValueError, match="is not a saved translator"):
        export.web(tmp_path, out)
    translator = Translator.load(folder)
    translator.search = dict(no_repeat_ngram_size=2)
    translator.save(tmp_path / "strict")
    with pytest.raises(ValueError, match="no_repeat_ngram_size must be left out for a page that"):
        export.web(tmp_path / "strict", out)
    failing = mock.patch.object(graph_folder, "run_elsewhere", side_effect=RuntimeError("no"))
    with failing, pytest.raises(RuntimeError, match="no"):
        export.web(folder, out)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match='pip install "torch>=[^ ]* "onnx>='):
        export.web(folder, out)
    assert not out.exists()


def test_only_bpe_and_unigram(tmp_path):
    (tmp_path / "text").write_text("\n".join(ENGLISH))
    for kind in ("unigram", "bpe", "word"):
        prefix = tmp_path / kind
        SentencePieceTrainer.train(
            input=str(tmp_path / "text"), model_prefix=str(prefix), model_type=kind, vocab_size=30,
            hard_vocab_limit=False, minloglevel=2,
        )  # fmt: skip
        model = prefix.with_suffix(".model").read_bytes()
        if kind != "word":
            check_splits(model, "source")
            continue
        with pytest.raises(ValueError, match="source model of the tokenizer must be of type bpe"):
            check_splits(model, "source")
