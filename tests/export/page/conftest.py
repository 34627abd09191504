"""A page that a small random translator was exported to, on a host of static files."""

import contextlib
import functools
import gzip
import http.server
import threading
from types import SimpleNamespace

import pytest
from playwright.sync_api import expect

from keras_transformer import export
from keras_transformer.config import TransformerConfig
from keras_transformer.export import web_runtime
from keras_transformer.export.web import PAGE
from keras_transformer.models import Transformer
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translate.engines.graph_runner import GraphTranslator
from keras_transformer.translate.translator import Translator
from tests.browser import chromium
from tests.export.translators import ENGLISH, MADE_UP

expect.set_options(timeout=30_000)
LANGUAGES = ("en", "de")


class Handler(http.server.SimpleHTTPRequestHandler):
    """A host of static files that logs nothing."""

    def log_message(self, *_):
        """Write nothing."""


@pytest.fixture(scope="session")
def runtime(tmp_path_factory):
    """A folder with the npm package."""
    try:
        files = web_runtime.runtime_files()
    except RuntimeError as error:
        pytest.skip(f"no runtime: {error}")
    folder = tmp_path_factory.mktemp("runtime")
    (folder / "dist").mkdir()
    for name in web_runtime.FILES:
        (folder / "dist" / name).write_bytes(files[name])
    return folder


@pytest.fixture(scope="session")
def exported(runtime, randomize, in_this_process, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    languages = dict(source_languages=LANGUAGES, target_languages=LANGUAGES)
    tokenizer = SentencePieceTokenizer.train(ENGLISH, MADE_UP, vocab_size=320, **languages)
    size = tokenizer.source_vocab_size
    config = TransformerConfig(
        source_vocab_size=size, target_vocab_size=size, d_model=16, d_ff=32, num_heads=2,
        num_encoder_layers=1, num_decoder_layers=1, max_length=48, norm_first=True,
    )  # fmt: skip
    directions = [LANGUAGES, LANGUAGES[::-1]]
    translator = Translator(randomize(Transformer(config), 2.0), tokenizer, directions=directions)
    translator.search = {"max_extra_length": 8, "protect": True}
    translator.save(folder / "small")
    with in_this_process("graph_folder"), pytest.warns(UserWarning, match="protect is left out"):
        return export.web(folder / "small", folder / "page", runtime=runtime)


@pytest.fixture(scope="session")
def runner(exported, tmp_path_factory):
    """The NumPy program with the page's graphs."""
    folder = tmp_path_factory.mktemp("graphs")
    for path in (exported / "model").iterdir():
        (folder / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    return GraphTranslator(folder, threads=1)


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@contextlib.contextmanager
def hosted(folder):
    """Yield the address of a host of a folder."""
    handler = functools.partial(Handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def url(exported):
    with hosted(exported) as address:
        yield address


@pytest.fixture(scope="module")
def modules(browser):
    """A document from which the modules of the page can be imported."""
    with hosted(PAGE) as address:
        page = browser.new_page()
        page.goto(f"{address}search.js")
        yield page
        page.close()


@pytest.fixture
def visit(browser, url):
    """`visit.page(before)` opens the page; at the end, it may have had no error but the expected.

    `before(page)` is called before the page is opened.
    """
    contexts, errors, requests, expected = [], [], [], []

    def open_page(before=lambda page: None, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda x: errors.append(x.text) if x.type == "error" else None)
        context.on("request", lambda request: requests.append(request.url))
        before(page)
        page.goto(url)
        return page

    yield SimpleNamespace(page=open_page, expected=expected)
    for context in contexts:
        context.close()
    assert [x for x in errors if not any(part in x for part in expected)] == []
    assert all(x.startswith(url) for x in requests), requests


@pytest.fixture
def page(visit):
    """The page, ready to translate."""
    page = visit.page()
    expect(page.get_by_label("Translate from")).to_be_enabled()
    return page
