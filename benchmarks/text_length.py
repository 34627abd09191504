"""Time of all that a server does with a text, against the length of hostile texts.

    python -m benchmarks.text_length [--longest 10000000] [--save]

The texts repeat each punctuation mark of Unicode, alone and alternating with another mark; others
repeat combining accents, zero-width joiners or tags. All texts are measured with 1,000 and 10,000
characters. Some are also measured with 100 thousand to ten million: for each kind of work, the
three texts whose time grew most, the three that took most time, and ordinary words. The exponent
says how the time grows with the length, from the second row on: 1 is linear, 2 quadratic.

The work: sentences (split, also into what a model reads), tokens (their number), HTML (taken apart,
and its tags placed anew where no word is aligned, the slowest case), subtitles and Word documents
(read, and filled again), and detection of the language.
"""

from __future__ import annotations

import argparse
import gc
import html
import io
import math
import sys
import time
import unicodedata
import zipfile
from collections.abc import Callable
from typing import Any

from benchmarks import contest

OTHERS = ("", "!", "?", ".", "。", "(")
MARKUP = ("<", "<b>", "</b>", "<img>a ", "<rt>", "<!--", "<code>a</code>", "&#1", "{", "♪", "-- ")
WORDS = "one two, three. "
SHORT = (1_000, 10_000)
LONG = (100_000, 1_000_000, 10_000_000)
LIMIT = 400  # characters of the longest sentence that a model reads
LEAST = 1e-3  # seconds; shorter times are those of the call, not of the text

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.wordprocessingml.document.main+xml"/></Types>'
)


def units() -> list[str]:
    """Return the texts that are repeated."""
    every = map(chr, range(sys.maxunicode + 1))
    marks = ["e\u0301", "\u200d", *(x for x in every if unicodedata.category(x).startswith("P"))]
    return [WORDS, *MARKUP, *(mark + other for mark in marks for other in OTHERS)]


def repeated(unit: str, size: int) -> str:
    """Repeat a unit to a text of that many characters."""
    return (unit * (size // len(unit) + 1))[:size]


def works() -> dict[str, Callable[[str], Any]]:
    """Return the kinds of work, each a function of a text."""
    from keras_transformer.analysis.alignment import words
    from keras_transformer.serving import markup
    from keras_transformer.serving.detection import Detector
    from keras_transformer.serving.readers import office, subtitles
    from keras_transformer.serving.sentences import Sentences
    from keras_transformer.text import SentencePieceTokenizer

    texts = [f"The {x} man sees {y} dogs. " for x in ("old", "young") for y in range(50)]
    tokenizer = SentencePieceTokenizer.train(texts, texts, vocab_size=320, byte_fallback=True)
    detector = Detector(["en", "de"])

    def sentences(text):
        return Sentences.of(text, "en", lambda sentence: len(sentence) <= LIMIT)

    def tokens(text):
        # In parts as long as the longest sentence: the splitting is measured under "sentences".
        parts = [text[i : i + LIMIT] for i in range(0, len(text), LIMIT)]
        return [len(ids) for ids in tokenizer.encode_source(parts)]

    def marked(text):
        for block in markup.blocks(text):
            if block.text:
                target = words(block.text)
                markup.placed(block, block.text, [None] * len(target), target)

    def subtitle(text):
        content = f"1\n0:0:1,0 --> 0:0:2,0\na {text} b\n".encode()
        texts, _ = subtitles.read(content)
        subtitles.filled(content, texts)

    def document(text):
        runs = []
        for at in range(0, len(text), 1000):  # of two formats in turn
            style = "<w:rPr><w:b/></w:rPr>" if at // 1000 % 2 else ""
            piece = html.escape(text[at : at + 1000])
            runs.append(f'<w:r>{style}<w:t xml:space="preserve">{piece}</w:t></w:r>')
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("[Content_Types].xml", _TYPES)
            body = f'<w:d xmlns:w="{_WORD}"><w:p>{"".join(runs)}</w:p></w:d>'
            archive.writestr("word/document.xml", body)
        texts, _ = office.read(out.getvalue())
        office.filled(out.getvalue(), texts)

    return {
        "sentences": sentences,
        "tokens": tokens,
        "HTML": marked,
        "subtitles": subtitle,
        "Word document": document,
        "language": detector.detect,
    }


def seconds(work: Callable[[str], Any], text: str) -> float:
    """Return the processor's time of a piece of work; a short one is the best of three."""
    best = math.inf
    for _ in range(3 if len(text) <= SHORT[-1] else 1):
        start = time.thread_time()
        work(text)
        best = min(best, time.thread_time() - start)
    return best


def exponent(sizes: list[int], times: list[float]) -> float:
    """Return the exponent of the size with which the time grows between the first and the last."""
    return math.log(max(times[-1], LEAST) / max(times[0], LEAST)) / math.log(sizes[-1] / sizes[0])


def measured(work: Callable[[str], Any], sizes: list[int]) -> tuple[int, list[list[Any]]]:
    """Return how many texts were measured, and rows of the worst: unit, seconds, exponent."""
    short = {}
    for unit in units():
        short[unit] = [seconds(work, repeated(unit, size)) for size in SHORT]
        gc.collect(0)
    grown = sorted(short, key=lambda x: short[x][1] / max(short[x][0], LEAST / 5), reverse=True)
    slow = sorted(short, key=lambda x: short[x][1], reverse=True)
    rows = []
    for unit in dict.fromkeys([WORDS, *grown[:3], *slow[:3]]):
        times = list(short[unit])
        for size in sizes:
            times.append(seconds(work, repeated(unit, size)))
            gc.collect()
        measured_sizes = [*SHORT, *sizes]
        rows.append([unit, *times, exponent(measured_sizes[1:], times[1:])])
    return len(short), rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--longest", type=int, default=LONG[-1], help="characters")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    if options.longest < LONG[0]:
        parser.error(f"--longest must be at least {LONG[0]}, got {options.longest}")
    sizes = [size for size in LONG if size <= options.longest]
    rows, worst = [], {}
    gc.disable()  # a collection takes as long as all objects of the libraries need
    try:
        for name, work in works().items():
            count, measures = measured(work, sizes)
            worst[name] = max(row[-1] for row in measures)
            for unit, *times, growth in measures:
                shown = [f"{1000 * x:.3g}" for x in times]
                rows.append([name, f"`{ascii(unit)[1:-1]}`", *shown, f"{growth:.2f}"])
            print(f"{name}: {count} texts, exponents up to {worst[name]:.2f}", file=sys.stderr)
    finally:
        gc.enable()
    header = ["work", "repeated", *(f"{size:,}" for size in (*SHORT, *sizes)), "exponent"]
    note = (
        f"Milliseconds of the processor by characters, of {count:,} texts each; the worst ones and "
        f"ordinary words. The largest exponent is {max(worst.values()):.2f}."
    )
    contest.report(
        "text-length",
        "Time against the length of texts",
        [note, contest.table(header, rows)],
        options.save,
    )


if __name__ == "__main__":
    main()
