"""Spans of words in texts, and the tokens that belong to each word."""

from __future__ import annotations

import re

import numpy as np

# Each kana and each Chinese character counts as a word.
_WORD = re.compile(r"[぀-ヿ㐀-䶿一-鿿豈-﫿]|[^\W぀-ヿ㐀-䶿一-鿿豈-﫿]+(?:['’-]\w+)*|[^\w\s]")
Spans = list[tuple[int, int]]


def words(text: str) -> Spans:
    """Return the start and end (excluded), in characters, of each word or symbol of a text."""
    return [match.span() for match in _WORD.finditer(text)]


def spaced_words(text: str) -> Spans:
    """Return the start and end (excluded), in characters, of each run without white space."""
    return [match.span() for match in re.finditer(r"\S+", text)]


def members_of(words: Spans, spans: Spans) -> np.ndarray:
    """Return a matrix (words, tokens) with 1 for tokens that have characters of the word, else 0.

    Args:
        words: Start and end of each word, in characters.
        spans: Start and end of each token.
    """
    starts, ends = np.array(spans).T
    return np.array([(starts < end) & (ends > start) for start, end in words], "float32")
