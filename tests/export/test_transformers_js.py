"""transformers.js translates with an exported folder like the Translator: Node.js, Chromium."""

import functools
import gzip
import http.server
import itertools
import json
import os
import re
import shutil
import threading
from pathlib import Path

import pytest

from keras_transformer import Translator
from keras_transformer.config import TransformerConfig
from keras_transformer.export import onnx
from keras_transformer.models import Transformer
from keras_transformer.text import SentencePieceTokenizer
from tests import node
from tests.browser import chromium
from tests.text.sentences import ENGLISH, GERMAN

pytestmark = pytest.mark.once("the graphs are PyTorch's, whatever trained the model")
SHIPPED = Path(__file__).parent.parent.parent / "saved_models" / "tatoeba"
DEV = Path(os.environ.get("KT_DATA", "none"), "tatoeba-en-de", "dev.en.gz")
PACKAGE = "@huggingface/transformers/dist"


@pytest.fixture(scope="module")
def texts():
    """200 English sentences."""
    if not DEV.is_file():
        return ENGLISH[::2]
    lines = gzip.decompress(DEV.read_bytes()).decode().splitlines()
    return lines[:: len(lines) // 200][:200]


@pytest.fixture(scope="module")
def translations(texts):
    translator = Translator.load(SHIPPED, "float32", "en", "de")
    return translator.translate(texts, beam_size=1, protect=False, max_length=255)


@pytest.fixture(scope="module")
def exported(in_this_process, tmp_path_factory):
    out = tmp_path_factory.mktemp("exported") / "translator"
    languages = dict(source_language="en", target_language="de")
    with in_this_process("transformers_js"), pytest.warns(UserWarning, match="protect is left out"):
        return onnx(SHIPPED, out, layout="transformers-js", **languages)


def test_node_translates_alike(exported, texts, translations):
    package = node.modules() / PACKAGE / "transformers.node.mjs"
    batches = [texts[i : i + 20] for i in range(0, len(texts), 20)]

    def translated(dtype, batches):
        task = json.dumps(dict(dtype=dtype, batches=batches))
        results = json.loads(node.run("translate.mjs", package, exported, input=task))
        return [*itertools.chain(*results)]

    assert translated("fp32", batches) == translations
    assert translated("fp32", [[text] for text in texts[:10]]) == translations[:10]
    rounded = translated("q8", batches[:5])
    same = sum(x == y for x, y in zip(rounded, translations, strict=False))
    # The sentences without `KT_DATA` are unusual, and so less certain.
    assert same >= (0.9 if DEV.is_file() else 0.8) * len(rounded)


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves files of several folders.

    Args:
        folders: The folder of each first part of a path.
    """

    def __init__(self, folders, *arguments):
        self.folders = folders
        super().__init__(*arguments)

    def translate_path(self, path):
        first, _, rest = path.lstrip("/").partition("/")
        return str(self.folders.get(first, Path("none")) / rest)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def address(exported):
    folders = {
        "models": exported.parent,
        "onnxruntime": node.modules() / "onnxruntime-web/dist",
        "pages": node.SCRIPTS,
        "transformers": node.modules() / PACKAGE,
    }
    handler = functools.partial(Files, folders)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_chromium_translates_alike(address, texts, translations):
    requests = []
    with chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{address}/pages/translate.html")
        page.wait_for_function("() => window.translate !== undefined")
        results = page.evaluate("texts => translate(texts)", texts[:20])
    assert results == translations[:20]
    assert all(x.startswith((address, f"blob:{address}")) for x in requests)


def test_a_text_names_its_language(exported, in_this_process, tmp_path, monkeypatch):
    """Without a target language, the tag in a text does; the graphs are the same."""

    def copied(module, task, backend):
        shutil.copytree(exported / "onnx", Path(task["path"], "onnx"))

    monkeypatch.setattr("keras_transformer.export.transformers_js.run_elsewhere", copied)
    with pytest.warns(UserWarning, match="protect is left out"):
        out = onnx(SHIPPED, tmp_path / "translator", layout="transformers-js")
    package = node.modules() / PACKAGE / "transformers.node.mjs"
    task = json.dumps(dict(dtype="fp32", batches=[[">>de<< I am tired.", ">>fr<< I am tired."]]))
    results = json.loads(node.run("translate.mjs", package, out, input=task))[0]
    for language, result in zip(("de", "fr"), results, strict=True):
        translator = Translator.load(SHIPPED, "float32", "en", language)
        assert [result] == translator.translate(["I am tired."], beam_size=1)


def test_the_example_of_the_documentation(exported, tmp_path):
    """The example imports the package by its name, so it must be beside `node_modules`."""
    script = node.modules().parent / "example.mjs"
    shutil.copy(node.SCRIPTS / "example.mjs", script)
    shutil.copytree(exported, tmp_path / "served" / "tatoeba-de")
    output = node.run(script, cwd=tmp_path)
    assert re.search(r"translation_text: 'Wo ist .*Bahnhof\?'", output), output


def test_what_does_not_fit_is_refused(tmp_path, randomize, monkeypatch):
    def save(name, config=(), search=(), **options):
        tokenizer = SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=360, **options)
        sizes = tokenizer.source_vocab_size, tokenizer.target_vocab_size
        sizes = dict(zip(("source_vocab_size", "target_vocab_size"), sizes, strict=True))
        fields = dict(d_model=8, d_ff=8, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
        model = Transformer(TransformerConfig(**sizes | fields | dict(config)))
        translator = Translator(randomize(model), tokenizer, "en", "de")
        translator.search = dict(search)
        translator.save(tmp_path / name)
        return tmp_path / name

    for folder, message in (
        (save("two", dict(share_embeddings=False), shared=False), "one vocabulary, got 'Sent"),
        (save("ssru", dict(decoder_recurrence="ssru")), "decoder_recurrence must be None"),
        (save("same", dict(eos_id=(3, 2))), "bos_id must be another id than EOS"),
        (save("search", search=dict(diversity_rate=0.5)), "diversity_rate must be"),
    ):
        with pytest.raises(ValueError, match=message):
            onnx(folder, tmp_path / "out", layout="transformers-js")
    monkeypatch.setattr("keras_transformer.export.transformers_js.LARGEST", 10)
    with pytest.raises(ValueError, match="model must be at most 10 bytes of weights"):
        onnx(folder, tmp_path / "out", layout="transformers-js")
    with pytest.raises(ValueError, match="layout must be 'transformers-js' or None, got 'web'"):
        onnx(folder, tmp_path / "out", layout="web")
    assert not (tmp_path / "out").exists()
