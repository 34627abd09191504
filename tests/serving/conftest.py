"""A small translator of random weights, and a server of it."""

import contextlib
import random
import threading

import pytest
import uvicorn
from fastapi.testclient import TestClient

from keras_transformer.inference.translator import Translator
from keras_transformer.serving import Catalogue, Settings, create_app
from keras_transformer.text import SentencePieceTokenizer

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


@pytest.fixture(scope="session")
def translators(tiny_transformer):
    """Translators of two directions: English to German, German to French."""
    choose = random.Random(0).choices
    texts = [" ".join(choose(WORDS, k=1 + i % 6)) + "." for i in range(200)]
    tokenizer = SentencePieceTokenizer.train(texts, texts, vocab_size=320, byte_fallback=True)
    size = tokenizer.source_vocab_size
    sizes = dict(source_vocab_size=size, target_vocab_size=size, max_length=48)
    return [
        Translator(tiny_transformer(**sizes, seed=seed), tokenizer, *languages)
        for seed, languages in enumerate([("en", "de"), ("de", "fr")])
    ]


@pytest.fixture(scope="session")
def folders(translators, tmp_path_factory):
    """The same, saved."""
    place = tmp_path_factory.mktemp("models")
    paths = [place / "en-de", place / "de-fr"]
    for translator, path in zip(translators, paths, strict=True):
        translator.save(path)
    return paths


@pytest.fixture(scope="session")
def catalogue(folders):
    """Both models."""
    return Catalogue.load(folders)


@pytest.fixture(scope="session")
def client(catalogue):
    """A client of a server with both models."""
    settings = Settings(most_characters=500, most_alternatives=3)
    with TestClient(create_app(lambda: catalogue, settings)) as one:
        yield one


@pytest.fixture(scope="session")
def served():
    """`with served(app) as url`: a server on loopback."""

    @contextlib.contextmanager
    def serve(app):
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            assert thread.is_alive()
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        server.should_exit = True
        thread.join()

    return serve


@pytest.fixture(scope="session")
def translated():
    """`translated(client, **fields)`: what /translate answers, English to German by default."""

    def ask(client, **fields):
        response = client.post("/translate", json={"source": "en", "target": "de", **fields})
        assert response.status_code == 200, response.text
        return response.json()

    return ask


@pytest.fixture(scope="session")
def refused():
    """`refused(client, status, path="/translate", **fields)`: the error that it answers."""

    def ask(client, status, path="/translate", **fields):
        fields = {"source": "en", "target": "de", **fields} if path == "/translate" else fields
        response = client.post(path, json=fields)
        assert response.status_code == status, response.text
        return response.json()["error"]

    return ask
