"""Live translation in the page: what is written only grows, until its source is edited."""

import contextlib
import itertools
import random

import pytest
from playwright.sync_api import Error, expect

from keras_transformer.text import arriving_text, word_spans
from keras_transformer.translate.live import translate_live
from tests.serving.page.browsing import looks, translation, write

pytestmark = pytest.mark.once("the page: what it shows comes from any backend")

TEXT = "one two six nine ten. six two! one"
ODD = "aé1_ .!?…。！？\"')» \n\tDr e.g.3.Mr’-日本かナกาंé½²…z.B."
ARRIVED = """async (texts) => {
    const words = await import("./words.js");
    return texts.map((text) => [
        words.splitWords(text), words.joinWords(words.splitWords(text)),
        words.splitWords(text).map(words.endsSentence),
        words.arrivedSentences(text + " ").map((x) => [x.before, x.text, x.isWhole]),
    ]);
}"""

# Keeps each state of the translation.
RECORD = """() => {
    const shown = document.getElementById("translation");
    window.states = [];
    const keep = () => states.push(shown.textContent);
    new MutationObserver(keep).observe(shown, { childList: true });
}"""


@pytest.fixture
def live(page):
    """The page, translating live."""
    page.get_by_label("Live").check()
    return page


def test_words_as_they_arrive(live, translators):
    live.evaluate(RECORD)
    words = TEXT.split()
    for i in range(len(words)):
        with live.expect_response("**/live"):
            write(live, " ".join(words[: i + 1]) + " ")
    expected = [x.text + " " * x.ends_sentence for x in translate_live(translators[0], words)]
    shown = "".join(expected[:-1]).strip()  # the last part ends a sentence that is open here
    expect(translation(live)).to_have_text(shown)
    states = live.evaluate("() => states")
    assert len(states) > 3
    assert all(y.startswith(x.rstrip()) for x, y in itertools.pairwise(states))


def test_the_last_mark_is_awaited(live, translators):
    write(live, "one two.")
    (expected,) = translators[0].translate(["one two."], beam_size=1)
    expect(translation(live)).to_have_text(expected)
    expect(looks(live).locator("#pair-source")).to_have_text("one two.")
    live.keyboard.press("Escape")
    write(live, "one two.\n\n six nine")
    expect(translation(live)).to_have_text(expected)
    write(live, "one two.\n\n six nine\n")
    (other,) = translators[0].translate(["six nine"], beam_size=1)
    expect(translation(live)).to_have_text(f"{expected} {other}")
    assert translation(live).text_content() == f"{expected}\n\n {other}"


def test_edited_sentences_are_translated_again(live, translators):
    one, six, ten = translators[0].translate(["one two.", "six nine.", "ten one."], beam_size=1)
    asked = []
    live.on("request", lambda x: asked.append(x.post_data_json["q"]) if "live" in x.url else None)
    write(live, "one two. six nine. ")
    expect(translation(live)).to_have_text(f"{one} {six}")
    write(live, "one two. ten one. ")
    expect(translation(live)).to_have_text(f"{one} {ten}")
    assert asked == ["one two.", "six nine.", "ten one."]
    live.get_by_label("Clear text").click()
    expect(translation(live)).to_be_empty()
    expect(live.get_by_role("button", name="Copy")).to_be_disabled()


def test_it_ends(live, translators):
    write(live, "one two three ")
    expect(translation(live)).not_to_be_empty()
    live.get_by_label("Live").uncheck()
    (expected,) = translators[0].translate(["one two three "])
    expect(translation(live)).to_have_text(expected.strip())
    expect(live.locator("#live-note")).to_be_hidden()


def test_a_language_is_chosen(live, visit):
    live.get_by_label("Translate from").select_option("auto")
    expect(live.get_by_label("Live")).not_to_be_checked()
    live.get_by_label("Live").check()
    expect(live.get_by_label("Translate from")).to_have_value("en")


def test_a_refusal_is_said(live, visit):
    visit.expected.append("400")
    answer = {"error": "live translation needs a saved translator"}
    live.route("**/live", lambda route: route.fulfill(status=400, json=answer))
    write(live, "one two three. ")
    expect(live.locator("#message")).to_have_text(f"The text was not translated: {answer['error']}")
    live.unroute_all()
    write(live, "one two three. six")
    expect(translation(live)).not_to_be_empty()
    expect(live.locator("#message")).to_be_empty()


def test_a_refusal_loses_no_other_sentence(live, visit, translators):
    visit.expected.append("400")
    (one,) = translators[0].translate(["one two."], beam_size=1)
    write(live, "one two. ")
    expect(translation(live)).to_have_text(one)
    live.route("**/live", lambda route: route.fulfill(status=400, json={"error": "no"}))
    write(live, "one two. six nine ten. ")
    expect(live.locator("#message")).to_have_text("The text was not translated: no")
    expect(translation(live)).to_have_text(one)
    expect(translation(live)).to_have_attribute("aria-busy", "false")
    live.unroute_all()
    live.get_by_label("Text to translate").press_sequentially(" ")
    expect(translation(live)).not_to_have_text(one)
    expect(live.locator("#message")).to_be_empty()


def test_what_is_obsolete_is_dropped(live, translators):
    held = []
    live.route("**/live", lambda route: held.append(route))
    write(live, "one two three. ")
    expect(translation(live)).to_have_attribute("aria-busy", "true")
    live.get_by_role("button", name="Swap languages").click()
    expect(live.get_by_label("Text to translate")).to_have_value("one two three. ")
    live.unroute_all()
    for route in held:
        with contextlib.suppress(Error):  # the page has ended these requests
            route.fulfill(status=400, json={"error": "late"})
    write(live, "ein. ")
    (expected,) = translators[1].translate(["ein."], beam_size=1)
    expect(translation(live)).to_have_text(expected)
    expect(live.locator("#message")).to_be_empty()


def test_too_long_a_text(live):
    write(live, "one two. ")
    expect(translation(live)).not_to_be_empty()
    write(live, "one two. " + "x" * 500)
    expect(translation(live)).to_be_empty()
    expect(live.locator("#text-message")).to_contain_text("Too long")


def test_words_and_sentences_are_those_of_python(page):
    draw = random.Random(0)
    texts = ["".join(draw.choices(ODD, k=draw.randrange(16))) for _ in range(500)]
    for text, arrived in zip(texts, page.evaluate(ARRIVED, texts), strict=True):
        words = word_spans.split_words(text)
        assert arrived[0] == words, repr(text)
        assert arrived[1] == word_spans.join_words(words), repr(text)
        assert arrived[2] == [*map(arriving_text.ends_sentence, words)], repr(text)
        sentences = []
        for part, ends in arriving_text.sentence_parts(text + " "):
            if part:
                sentences.append((part, ends))
        got = [(word_spans.split_words(x), is_whole) for _, x, is_whole in arrived[3]]
        assert got == sentences, repr(text)
        joined = "".join(before + x for before, x, _ in arrived[3])
        assert text.startswith(joined) and not text.removeprefix(joined).strip()
