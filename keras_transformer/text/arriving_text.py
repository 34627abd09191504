"""A text that arrives in pieces: its whole words, and ends of sentences without later words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from keras_transformer.text.word_spans import split_words, text_words

MARKS = ".!?…。！？"
_END = re.compile(rf"[{MARKS}]+[\"'”’“»)\]」』]*$")
# A period after these, after a single letter, a number, or a word with an inner period (e.g., z.B.)
# rarely ends a sentence.
_ABBREVIATION = re.compile(
    r"\W*(?:\d+|[^\W\d_]|\w+\.[\w.]*\w|Mr|Mrs|Ms|Mme|Dr|Prof|Sr|Jr|St|Nr|No|vs|bzw|ca|approx)\.$"
)


def ends_sentence(word: str) -> bool:
    """Return whether a word with its punctuation ends a sentence."""
    return bool(_END.search(word)) and not _ABBREVIATION.match(word)


def sentence_parts(text: str) -> Iterator[tuple[list[str], bool]]:
    """Yield the words of a text in parts, each with whether a sentence ends after it.

    A sentence ends at a line break, and after a word for which `ends_sentence` is true.

    Args:
        text: Whole words, see `word_spans.split_words`.
    """
    lines = text.split("\n")
    for i, line in enumerate(lines):
        part: list[str] = []
        for word in split_words(line):
            part.append(word)
            if ends_sentence(word):
                yield part, True
                part = []
        has_break = i < len(lines) - 1
        if part or has_break:
            yield part, has_break


def whole_words(pieces: Iterable[str]) -> Iterator[str]:
    """Yield a text in parts of whole words: the last word of each piece waits for its end.

    Args:
        pieces: Pieces of the text, cut anywhere.
    """
    rest = ""
    for piece in pieces:
        text = rest + piece
        spans = text_words(text)
        is_cut = bool(spans) and spans[-1][1] == len(text)
        cut = spans[-1][0] if is_cut else len(text)
        rest = text[cut:]
        if cut:
            yield text[:cut]
    if rest:
        yield rest
