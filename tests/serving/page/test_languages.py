"""The languages of the page: swapping, detection, the pair in the address."""

import pytest
from playwright.sync_api import expect

from keras_transformer.serving import Settings, create_app
from tests.serving.page.browsing import translation, write

pytestmark = pytest.mark.once("the page: what it shows comes from any backend")

GERMAN = "Das ist ein Haus und kein Hund."


@pytest.fixture(scope="module")
def one_way(served, catalogue):
    """The address of a server from English to German and on to French, with no way back."""
    with served(create_app(lambda: catalogue, Settings(most_characters=500))) as address:
        yield address


def test_languages_that_cannot_be_swapped_are_explained(visit, one_way):
    page = visit.page(one_way)
    page.get_by_label("Translate from").select_option("en")
    page.get_by_label("Translate into").select_option("de")
    swap = page.get_by_role("button", name="Swap languages")
    expect(swap).to_be_disabled()
    why = "One way only: no model translates German into English."
    expect(page.get_by_text(why)).to_be_visible()
    expect(swap).to_have_accessible_description(why)
    page.get_by_label("Translate from").select_option("auto")
    page.get_by_label("Translate into").select_option("fr")
    expect(page.get_by_text("No model translates from French.")).to_be_visible()
    page.get_by_label("Translate into").select_option("de")
    expect(swap).to_be_enabled()  # to German, French
    expect(page.locator("#swap-note")).to_be_hidden()


def test_languages_are_swapped_without_a_text(visit):
    page = visit.page()
    page.get_by_label("Translate into").select_option("de")
    page.get_by_role("button", name="Swap languages").click()
    expect(page.get_by_label("Translate from")).to_have_value("de")
    expect(page.get_by_label("Translate into")).to_have_value("en")


def test_a_detected_language_has_its_confidence(visit):
    page = visit.page()
    page.get_by_label("Translate into").select_option("en")
    answer = {"translatedText": "x", "detectedLanguage": {"language": "de", "confidence": 97.4}}
    page.route("**/translate", lambda route: route.fulfill(json=answer))
    write(page, GERMAN)
    first = page.get_by_label("Translate from").locator("option").first
    expect(first).to_have_text("German (detected, 97 %)")
    expect(page.get_by_label("Text to translate")).to_have_attribute("lang", "de")
    write(page, "")
    expect(first).to_have_text("Detect language")


def test_a_target_that_nobody_chose_gives_way(visit, translators):
    page = visit.page()
    target = page.get_by_label("Translate into")
    (english,) = translators[1].translate([GERMAN])
    write(page, GERMAN)
    expect(translation(page)).to_have_text(english)
    expect(target).to_have_value("en")
    target.select_option("de")
    expect(translation(page)).to_have_text(GERMAN)
    expect(page.get_by_text("The text is in German already.")).to_be_visible()
    expect(target).to_have_value("de")


def test_the_address_keeps_the_pair_but_no_text(visit):
    page = visit.page()
    page.get_by_label("Translate from").select_option("de")
    write(page, "one two")
    expect(translation(page)).not_to_be_empty()
    assert page.url.endswith("/?source=de&target=en")
    page.reload()
    expect(page.get_by_label("Translate from")).to_have_value("de")
    expect(page.get_by_label("Translate into")).to_have_value("en")
    page.goto(page.url.replace("source=de", "source=xx"))
    expect(page.get_by_label("Translate from")).to_have_value("auto")
