"""An error report as one HTML file, which loads nothing and runs no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import resources

import numpy as np

from keras_transformer.analysis.report.differences import differences
from keras_transformer.analysis.report.elements import Element, element, joined, style
from keras_transformer.analysis.report.measure import Report, Sentence
from keras_transformer.analysis.report.pictures import bar, heat_map, histogram
from keras_transformer.analysis.suspects import SIGNS
from keras_transformer.evaluation.tokenizers import lengths_of

# Scripts, and all that would be loaded, are forbidden even if a text became an element.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
MOST_APART = 10  # sentences in which the baseline is better, and in which it is worse
NAMES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}
TITLES = {
    "repetition": "Repeated words",
    "copy": "Untranslated",
    "number": "Lost numbers",
    "length": "Odd lengths",
}


def page(report: Report, title: str, language: str | None = None) -> str:
    """Return a report as the text of an HTML file.

    Args:
        report: The facts.
        title: Name of the model and the test set.
        language: Language code of the translations, for fonts and hyphenation; None: unknown.
    """
    css = (resources.files(__package__) / "report.css").read_text("utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        style(css),
    )
    parts = {
        "Scores": _scores(report),
        "Distributions": _distributions(report),
        "By length of the source": _lengths(report),
        "Signs of errors": _signs(report, language),
        "Against the baseline": report.compared and _against(report, language),
        "Worst sentences": _worst(report, language),
    }
    present = {name: part for name, part in parts.items() if part}
    links = (element("a", name, href=f"#part-{i}") for i, name in enumerate(present))
    sections = (
        element("section", element("h2", name, id=f"part-{i}"), part)
        for i, (name, part) in enumerate(present.items())
    )
    body = element("body", element("h1", title), element("nav", *links), *sections)
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _scores(report):
    rows, notes = [], []
    for name, value in report.metrics.items():
        if name.endswith("_signature"):
            notes.append(element("p", value, class_="soft"))
            continue
        half = report.intervals.get(name)
        shown = _number(value) + ("" if half is None else f" ± {half:.2f}")
        rows.append(_row(NAMES.get(name, name.replace("_", " ")), shown))
    for name, value in (report.correlation or {}).items():
        rows.append(_row(f"{name.title()} correlation of estimated quality", _number(value)))
    note = element("p", "± : 95 % confidence interval by the bootstrap.", class_="soft")
    return joined(_table(rows), note, *notes)


def _distributions(report):
    sentences = report.sentences
    unit, lengths = lengths_of([x.translation for x in sentences])
    widest = max(10, 10 * math.ceil(max(lengths) / 10))
    confidence = np.exp([x.confidence for x in sentences])
    found = [
        histogram([x.chrf for x in sentences], "chrF of a sentence", _edges(100)),
        histogram(lengths, f"{unit} of a translation", _edges(widest)),
        histogram(confidence, "confidence: mean probability of a token", _edges(1)),
    ]
    if sentences[0].quality is not None:
        found.append(histogram([x.quality for x in sentences], "estimated quality", _edges(1)))
    return element("div", *(element("figure", x) for x in found), class_="figures")


def _edges(most):
    return np.linspace(0, most, 21)


def _lengths(report):
    rows = []
    for part in report.parts:
        words = f"{part.least}" if part.least == part.most else f"{part.least}–{part.most}"
        cells = element("td", words), element("td", f"{part.sentences:,}")
        rows.append(element("tr", *cells, bar(part.bleu), bar(part.chrf)))
    unit, _ = lengths_of([x.source for x in report.sentences])
    return _table(rows, unit, "sentences", "BLEU", "chrF")


def _signs(report, language):
    found = []
    for sign, places in report.signs.items():
        share = f"{len(places)} ({len(places) / len(report.sentences):.1%})"
        parts = [
            element("h3", f"{TITLES[sign]}: {share}"),
            element("p", SIGNS[sign], class_="soft"),
        ]
        if places:
            chosen = (_short(report.sentences[i], language) for i in places)
            listed = element("ul", *(element("li", x) for x in chosen))
            parts.append(element("details", element("summary", "Sentences"), listed))
        found.append(element("article", *parts))
    return joined(*found)


def _against(report, language):
    rows = []
    for metric in ("BLEU", "chrF"):
        one, other = (report.compared[x][metric] for x in ("baseline", "this system"))
        shown = (f"{x.score:.2f} ± {x.interval:.2f}" for x in (one, other))
        rows.append(_row(metric, *shown, f"{other.p_value:.4f}"))
    found = [_table(rows, "", "baseline", "this system", "p")]
    gains = sorted(report.sentences, key=lambda x: x.chrf - x.baseline_chrf)
    for title, chosen in (("Worse", gains[:MOST_APART]), ("Better", gains[::-1][:MOST_APART])):
        sign = 1 if title == "Better" else -1
        apart = [x for x in chosen if sign * (x.chrf - x.baseline_chrf) > 0]
        count = sum(sign * (x.chrf - x.baseline_chrf) > 0 for x in gains)
        listed = (_sentence(x, language) for x in apart)
        summary = element("summary", f"{title} than the baseline: {count} sentences by chrF")
        found.append(element("details", summary, *listed))
    return joined(*found)


def _worst(report, language):
    note = "Lowest chrF first. Marked: words that the other text lacks, or has elsewhere."
    shown = (_sentence(x, language) for x in report.worst)
    return joined(element("p", note, class_="soft"), *shown) if report.worst else None


def _sentence(sentence: Sentence, language: str | None) -> Element:
    scores = [f"chrF {sentence.chrf:.1f}", f"BLEU {sentence.bleu:.1f}"]
    if not math.isnan(sentence.confidence):
        scores.append(f"confidence {math.exp(sentence.confidence):.2f}")
    if not math.isnan(sentence.reference_confidence):
        scores[-1] += f" (of the reference {math.exp(sentence.reference_confidence):.2f})"
    if sentence.quality is not None and not math.isnan(sentence.quality):
        scores.append(f"estimated quality {sentence.quality:.2f}")
    if sentence.baseline is not None:
        scores.append(f"baseline: chrF {sentence.baseline_chrf:.1f}")
    reference, translation = differences(sentence.reference, sentence.translation)
    texts = {
        "Source": element("dd", sentence.source, dir="auto"),
        "Reference": element("dd", *_marked("del", reference), dir="auto", lang=language),
        "Translation": element("dd", *_marked("ins", translation), dir="auto", lang=language),
    }
    if sentence.baseline is not None:
        _, baseline = differences(sentence.reference, sentence.baseline)
        texts["Baseline"] = element("dd", *_marked("ins", baseline), dir="auto", lang=language)
    listed = element(
        "dl", *(x for name, text in texts.items() for x in (element("dt", name), text))
    )
    parts = [element("h3", f"Sentence {sentence.number}")]
    parts += [element("p", " · ".join(scores), class_="soft"), listed]
    if sentence.picture is not None:
        picture = element("div", heat_map(*sentence.picture), class_="wide")
        parts.append(element("details", element("summary", "Attention"), picture))
    return element("article", *parts)


def _short(sentence, language):
    number = element("span", f"{sentence.number}. ", class_="soft")
    source = element("span", sentence.source, dir="auto")
    return joined(number, source, element("br"), element("b", sentence.translation, lang=language))


def _marked(name, parts):
    return [element(name, text) if differs else text for text, differs in parts]


def _table(rows: Sequence[Element], *names: str) -> Element:
    head = [element("tr", *(element("th", x, scope="col") for x in names))] if names else []
    return element("div", element("table", element("tbody", *head, *rows)), class_="scores wide")


def _row(name, *values):
    cells = (element("td", value) for value in values)
    return element("tr", element("th", name, scope="row"), *cells)


def _number(value):
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) >= 0.01 or value == 0 else f"{value:.2g}"
    return "–" if value is None else f"{value:,}"
