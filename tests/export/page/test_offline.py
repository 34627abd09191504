"""The exported page in a browser: translations, offline, and what it says when it cannot."""

import re

import pytest
from playwright.sync_api import expect

from tests.export.translators import ENGLISH

pytestmark = pytest.mark.once("the page runs onnxruntime, whatever backend exported it")

SENTENCES = [*ENGLISH[::9], "Two birds, 3 cats!", "ﬁne ½ ☃"]
SEARCHES = [
    dict(beam_size=1),
    dict(beam_size=3, early_stopping=True, length_penalty=1.0),
    dict(scoring="transformers", length_penalty=1.0, forced_eos=False, max_length=6),
    dict(scoring="marian", max_length_factor=2, max_extra_length=50),
]
# Translates in the page's own thread, with other search options.
SEARCH = """async ([texts, searches]) => {
    const load = async (name) => (await import(`./${name}.js`));
    const { files } = await (await fetch("files.json")).json();
    const contents = await (await load("loading")).loadFiles(files, null, undefined, () => {});
    const file = (name) => contents[`${name}.gz`];
    const runtime = await import("./runtime/ort.wasm.bundle.min.mjs");
    const binary = file("runtime/ort-wasm-simd-threaded.wasm").buffer;
    Object.assign(runtime.env.wasm, { numThreads: 1, wasmBinary: binary });
    const { Graphs } = await load("graphs");
    const [encoder, decoder] = ["encoder", "decoder"].map((x) => file(`model/${x}.onnx`));
    const graphs = await Graphs.load(runtime, encoder, decoder);
    const facts = JSON.parse(new TextDecoder().decode(file("model/translator.json")));
    const models = { source: file("model/source.spm"), target: file("model/target.spm") };
    const { Translator } = await load("translator");
    const results = [];
    for (const search of searches) {
        const translator = new Translator(graphs, { ...facts, search }, models);
        const direction = translator.direction("en", "de");
        for (const text of texts) results.push(await translator.nbest(text, direction));
    }
    return results;
}"""


def write(page, text):
    page.get_by_label("Text to translate").fill(text)


def test_ten_sentences_without_a_network(page, runner):
    expect(page.locator("#offline")).to_have_text("Works offline from now on.")
    page.context.set_offline(True)
    page.reload()
    expect(page.get_by_label("Translate from")).to_be_enabled()
    assert len(SENTENCES) >= 10
    for text in SENTENCES:
        write(page, text)
        best, *others = dict.fromkeys(x.strip() for x, _ in runner.nbest(text))
        expect(page.locator("#translation")).to_have_text(best)
        expect(page.get_by_role("button", name="Copy")).to_be_enabled()
        assert page.locator("#alternatives button").all_text_contents() == others
    page.get_by_role("button", name="Swap languages").click()
    runner.facts["source_frame"], before = runner.facts["directions"][1]["source_frame"], best
    expect(page.locator("#translation")).to_have_text(runner.translate(before))
    runner.facts["source_frame"] = runner.facts["directions"][0]["source_frame"]


def test_the_searches_of_the_numpy_program(page, runner):
    results = page.evaluate(SEARCH, [SENTENCES[:4], SEARCHES])
    cases = [(text, search) for search in SEARCHES for text in SENTENCES[:4]]
    for (text, search), hypotheses in zip(cases, results, strict=True):
        options = dict(max_extra_length=50) | search
        expected = runner.nbest(text, **options)
        assert [x["text"] for x in hypotheses] == [text for text, _ in expected], search
        scores = [score for _, score in expected]
        assert [x["score"] for x in hypotheses] == pytest.approx(scores, abs=1e-3)


def test_attention_by_keyboard(page, runner):
    write(page, "the old man")
    expect(page.get_by_role("button", name="Attention")).to_be_enabled()
    page.keyboard.press("Control+Enter")
    view = page.get_by_role("dialog")
    expect(view.get_by_role("grid")).to_be_visible()
    view.get_by_label("Layer").select_option("0")
    view.locator("#one-head").get_by_text("2", exact=True).click()
    assert view.locator("thead th").first.text_content() == ">>de<<"
    assert view.locator("tbody th").last.text_content() == "</s>"
    facts = runner.facts
    before, after = facts["source_frame"]
    pieces = runner.source.encode("the old man", out_type=str)
    source = [*before, *(runner.source_ids[x] for x in pieces), *after]
    memory = runner.graphs.encode([source])
    inputs = {"token_ids": [[facts["bos_id"]]], **memory, **runner.graphs.empty(1, 1)}
    (weights,) = runner.graphs.decoder.run(["attention"], inputs)
    assert weights.shape == (1, 1, 2, len(source))
    cells = (
        view.locator("tbody tr").first.locator("td").evaluate_all("x => x.map((y) => y.ariaLabel)")
    )
    for cell, weight in zip(cells, weights[0, 0, 1], strict=True):
        percent = re.search(r"(?:< )?(\d+) %$", cell)
        assert int(percent[1]) == pytest.approx(100 * weight, abs=1.1)
    page.keyboard.press("Escape")
    expect(view).to_be_hidden()


def test_loading_can_be_cancelled(visit):
    visit.expected.append("net::ERR")
    page = visit.page(lambda page: page.context.route("**/decoder.onnx.gz", lambda route: None))
    expect(page.get_by_role("progressbar", name="Loading the translator")).to_be_visible()
    expect(page.locator("#loading-words")).to_contain_text("Loading the translator: ")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#loading-words")).to_have_text("Loading was cancelled.")
    page.context.unroute_all()
    write(page, "the queen")
    page.get_by_role("button", name="Load the translator").click()
    expect(page.get_by_role("button", name="Copy")).to_be_enabled()


def test_a_translation_can_be_stopped(page):
    text = "The old man sees the dog. The queen hears two birds!\n" * 80
    write(page, text)
    expect(page.locator("#translation")).not_to_be_empty()
    page.keyboard.press("Escape")
    expect(page.locator("#message")).to_have_text("Stopped.")
    expect(page.locator("#translation")).to_be_empty()
    write(page, "the queen. the sea!\n")
    expect(page.get_by_role("button", name="Copy")).to_be_enabled()


def test_layout(page):
    write(page, "two birds " * 9)
    expect(page.get_by_role("button", name="Copy")).to_be_enabled()
    for width in (420, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="Attention").click()
    expect(page.get_by_role("grid")).to_be_visible()
    for width in (420, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.get_by_role("dialog").bounding_box()["width"] <= width


def replaced(path, status=404, body=b""):
    """Return a function that lets a page get another answer for a file."""
    return lambda page: page.context.route(
        f"**/{path}", lambda route: route.fulfill(status=status, body=body)
    )


NO_SIMD = "WebAssembly.validate = () => false"
BAD = {
    "no SIMD": (lambda page: page.add_init_script(NO_SIMD), "it lacks WebAssembly with SIMD"),
    "no runtime": (
        replaced("runtime/*.wasm.gz"),
        "The runtime cannot be loaded: runtime/ort-wasm-simd-threaded.wasm.gz is missing",
    ),
    "no module": (replaced("runtime/*.mjs"), "The runtime cannot be loaded: runtime/ort.wasm"),
    "damaged model": (
        replaced("model/encoder.onnx.gz", 200, b"no"),
        "The model cannot be loaded: model/encoder.onnx.gz is damaged",
    ),
    "no worker": (replaced("worker.js"), "A part of the page is missing"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_work_is_said(visit, kind):
    before, message = BAD[kind]
    visit.expected += ["404", "Failed to load"]
    page = visit.page(before)
    expect(page.locator("#message")).to_contain_text(message)
    assert page.locator("#message").text_content().endswith((".", "whole.")), kind
    if kind != "no SIMD":
        expect(page.get_by_role("button", name="Try again")).to_be_visible()
