"""Live translation in the exported page: as `translate_live` with the page's graphs."""

from types import SimpleNamespace
from unittest import mock

import pytest
from playwright.sync_api import expect

from keras_transformer.search import Search
from keras_transformer.translate.live import WaitK, continue_translation, translate_live
from tests.export.translators import ENGLISH, MADE_UP

pytestmark = pytest.mark.once("the page runs onnxruntime, whatever backend exported it")

TEXT = f"{ENGLISH[0]}. {ENGLISH[17]}! {ENGLISH[40]}"
# Asks the page's worker for the texts to append.
CONTINUE = """async (cases) => {
    const { Client } = await import("./client.js");
    const client = new Client();
    await client.ask("load");
    const results = [];
    for (const [text, written, isWhole] of cases) {
        const fields = { text, written, isWhole, source: "en", target: "de" };
        results.push(await client.ask("continue", fields));
    }
    return results;
}"""


class Runner:
    """The NumPy program, with what `translate_live` asks of a translator."""

    def __init__(self, runner):
        self.runner, self.tokenizer = runner, self
        self.config = SimpleNamespace(max_length=runner.facts["max_length"])

    def options(self, *_, **__):
        return Search(beam_size=1)

    def encode_source(self, texts):
        return [self.runner.source.encode(text) for text in texts]

    def encode_target(self, texts):
        ids = {piece: i for i, piece in enumerate(self.runner.facts["target_pieces"])}
        before, after = self.runner.facts["directions"][0]["target_frame"]
        split = self.runner.target.encode
        unknown = self.runner.facts["unk_id"]
        return [
            [*before, *(ids.get(x, unknown) for x in split(text, out_type=str)), *after]
            for text in texts
        ]

    def hypotheses(self, request, search):
        facts, runner = self.runner.facts, self.runner
        (ids,), before = self.encode_target(request.prefixes), facts["target_frame"]
        after = before[1]
        first = ids[: len(ids) - len(after)]
        (source,) = self.encode_source(request.texts)
        length = len(source) + sum(map(len, facts["source_frame"]))
        longest = max(length, len(first)) + facts["search"]["max_extra_length"]
        options = dict(beam_size=search.beam_size, max_length=longest)
        with mock.patch.dict(facts, target_frame=[first, after]):
            hypotheses = runner.nbest(request.texts[0], **options)
        return [[SimpleNamespace(text=text) for text, _ in hypotheses]]


def test_steps_are_those_of_python(page, runner):
    cases = []
    for text, other in zip(ENGLISH[::9], MADE_UP[::9], strict=True):
        words, written = text.split(), other.split()
        cases += [(" ".join(words[: i + 3]), " ".join(written[:i]), False) for i in range(3)]
        cases.append((text + ".", " ".join(written[:3]), True))
    results = page.evaluate(CONTINUE, [*map(list, cases)])
    steps = [continue_translation(Runner(runner), *x[:2], WaitK(3), x[2]) for x in cases]
    assert results == steps
    assert len(set(results)) > 10


def test_words_as_they_are_typed(page, runner):
    page.get_by_label("Live").check()
    words, text = TEXT.split(), page.get_by_label("Text to translate")
    translation = page.locator("#translation")
    for i in range(1, 1 + len(words)):
        before = translation.text_content()
        text.fill(" ".join(words[:i]) + " ")
        expect(translation).to_have_attribute("aria-busy", "false")
        assert translation.text_content().startswith(before.rstrip())
        assert bool(translation.text_content()) == (i >= 3)
    sentence = f"{ENGLISH[0]}."
    (commit,) = translate_live(Runner(runner), [sentence])
    text.fill("")
    expect(translation).to_be_empty()
    text.fill(f"{sentence} ")
    expect(translation).to_have_text(commit.text)
    page.get_by_label("Live").uncheck()
    expect(translation).to_have_text(runner.translate(sentence))
    expect(page.locator("#alternatives")).to_be_visible()
