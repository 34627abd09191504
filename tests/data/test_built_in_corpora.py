"""Whole corpora by name."""

import functools
import hashlib
import os
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import keras
import pytest

from keras_transformer import demo
from keras_transformer.data import built_in_corpora as corpora
from keras_transformer.data.built_in_corpora import load_corpus
from tests.data.files import write


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


def test_documents():
    corpus = load_corpus("documents", train_size=50)
    assert corpus.has_documents and not load_corpus("grammar", train_size=50).has_documents
    parts = [corpus.train, corpus.validation, corpus.tests["test"]]
    assert [part.count(("", "")) for part in parts] == [50, 500, 500]
    assert corpus.train[-1] == ("", "") != corpus.train[0]
    assert corpus == load_corpus("documents", train_size=50)
    swapped = load_corpus("documents", source_language="de", target_language="en", train_size=50)
    assert swapped.train == [pair[::-1] for pair in corpus.train]


def test_grammar():
    splits = demo.splits(train=50, validation=1_000, test=1_000, seed=1)
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
        (
            {"name": "wmt14"},
            r"name must be one of \['documents', 'grammar', 'multi30k'\], got 'wmt14'",
        ),
        (
            {"name": "multi30k", "target_language": "es"},
            r"target_language of multi30k must be one of .*'cs'.*got 'es'",
        ),
        (
            {"name": "grammar", "source_language": "fr"},
            r"source_language of grammar must be one of \('en', 'de'\), got 'fr'",
        ),
        ({"name": "grammar", "target_language": "en"}, "must differ"),
        ({"name": "documents", "folder": "x"}, "folder must be None for the embedded corpus"),
        ({"name": "grammar", "folder": "data"}, "folder must be None .*got 'data'"),
    ],
)
def test_unknown_corpus_or_language(arguments, message):
    with pytest.raises(ValueError, match=message):
        load_corpus(**arguments)
