"""A small translator and a small language model of random weights, and servers of them."""

import contextlib
import random
import shutil
import threading
from functools import partial

import pytest
import uvicorn
from fastapi.testclient import TestClient

from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.models import LLaMA, LLaMAConfig
from keras_transformer.search import TRANSLATE, Search
from keras_transformer.serving import Catalogue, Settings, connections, create_app
from keras_transformer.serving.crowd import Crowd
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.text.chat_template import ChatTemplate
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.translate.quality_estimation import QualityEstimator
from keras_transformer.translate.translator import Translator
from tests.serving.task_folders import make_folders

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
def estimator():
    """A calibration: the quality is 1 + confidence / 20."""
    options = {name: getattr(Search(), name) for name in TRANSLATE}
    return QualityEstimator((-20.0, 0.0), (0.0, 1.0), 100, "", options, ("en", "de"))


@pytest.fixture(scope="session")
def calibrated(folders, estimator, tmp_path_factory):
    """A catalogue of the first translator with that calibration."""
    folder = shutil.copytree(folders[0], tmp_path_factory.mktemp("calibrated") / "en-de")
    estimator.save(folder)
    return Catalogue.load([folder])


@pytest.fixture(scope="session")
def catalogue(folders):
    """Both models."""
    return Catalogue.load(folders)


@pytest.fixture(scope="session")
def writer(randomize):
    """A language model with a chat template."""
    sizes = dict(d_model=16, d_ff=24, num_layers=2, num_heads=2, max_length=160, dropout=0.0)
    texts = [" ".join(WORDS)] * 4
    tokenizer = TextTokenizer.train(texts, kind="bytes", vocab_size=290)
    config = LLaMAConfig(tokenizer.vocab_size, **sizes, bos_id=0, eos_id=0)
    return CausalLM(randomize(LLaMA(config), scale=2.0), tokenizer, ChatTemplate.named("chatml"))


@pytest.fixture(scope="session")
def writer_folder(writer, tmp_path_factory):
    """The same, saved."""
    path = tmp_path_factory.mktemp("writers") / "poet"
    writer.save(path)
    return path


@pytest.fixture(scope="session")
def task_folders(randomize, tmp_path_factory):
    """A model for each task: name -> folder."""
    return make_folders(tmp_path_factory.mktemp("tasks"), randomize)


@pytest.fixture(scope="session")
def tools(task_folders):
    """A catalogue of them."""
    return Catalogue.load(task_folders.values())


@pytest.fixture(scope="session")
def chats(writer_folder):
    """A catalogue of the language model."""
    return Catalogue.load([writer_folder])


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
        http = partial(connections.Connection, crowd=Crowd(connections.MOST))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", http=http))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            assert thread.is_alive()
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        finally:
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
