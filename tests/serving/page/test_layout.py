"""The places of things on a laptop and a phone, what scrolls, and words for a touch screen."""

import re

import pytest
from playwright.sync_api import expect

from tests.serving.page.browsing import fits, looks, write

pytestmark = pytest.mark.once("the page: what it shows comes from any backend")

LAPTOP = dict(viewport=dict(width=1280, height=720))
PHONE = dict(viewport=dict(width=390, height=844), is_mobile=True, has_touch=True)
SHORT, LONG = "one two three", "one two three four five six seven. " * 14
SCREENS = pytest.mark.parametrize("screen", [LAPTOP, PHONE], ids=["laptop", "phone"])


@pytest.fixture
def on(visit):
    """`on(screen, text)`: the page with a translated text."""

    def open_page(screen, text, **options):
        page = visit.page(**screen, **options)
        page.get_by_label("Translate from").select_option("en")
        write(page, text)
        expect(page.get_by_role("button", name="Copy")).to_be_enabled()
        return page

    return open_page


def box(page, selector):
    found = page.locator(selector).bounding_box()
    return found["x"], found["y"], found["x"] + found["width"], found["y"] + found["height"]


def test_two_equal_columns_with_their_languages(on):
    page = on(LAPTOP, "x" * 300)
    left, right = box(page, "#drop"), box(page, "#result")
    assert right[2] - right[0] == pytest.approx(left[2] - left[0], abs=1)
    for name, pane in (("#source", left), ("#target", right)):
        x, _, end, _ = box(page, name)
        assert pane[0] <= x < pane[0] + 24 and end - x < 200  # the arrow is beside the name
    x, _, end, _ = box(page, "#swap")
    assert (x + end) / 2 == pytest.approx(right[0], abs=2)


@SCREENS
@pytest.mark.parametrize("text", [SHORT, LONG], ids=["short", "long"])
def test_what_matters_is_on_the_first_screen(on, screen, text):
    page = on(screen, text)
    height = screen["viewport"]["height"]
    assert page.evaluate("() => scrollY") == 0
    for name in ("#source", "#target", "#clear", "#copy", "#look"):
        assert box(page, name)[3] <= height, name
    assert box(page, "#translation")[1] < 0.7 * height
    if text == SHORT:
        assert box(page, "#alternatives")[3] <= height
    assert fits(page)


@SCREENS
def test_a_map_says_that_it_goes_on(on, screen):
    page = on(screen, "one two three four five six seven eight nine ten " * 3)
    view = looks(page)
    more = view.locator("#more")
    expect(more).to_have_text(re.compile("^(Scroll|Swipe) for more [→↓]+$"))
    view.locator("#picture").evaluate("(x) => x.scrollTo(x.scrollWidth, x.scrollHeight)")
    expect(more).to_be_hidden()
    above = view.locator("#frame").evaluate("(x) => x.style.getPropertyValue('--above')")
    left = view.locator("#frame").evaluate("(x) => x.style.getPropertyValue('--left')")
    assert "1" in (above, left)  # these edges are shaded


def test_a_short_map_is_whole(on):
    page = on(LAPTOP, SHORT)
    tokens = {f"{side}_tokens": ["one", "two", "three"] for side in ("source", "target", "input")}
    weights = {part: [[[[0.25, 0.25, 0.5]] * 3]] for part in ("encoder", "decoder", "cross")}
    answer = {"translation": "one two three", **tokens, **weights}
    page.route("**/attention", lambda route: route.fulfill(json=answer))
    view = looks(page)
    expect(view.locator("#more")).to_be_hidden()
    assert view.locator("#picture").evaluate(
        "(x) => x.scrollWidth <= x.clientWidth && x.scrollHeight <= x.clientHeight"
    )


def test_words_for_a_touch_screen(on):
    page = on(PHONE, SHORT)
    expect(page.get_by_label("Text to translate")).to_have_attribute(
        "placeholder", "Type or paste text"
    )
    expect(page.locator("kbd")).to_be_hidden()
    view = looks(page)
    expect(view.locator("#readout")).to_contain_text("Tap a row.")
    view.get_by_text("Lines", exact=True).tap()
    expect(view.locator("#readout")).to_contain_text("Tap a word.")
    for words in ("hover", "click", "Point at", "arrow keys", "mouse", "drop"):
        assert words not in page.locator("body").inner_text()


def test_words_for_a_mouse(on):
    view = looks(on(LAPTOP, SHORT))
    expect(view.locator("#readout")).to_contain_text("Point at a row, or use the arrow keys.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_colour_scheme(on, scheme):
    page = on(LAPTOP, SHORT, color_scheme=scheme)
    style = page.locator("#translate").evaluate("(x) => ({ ...getComputedStyle(x) })")
    ink, ground = (int(re.search(r"\d+", style[x])[0]) for x in ("color", "backgroundColor"))
    assert (ink < ground) == (scheme == "light")


def test_pieces_that_continue_a_word_have_a_hyphen(on):
    page = on(LAPTOP, "one xis.")
    with page.expect_response("**/attention") as response:
        view = looks(page)
    found = response.value.json()
    assert any(found["source_continues"])
    for part, flags in (("thead", "source_continues"), ("tbody", "target_continues")):
        labels = view.locator(f"{part} th span")
        expect(labels).to_have_count(len(found[flags]))
        marks = "(all) => all.map((x) => getComputedStyle(x, '::before').content === '\"-\"')"
        assert labels.evaluate_all(marks) == found[flags]
    expect(view.locator("#readout")).to_contain_text("A hyphen at the start marks a piece")
