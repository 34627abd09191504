"""Steps that tests of the page share."""

import httpx
from playwright.sync_api import expect


def write(page, text):
    page.get_by_label("Text to translate").fill(text)


def translation(page):
    return page.locator("#translation")


def looks(page):
    """Opens the view of attention."""
    expect(page.get_by_role("button", name="Attention")).to_be_enabled()
    page.get_by_role("button", name="Attention").click()
    expect(page.get_by_role("grid")).to_be_visible()
    return page.get_by_role("dialog")


def attention(url, text, **fields):
    fields = {"q": text, "source": "en", "target": "de", **fields}
    return httpx.post(f"{url}/attention", json=fields).json()


def fits(page):
    """Whether nothing is wider than the screen."""
    return page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def mean(heads):
    return [[sum(x) / len(x) for x in zip(*rows, strict=True)] for rows in zip(*heads, strict=True)]


def percent(weight):
    return "< 1 %" if 0 < weight < 0.005 else f"{int(100 * weight + 0.5)} %"
