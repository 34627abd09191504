"""Subtitles of timed words: cues with limits of length, and the formats SubRip and WebVTT."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from keras_transformer.config import require
from keras_transformer.speech.cue_limits import Cue, CueLimits
from keras_transformer.speech.word_times import Word
from keras_transformer.text.arriving_text import ends_sentence
from keras_transformer.text.word_spans import join_words

PAUSE = 1.0  # seconds without a word that end a cue, and the sentence of a translation
FORMATS = (".srt", ".vtt")


def cues_of(words: Iterable[Word], limits: CueLimits | None = None) -> Iterator[Cue]:
    """Yield the cues of timed words, each when the next one begins.

    A cue ends with its sentence, before a pause of `PAUSE`, or when its lines are full, then
    preferably after a comma. It starts with its first word and ends with its last one, or later
    if `rate` demands it, but not after the next cue has begun.

    Args:
        words: Words in order, which may arrive in time.
        limits: Limits of a cue; None: 2 lines of 42 characters, 21 characters per second.
    """
    limits = limits or CueLimits()
    last: Cue | None = None
    for group in _groups(words, limits):
        lines = wrapped([x.word for x in group], limits.characters)
        start = group[0].start if last is None else max(group[0].start, last.start)
        if last:
            yield replace(last, end=max(last.start, min(last.end, start)))
        needed = start + sum(map(len, lines)) / limits.rate
        last = Cue(start, max(group[-1].end, needed), lines)
    if last:
        yield last


def _groups(words, limits):
    """Yield the words of each cue."""
    group: list[Word] = []
    for word in _cut(words, limits.characters):
        if group and (ends_sentence(group[-1].word) or word.start - group[-1].end >= PAUSE):
            yield group
            group = []
        group = [*group, word]
        if len(lines_of([x.word for x in group], limits.characters)) > limits.lines:
            marks = [i for i, x in enumerate(group[:-1], 1) if x.word[-1] in ",;:，、；："]
            end = marks[-1] if marks and 2 * marks[-1] >= len(group) else len(group) - 1
            yield group[:end]
            group = group[end:]
    if group:
        yield group


def wrapped(words: Sequence[str], width: int) -> list[str]:
    """Return the words in the fewest lines, with the longest line as short as possible."""
    lines = lines_of(words, width)
    for narrower in range(max(map(len, words)), width):
        if len(shorter := lines_of(words, narrower)) == len(lines):
            return shorter
    return lines


def lines_of(words: Sequence[str], width: int) -> list[str]:
    """Return the words in lines of at most `width` characters, if no word is longer."""
    lines: list[str] = []
    row: list[str] = []
    for word in words:
        if row and len(join_words([*row, word])) > width:
            lines.append(join_words(row))
            row = []
        row.append(word)
    return [*lines, join_words(row)]


def _cut(words, characters):
    """Yield the words; one that is longer than a line in parts, with its times."""
    for word in words:
        text = word.word.strip()
        for i in range(0, len(text), characters):
            yield Word(text[i : i + characters], word.start, word.end)


def subtitle_file(cues: Iterable[Cue], suffix: str = ".srt") -> Iterator[str]:
    """Yield the parts of a subtitle file.

    Args:
        cues: The cues.
        suffix: ".srt", SubRip; or ".vtt", WebVTT.
    """
    require(suffix in FORMATS, "suffix", suffix, f"one of {FORMATS}")
    is_web = suffix == ".vtt"
    if is_web:
        yield "WEBVTT\n\n"
    for i, cue in enumerate(cues, 1):
        times = " --> ".join(_time(x, "." if is_web else ",") for x in (cue.start, cue.end))
        lines = [html.escape(x, quote=False) if is_web else x for x in cue.lines]
        head = times if is_web else f"{i}\n{times}"
        yield "\n".join([head, *lines]) + "\n\n"


def suffix_of_subtitles(path: str | Path | None) -> str:
    """Return the suffix of a subtitle file, one of `FORMATS`; ".srt" for None."""
    suffix = ".srt" if path is None else Path(path).suffix.lower()
    require(suffix in FORMATS, "output", str(path), f"a file that ends with one of {FORMATS}")
    return suffix


def _time(seconds, mark):
    milliseconds = round(1000 * seconds)
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02}{mark}{rest % 1000:03}"
