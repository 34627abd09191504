"""Rendering of an error report as one HTML file, which loads nothing and runs no script."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.analysis.report.differences import differences
from keras_transformer.analysis.report.measure import Report, Sentence
from keras_transformer.analysis.suspects import SIGNS
from keras_transformer.evaluation.tokenizers import lengths_of
from keras_transformer.system.extras import missing

# Forbids scripts and loading anything, even if a text of the report were read as HTML by mistake.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
MOST_APART = 10  # maximum number of sentences shown under "Worse", and under "Better"
LEAST = 0.005  # cells of attention weights below this have no colour
WIDTH, HEIGHT = 320, 120  # size of the area of a histogram's bars, in units of the SVG
ABOVE, BELOW = 16, 34  # heights of the areas for the number of the highest bar, and for labels
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
        report: The contents.
        title: Title of the page, such as the names of the model and the test set.
        language: Language code of the translations, for fonts and hyphenation; None: unknown.

    Raises:
        ImportError: If jinja2 is not installed.
    """
    if importlib.util.find_spec("jinja2") is None:
        raise missing("a report", "report")
    import jinja2
    import markupsafe

    loader = jinja2.PackageLoader("keras_transformer.analysis.report", "")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    css, _, _ = loader.get_source(environment, "report.css")
    scores, notes = _scores(report)
    return environment.get_template("report.html.j2").render(
        title=title,
        language=language,
        policy=POLICY,
        css=markupsafe.Markup(css),
        least=LEAST,
        scores=scores,
        notes=notes,
        histograms=_histograms(report),
        unit=lengths_of([x.source for x in report.sentences])[0],
        lengths=report.parts,
        signs=_signs(report),
        compared=_compared(report),
        apart=_apart(report),
        worst=[_shown(x) for x in report.worst],
    )


def _scores(report):
    """Return the rows of the table of scores, and the signatures of the metrics."""
    rows, notes = [], []
    for name, value in report.metrics.items():
        if name.endswith("_signature"):
            notes.append(value)
            continue
        half = report.intervals.get(name)
        shown = _number(value) + ("" if half is None else f" ± {half:.2f}")
        rows.append((NAMES.get(name, name.replace("_", " ")), [shown]))
    for name, value in (report.correlation or {}).items():
        rows.append((f"{name.title()} correlation of estimated quality", [_number(value)]))
    return rows, notes


def _histograms(report):
    """Return the histograms of chrF, lengths, confidence and estimated quality."""
    sentences = report.sentences
    unit, lengths = lengths_of([x.translation for x in sentences])
    widest = max(10, 10 * math.ceil(max(lengths) / 10))
    confidence = np.exp([x.confidence for x in sentences])
    histograms = [
        histogram([x.chrf for x in sentences], "chrF of a sentence", _edges(100)),
        histogram(lengths, f"{unit} of a translation", _edges(widest)),
        histogram(confidence, "confidence: mean probability of a token", _edges(1)),
    ]
    if sentences[0].quality is not None:
        histograms.append(histogram([x.quality for x in sentences], "estimated quality", _edges(1)))
    return histograms


def _edges(most):
    return np.linspace(0, most, 21)


def histogram(
    values: Sequence[float] | np.ndarray, title: str, edges: Sequence[float] | np.ndarray
) -> dict[str, Any]:
    """Return the bars and labels of a histogram.

    Args:
        values: Numbers; NaN is left out, and numbers beyond the edges count in the outer bins.
        title: Label of the axis.
        edges: Edges of the bins (bins + 1,), increasing.
    """
    numbers = np.asarray(values, float)
    numbers = np.clip(numbers[~np.isnan(numbers)], edges[0], edges[-1])
    counts, _ = np.histogram(numbers, edges)
    most, step = max(counts.max(), 1), WIDTH / len(counts)
    bars = []
    for i, count in enumerate(counts.tolist()):
        size, hint = HEIGHT * count / most, f"{edges[i]:g} to {edges[i + 1]:g}: {count}"
        place = dict(x=i * step + 1, y=ABOVE + HEIGHT - size)
        bars.append(dict(width=step - 2, height=size, hint=hint, **place))
    highest = int(counts.argmax())
    at, anchor = ((0, "start"), (0.5, "middle"), (1, "end"))[3 * highest // len(counts)]
    labels = [dict(text=f"{counts.max():,}", x=(highest + at) * step, y=ABOVE - 4, anchor=anchor)]
    for i, anchor in ((0, "start"), (len(counts) // 2, "middle"), (len(counts), "end")):
        labels.append(dict(text=f"{edges[i]:g}", x=i * step, y=ABOVE + HEIGHT + 14, anchor=anchor))
    labels.append(dict(text=title, x=WIDTH / 2, y=ABOVE + HEIGHT + 30, anchor="middle"))
    size = dict(width=WIDTH, height=ABOVE + HEIGHT + BELOW)
    return dict(title=title, most=most, bars=bars, labels=labels, **size)


def _signs(report):
    for sign, places in report.signs.items():
        share = f"{len(places)} ({len(places) / len(report.sentences):.1%})"
        chosen = [report.sentences[i] for i in places]
        yield f"{TITLES[sign]}: {share}", SIGNS[sign], chosen


def _compared(report):
    """Return the rows of the table that compares scores with the baseline; [] without one."""
    rows = []
    for metric in ("BLEU", "chrF") if report.compared else ():
        scores = [report.compared[x][metric] for x in ("baseline", "this system")]
        shown = [f"{x.score:.2f} ± {x.interval:.2f}" for x in scores]
        rows.append((metric, [*shown, f"{scores[1].p_value:.4f}"]))
    return rows


def _apart(report):
    """Return the sentences that differ most from the baseline, worse and better; [] without one."""
    if not report.compared:
        return []
    both_sides = []
    for title, sign in (("Worse", -1), ("Better", 1)):
        gains = [(sign * (x.chrf - x.baseline_chrf), x) for x in report.sentences]
        apart = sorted((x for x in gains if x[0] > 0), key=lambda x: -x[0])
        both_sides.append((title, len(apart), [_shown(x) for _, x in apart[:MOST_APART]]))
    return both_sides


def _shown(sentence: Sentence) -> dict[str, Any]:
    """Return the values that the template shows for a sentence."""
    scores = [f"chrF {sentence.chrf:.1f}", f"BLEU {sentence.bleu:.1f}"]
    if not math.isnan(sentence.confidence):
        scores.append(f"confidence {math.exp(sentence.confidence):.2f}")
    if not math.isnan(sentence.reference_confidence):
        scores.append(f"confidence in the reference {math.exp(sentence.reference_confidence):.2f}")
    if sentence.quality is not None and not math.isnan(sentence.quality):
        scores.append(f"estimated quality {sentence.quality:.2f}")
    reference, translation = differences(sentence.reference, sentence.translation)
    texts = [("Reference", "del", reference), ("Translation", "ins", translation)]
    if sentence.baseline is not None:
        scores.append(f"baseline: chrF {sentence.baseline_chrf:.1f}")
        texts.append(("Baseline", "ins", differences(sentence.reference, sentence.baseline)[1]))
    facts = dict(number=sentence.number, source=sentence.source, picture=sentence.picture)
    return dict(scores=scores, texts=texts, **facts)


def _number(value):
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) >= 0.01 or value == 0 else f"{value:.2g}"
    return "–" if value is None else f"{value:,}"
