"""The page in a browser: texts, languages, files, errors."""

import httpx
from playwright.sync_api import expect

from keras_transformer.serving import Settings, create_app
from tests.serving.page.browsing import looks, translation, write

MARKUP = '<img src=x onerror=alert(1)><script>alert(2)</script>"&amp;'


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


def test_quality_of_a_calibrated_model(visit, served, calibrated, translators, estimator):
    (expected,) = translators[0].translate(["one two."])
    (quality,) = estimator.estimate(translators[0], ["one two."], [expected])
    with served(create_app(lambda: calibrated)) as address:
        page = visit.page(address)
        write(page, "one two.")
        shown = page.locator("#quality")
        expect(shown).to_have_text(f"Quality ≈ {int(100 * round(quality, 4) + 0.5)} %")
        write(page, "")
        expect(shown).to_be_hidden()


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
    expect(source.locator("option").first).to_contain_text("German (detected, ")
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

    too_much = {"status": 413, "json": {"error": "a body must have at most 9 bytes"}}
    page.route("**/translate", once(iter([too_much])))
    write(page, "one two three")
    expect(message).to_have_text(
        "The text is too large for this server: a body must have at most 9 bytes."
    )
    expect(translation(page)).to_be_empty()

    page.route("**/translate", lambda route: route.abort())
    write(page, "one two")
    expect(message).to_contain_text("The server cannot be reached.")
    page.unroute("**/translate")
    expect(translation(page)).to_have_text(expected)
    write(page, "x" * 501)
    too_long = "Too long: at most 500 characters."
    expect(page.locator("#drop").get_by_text(too_long)).to_be_visible()
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


def test_the_text_is_cleared(page):
    clear = page.get_by_role("button", name="Clear text")
    expect(clear).to_be_hidden()
    write(page, "one two")
    expect(translation(page)).not_to_be_empty()
    clear.click()
    expect(page.get_by_label("Text to translate")).to_have_value("")
    expect(page.get_by_label("Text to translate")).to_be_focused()
    expect(translation(page)).to_be_empty()
    expect(clear).to_be_hidden()


def test_one_sees_that_a_translation_is_awaited(page, translators):
    held = []
    page.route("**/translate", lambda route: held.append(route))
    write(page, "one two")
    bar = page.get_by_role("progressbar", name="Translating")
    expect(bar).to_be_visible()
    expect(translation(page)).to_have_attribute("aria-busy", "true")
    expect(page.get_by_role("button", name="Copy")).to_be_disabled()
    page.wait_for_timeout(500)
    held[0].continue_()
    expect(translation(page)).to_have_text(translators[0].translate(["one two"])[0])
    expect(translation(page)).to_have_attribute("aria-busy", "false")
    expect(bar).to_be_hidden()


def test_ctrl_enter_translates_without_a_pause(page):
    page.clock.install()  # the pause never ends
    page.get_by_label("Text to translate").fill("one two")
    page.keyboard.press("Control+Enter")
    expect(translation(page)).not_to_be_empty()


def test_words_that_differ_from_the_best_translation_are_marked(page):
    answer = {"translatedText": "The old man loves the dog.", "alternatives": []}
    answer["alternatives"] += ["The old man likes a dog!", "The man loves the dog."]
    page.route("**/translate", lambda route: route.fulfill(json=answer))
    write(page, "one")
    others = page.locator("#alternatives button")
    first, second = others.nth(0), others.nth(1)
    expect(first.locator("mark")).to_have_text(["likes", "a", "!"])
    expect(first).to_have_text("The old man likes a dog!")
    expect(second.locator("mark")).to_have_text([""])  # the place of a missing word
    expect(second).to_have_text("The man loves the dog.")


def test_text_from_right_to_left(page):
    answer = {"translatedText": "\u05e9\u05dc\u05d5\u05dd", "alternatives": ["hallo"]}
    page.route("**/translate", lambda route: route.fulfill(json=answer))
    write(page, answer["translatedText"])
    expect(translation(page)).to_have_text(answer["translatedText"])
    for box in (translation(page), page.get_by_label("Text to translate")):
        expect(box).to_have_css("direction", "rtl")
    expect(page.locator("#alternatives button")).to_have_css("direction", "ltr")
