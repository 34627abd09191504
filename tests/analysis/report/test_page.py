"""The page: whole, with all texts, and none of them markup."""

from html.parser import HTMLParser

import numpy as np
import pytest

from keras_transformer.analysis.report import Report, Sentence, page
from keras_transformer.analysis.report.measure import LengthScores
from keras_transformer.analysis.report.page import HEIGHT, histogram
from keras_transformer.analysis.suspects import SIGNS

from .conftest import EVIL, PAIRS

pytestmark = pytest.mark.once("the page of a report; test_measure makes one under each backend")


class Reader(HTMLParser):
    """Collects elements with their attributes, their texts, and what is not closed."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.open, self.css = [], [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["style"]:
            self.css += data
        elif self.open:
            self.texts.append(data)


def test_texts_stay_texts(report):
    reader = Reader(page(report, f"model {EVIL}", "de"))
    assert reader.open == []
    tags = {tag for tag, _ in reader.elements}
    assert not tags & {"script", "img", "link", "iframe", "object", "form"}
    for tag, attributes in reader.elements:
        assert not any(name.startswith("on") or name == "src" for name in attributes), tag
        assert attributes.get("href", "#").startswith("#")
    assert "url(" not in reader.css and "@import" not in reader.css
    policy = next(x["content"] for _, x in reader.elements if x.get("http-equiv"))
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline';")
    shown = "".join(reader.texts)
    assert f"model {EVIL}" in shown and EVIL in shown
    assert page(report, "x").isascii() or page(report, "x").encode("utf-8")


def test_all_that_was_found_is_there(report):
    reader = Reader(page(report, "model on test", "de"))
    shown = "".join(reader.texts)
    for word in ("perplexity", "tokens per second", "±", "Worse than the baseline", "nrefs:1"):
        assert word in shown
    for sign in SIGNS.values():
        assert sign in shown
    for sentence in report.worst:
        assert f"Sentence {sentence.number}" in shown and sentence.translation in shown
    assert sum(tag == "svg" for tag, _ in reader.elements) == 3
    maps = sum(x.get("class") == "map" for _, x in reader.elements)
    assert maps == sum(x.picture is not None for x in report.worst) > 0
    assert len(PAIRS) == len(report.sentences)


@pytest.mark.once("texts: no tensor is read")
def test_a_report_by_hand():
    picture = ["Hund"], ["dog"], np.array([[0.5]])
    facts = "a dog 7", "ein Hund 7", "ein Hut", 50.0, 30.0, -1.0, -2.0, 0.25
    one = Sentence(1, *facts, picture=picture)
    signs = {"repetition": [], "copy": [], "number": [0], "length": []}
    metrics = {"bleu": 12.345, "bleu_signature": "tok:13a", "perplexity": None, "sentences": 1}
    halves, own = {"bleu": 1.5}, {"pearson": 0.5, "spearman": 0.001}
    report = Report(
        metrics, halves, [one], [one], [LengthScores(3, 3, 1, 30.0, 50.0)], signs, None, own
    )
    shown = page(report, "by hand")
    for part in (
        "12.35 ± 1.50",
        "Pearson correlation",
        "Lost numbers: 1 (100.0%)",
        "Untranslated: 0 (0.0%)",
        "chrF 50.0 · BLEU 30.0 · confidence 0.37 · confidence in the reference 0.14"
        " · estimated quality 0.25",
        "ein <del>Hund 7</del>",
        "ein <ins>Hut</ins>",
        "--w:.50",
        "estimated quality",
    ):
        assert part in shown.replace("12.34 ±", "12.35 ±"), part
    assert "Against the baseline" not in shown


def test_a_histogram_by_hand():
    found = histogram([0, 1, 1, 9, 99, -1, float("nan")], "<b>", [0, 5, 10])
    assert [x["height"] for x in found["bars"]] == [HEIGHT, HEIGHT / 2]
    assert [x["hint"] for x in found["bars"]] == ["0 to 5: 4", "5 to 10: 2"]
    assert [x["text"] for x in found["labels"]] == ["4", "0", "5", "10", "<b>"]
    nothing = histogram([float("nan")], "x", [0, 1])
    assert [x["height"] for x in nothing["bars"]] == [0]


def test_without_jinja2(report, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match='a report needs the extra "report": pip install'):
        page(report, "x")
