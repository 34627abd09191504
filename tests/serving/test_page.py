"""The page, used in a browser as people use it."""

import re
import shutil
from importlib import resources
from types import SimpleNamespace

import httpx
import pytest
from playwright.sync_api import expect, sync_playwright

from keras_transformer.serving import Catalogue, Settings, create_app

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
).split()
PAGE = resources.files("keras_transformer.serving") / "page"
MARKUP = '<img src=x onerror=alert(1)><script>alert(2)</script>"&amp;'

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


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
    """`visit(address, **context)`: a page, which in the end must have had no error.

    What a test expects to fail, as part of an error's text, it adds to `visit.expected`.
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
    """The page, its languages there."""
    page = visit.page()
    expect(page.get_by_label("Translate from")).to_have_value("auto")
    page.get_by_label("Translate from").select_option("en")
    return page


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


def mean(heads):
    return [[sum(x) / len(x) for x in zip(*rows, strict=True)] for rows in zip(*heads, strict=True)]


def percent(weight):
    return "< 1 %" if 0 < weight < 0.005 else f"{int(100 * weight + 0.5)} %"


def test_a_text_is_translated_as_it_is_typed(page, translators):
    asked = []
    page.on("request", lambda x: asked.append(x) if x.url.endswith("/translate") else None)
    page.get_by_label("Text to translate").press_sequentially("one two three.")
    (expected,) = translators[0].translate(["one two three."])
    expect(translation(page)).to_have_text(expected)
    expect(translation(page)).to_have_attribute("lang", "de")
    expect(page.locator("#count")).to_have_text("14 / 500")
    assert len(asked) < len("one two three.")  # not one a key
    write(page, "")
    expect(translation(page)).to_be_empty()
    expect(page.get_by_role("button", name="Attention")).to_be_disabled()


def test_white_space_stays(page, translators):
    one, six = translators[0].translate(["one two.", "six nine!"])
    write(page, "one two.\n\n six nine!")
    expect(translation(page)).not_to_be_empty()
    assert translation(page).text_content() == f"{one}\n\n {six}"


def test_an_answer_that_comes_late_is_dropped(page, translators):
    first = []

    def hold(route):
        if route.request.post_data_json["q"] == "one":
            first.append(route)
        else:
            route.continue_()

    page.route("**/translate", hold)
    write(page, "one")
    page.wait_for_timeout(500)
    write(page, "six nine")
    (expected,) = translators[0].translate(["six nine"])
    expect(translation(page)).to_have_text(expected)
    assert first
    first[0].fulfill(json={"translatedText": "late"})
    page.wait_for_timeout(100)
    expect(translation(page)).to_have_text(expected)


def test_languages_are_detected_limited_and_swapped(page, translators):
    source, target = page.get_by_label("Translate from"), page.get_by_label("Translate into")
    assert target.locator("option").all_text_contents() == ["German"]
    source.select_option("auto")
    target.select_option("en")
    text = "Das ist ein Haus und kein Hund."
    write(page, text)
    expect(source.locator("option").first).to_have_text("Auto: German")
    (english,) = translators[1].translate([text])
    expect(translation(page)).to_have_text(english)
    page.get_by_role("button", name="Swap languages").click()
    expect(source).to_have_value("en")
    expect(target).to_have_value("de")
    expect(page.get_by_label("Text to translate")).to_have_value(english)
    (german,) = translators[0].translate([english])
    expect(translation(page)).to_have_text(german)
    source.select_option("de")
    expect(target).to_have_value("en")


def test_an_alternative_is_shown_and_looked_at(page, translators):
    (found,) = translators[0].nbest(["one two three"], num_hypotheses=4)
    write(page, "one two three")
    others = page.locator("#alternatives button")
    expect(others).to_have_text([x.text for x in found[1:]])
    others.nth(1).click()
    expect(translation(page)).to_have_text(found[2].text)
    expect(others.nth(1)).to_have_text(found[0].text)
    expect(others.nth(1)).to_be_focused()
    expect(looks(page).locator("#pair-target")).to_have_text(found[2].text)


def test_the_copy(page, translators):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    write(page, "one two three")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied == translation(page).text_content()


def test_the_heat_map_says_a_rows_weights(page, url):
    write(page, "one two three")
    view = looks(page)
    found = attention(url, "one two three")
    weights = mean(found["cross"][-1])
    grid = view.get_by_role("grid")
    headings = [*found["source_tokens"], *found["target_tokens"]]
    assert grid.locator("th").all_text_contents() == headings
    grid.locator("tbody tr").nth(1).get_by_role("rowheader").hover()
    readout = view.locator("#readout")
    best = max(range(len(weights[1])), key=weights[1].__getitem__)
    words = f"To write {found['target_tokens'][1]}, the model looks at "
    expect(readout).to_contain_text(f"{words}{found['source_tokens'][best]} ")
    expect(readout).to_contain_text(percent(weights[1][best]))
    expect(grid.locator("tr.on th")).to_have_text(found["target_tokens"][1])
    grid.locator("tbody tr").nth(2).locator("td").nth(0).hover()
    here = f"Here: {found['source_tokens'][0]} {percent(weights[2][0])}."
    expect(readout).to_contain_text(here)
    view.locator("h2").hover()
    expect(grid.locator("tr.on")).to_have_count(0)


def test_parts_layers_and_heads(page, url):
    write(page, "one two three")
    view = looks(page)
    found = attention(url, "one two three")
    for part, rows, columns in [
        ("Encoder", "source_tokens", "source_tokens"),
        ("Decoder", "target_tokens", "input_tokens"),
        ("Cross", "target_tokens", "source_tokens"),
    ]:
        view.get_by_text(part, exact=True).click()
        layers = found[part.lower()]
        assert view.get_by_label("Layer").locator("option:enabled").count() == len(layers)
        view.get_by_label("Layer").select_option("1")
        view.locator("#one-head").get_by_text("2", exact=True).click()
        assert view.locator("thead th").all_text_contents() == found[columns]
        assert view.locator("tbody th").all_text_contents() == found[rows]
        cells = view.locator("tbody td").evaluate_all("cells => cells.map((x) => x.ariaLabel)")
        assert cells == [
            f"{row}, {column}: {percent(weight)}"
            for row, weights in zip(found[rows], layers[0][1], strict=True)
            for column, weight in zip(found[columns], weights, strict=True)
        ]


def test_lines_between_words(page, url):
    write(page, "one two three")
    view = looks(page)
    view.get_by_text("Lines", exact=True).click()
    heads = attention(url, "one two three")["cross"][-1]
    drawn = view.locator(".lines line")
    expect(drawn).to_have_count(sum(x >= 0.02 for head in heads for row in head for x in row))
    view.get_by_role("toolbar", name="Translation").get_by_role("button").nth(1).hover()
    own = view.locator(".lines line.on")
    expect(own).to_have_count(sum(x >= 0.02 for head in heads for x in head[1]))
    expect(view.locator("#readout")).to_contain_text("To write ")
    expect(view.locator(".lines line:not(.on)").first).to_have_css("opacity", "0")
    view.get_by_role("toolbar", name="Text").get_by_role("button").first.focus()
    expect(own).to_have_count(sum(row[0] >= 0.02 for head in heads for row in head))
    expect(view.locator("#readout")).to_contain_text(" is looked at to write ")
    view.locator("#some-heads").get_by_text("1", exact=True).click()
    expect(drawn).to_have_count(sum(x >= 0.02 for row in heads[1] for x in row))
    view.locator("#some-heads").get_by_text("2", exact=True).click()
    expect(drawn).to_have_count(0)


def test_the_sentence_at_the_cursor_is_looked_at(page, translators):
    one, six = translators[0].translate(["one two.", "six nine!"])
    write(page, "one two. six nine!")
    view = looks(page)
    expect(view.get_by_label("Sentence")).to_have_value("six nine!")
    expect(view.locator("#pair-target")).to_have_text(six)
    view.get_by_label("Sentence").select_option("one two.")
    expect(view.locator("#pair-target")).to_have_text(one)


def test_by_keyboard_alone(page, translators):
    press = page.keyboard.press
    page.get_by_label("Text to translate").focus()
    page.keyboard.type("one two")
    expect(page.get_by_role("button", name="Attention")).to_be_enabled()
    for _ in range(20):
        press("Tab")
        if page.evaluate("() => document.activeElement.id") == "look":
            break
    press("Enter")
    view = page.get_by_role("dialog")
    expect(view.get_by_role("grid")).to_be_visible()
    for name in ("Close", "Map", "Layer", "Cross", "Mean"):
        focused = view.locator(":focus")
        assert name in (focused.get_attribute("aria-label") or focused.evaluate(LABEL))
        press("Tab")
    grid = view.get_by_role("grid")
    expect(grid.locator("tr").nth(1).locator("td").first).to_be_focused()
    press("ArrowDown")
    press("ArrowRight")
    press("End")
    press("ArrowLeft")
    columns = grid.locator("thead th").count()
    expect(grid.locator("tr").nth(2).locator("td").nth(columns - 2)).to_be_focused()
    row = grid.locator("tbody th").nth(1).text_content()
    expect(view.locator("#readout")).to_contain_text(f"To write {row}, the model looks at ")
    press("Escape")
    expect(view).to_be_hidden()
    expect(page.get_by_role("button", name="Attention")).to_be_focused()
    page.get_by_label("Text to translate").focus()
    press("Control+Enter")
    expect(view.get_by_role("grid")).to_be_visible()


LABEL = "(element) => element.closest('label').textContent"


def test_markup_stays_text(page, url):
    fields = {"q": MARKUP, "source": "en", "target": "de"}
    expected = httpx.post(f"{url}/translate", json=fields).json()["translatedText"]
    write(page, MARKUP)
    expect(translation(page)).to_have_text(expected)
    answer = {"translatedText": MARKUP, "alternatives": [MARKUP + "1", MARKUP + "2"]}
    page.route("**/translate", lambda route: route.fulfill(json=answer))
    tokens = dict(source_tokens=[MARKUP], target_tokens=[MARKUP], input_tokens=[MARKUP])
    weights = {name: [[[[1.0]]]] for name in ("encoder", "decoder", "cross")}
    looked = {"translation": MARKUP, **tokens, **weights}
    page.route("**/attention", lambda route: route.fulfill(json=looked))
    write(page, "one")
    expect(translation(page)).to_have_text(MARKUP)
    expect(page.locator("#alternatives li")).to_have_text([MARKUP + "1", MARKUP + "2"])
    view = looks(page)
    view.get_by_role("gridcell").last.hover()
    expect(view.locator("#readout")).to_contain_text(MARKUP)
    view.get_by_text("Lines", exact=True).click()
    expect(view.get_by_role("toolbar").first).to_contain_text(MARKUP)
    page.keyboard.press("Escape")
    file = {"name": MARKUP.replace("/", "") + ".exe", "mimeType": "text/plain", "buffer": b"one"}
    page.route("**/translate_file", lambda route: route.fulfill(json={"translatedFileUrl": MARKUP}))
    page.locator("#file").set_input_files(file)
    expect(page.locator("#file-message")).to_contain_text("Translated: ")
    assert page.locator("body script, main img, dialog img").count() == 0


def test_errors_are_said_in_words(visit, page, translators):
    visit.expected += ["429", "413", "403", "net::ERR_FAILED"]
    (expected,) = translators[0].translate(["one two"])
    busy = iter([{"status": 429, "headers": {"Retry-After": "1"}, "json": {"error": "full"}}])

    def once(answers):
        def answer(route):
            found = next(answers, None)
            route.fulfill(**found) if found else route.continue_()

        return answer

    message = page.locator("#message")
    page.route("**/translate", once(busy))
    write(page, "one two")
    expect(message).to_have_text("The server is busy. Trying again in 1 s.")
    expect(translation(page)).to_have_text(expected)
    expect(message).to_be_empty()

    too_much = {"status": 413, "json": {"error": "a body may have 9 bytes"}}
    page.route("**/translate", once(iter([too_much])))
    write(page, "one two three")
    expect(message).to_have_text("The text is too large for this server: a body may have 9 bytes.")
    expect(translation(page)).to_be_empty()

    page.route("**/translate", lambda route: route.abort())
    write(page, "one two")
    expect(message).to_contain_text("The server cannot be reached.")
    page.unroute("**/translate")
    expect(translation(page)).to_have_text(expected)
    write(page, "x" * 501)
    expect(message).to_have_text("The text is too long: at most 500 characters.")
    expect(page.locator("#count")).to_have_text("501 / 500")


def test_a_key_is_asked_for_where_one_is_needed(visit, served, both_ways, translators):
    visit.expected += ["403"]
    with served(create_app(lambda: both_ways, Settings(api_key="ключ"))) as address:
        page = visit.page(address)
        write(page, "one two")
        expect(page.locator("#message")).to_contain_text("needs an API key")
        page.get_by_label("API key").fill("ключ")
        page.get_by_label("API key").blur()
        expect(translation(page)).not_to_be_empty()
        page.reload()
        expect(page.get_by_label("API key")).to_have_value("ключ")
        page.close()


def test_a_file_is_translated(page, translators):
    expect(page.get_by_label("API key")).to_be_hidden()
    (expected,) = translators[0].translate(["one two."])
    file = {"name": "a b.txt", "mimeType": "text/plain", "buffer": b"one two.\n"}
    page.get_by_label("Translate a file").set_input_files(file)
    link = page.get_by_role("link", name="a b.de.txt")
    with page.expect_download() as download:
        link.click()
    with open(download.value.path(), encoding="utf-8") as found:
        assert found.read() == expected + "\n"


def test_a_phone(visit):
    page = visit.page(viewport=dict(width=360, height=640), has_touch=True)
    page.get_by_label("Translate from").select_option("en")
    write(page, "one two three four five six seven eight nine ten " * 3 + "x" * 90)
    expect(translation(page)).not_to_be_empty()

    def fits():
        return page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")

    assert fits()
    write(page, "one two three four five six seven eight. one two three four five.")
    view = looks(page)
    box = view.bounding_box()
    assert view.evaluate("(x) => x.scrollWidth <= x.clientWidth")
    assert fits() and box["x"] >= 0 and box["width"] <= 360
    view.get_by_role("grid").locator("td").nth(3).tap()
    expect(view.locator("#readout")).to_contain_text("To write ")
    view.get_by_text("Lines", exact=True).click()
    assert fits()
    assert view.evaluate("(x) => x.scrollWidth <= x.clientWidth")
    assert view.locator("#picture").evaluate("(x) => x.scrollWidth <= x.clientWidth")


def test_colours_have_enough_contrast():
    found = re.findall(r"--([\w-]+): #(\w{6});", (PAGE / "page.css").read_text())
    for start in (0, len(found) // 2):  # light, dark
        colours = {}
        for name, code in found[start : start + len(found) // 2]:
            parts = [int(code[i : i + 2], 16) / 255 for i in (0, 2, 4)]
            linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
            colours[name] = sum(
                x * y for x, y in zip(linear, (0.2126, 0.7152, 0.0722), strict=True)
            )

        def contrast(one, other, colours=colours):
            dark, light = sorted((colours[one], colours[other]))
            return (light + 0.05) / (dark + 0.05)

        for name in ("ink", "soft", "accent", "error"):
            for ground in ("surface", "ground", "tint"):
                assert contrast(name, ground) >= 4.5, (name, ground)
        for head in range(8):
            assert contrast(f"head-{head}", "surface") >= 4.5
        assert contrast("edge", "surface") >= 3


def test_the_policy_and_the_documentation(visit, url):
    headers = httpx.get(url).headers
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["cache-control"] == "no-cache"
    page = visit.page()
    page.get_by_role("link", name="API").click()
    expect(page.locator("#operations-translate-translate_translate_post")).to_be_visible()
