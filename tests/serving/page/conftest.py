"""A browser on the page of a server of two small models."""

from types import SimpleNamespace

import pytest
from playwright.sync_api import expect

from keras_transformer.serving import Catalogue, Settings, create_app
from tests.browser import chromium

expect.set_options(timeout=30_000)  # milliseconds: a busy machine needs more than the usual 5,000


# Not for the session: while the browser runs, so does an event loop.
@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def both_ways(folders):
    """English to German and back, so that languages can be swapped."""
    return Catalogue.load([folders[0], f"de-en={folders[1]}"])


@pytest.fixture(scope="module")
def url(served, both_ways):
    settings = Settings(most_characters=500, most_alternatives=3)
    with served(create_app(lambda: both_ways, settings)) as address:
        yield address


@pytest.fixture
def visit(browser, url):
    """`visit.page(address, **context)` opens a page; at the end, no page may have had an error.

    A test adds to `visit.expected` a part of each error message that it expects.
    """
    contexts, errors, requests, expected = [], [], [], []

    def open_page(address=url, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | options)
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda x: errors.append(x.text) if x.type == "error" else None)
        page.on("request", lambda request: requests.append(request.url))

        def dismiss(dialog):
            errors.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        page.on("dialog", dismiss)
        page.goto(address)
        return page

    yield SimpleNamespace(page=open_page, expected=expected)
    for context in contexts:
        context.close()
    assert [x for x in errors if not any(part in x for part in expected)] == []
    assert all(x.startswith("http://127.0.0.1:") for x in requests)


@pytest.fixture
def page(visit):
    """The page with its languages loaded, from English."""
    page = visit.page()
    expect(page.get_by_label("Translate from")).to_have_value("auto")
    page.get_by_label("Translate from").select_option("en")
    return page
