"""Spans of words in texts, and the tokens that belong to each word."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

# Each kana and each Chinese character counts as a word.
_WORD = re.compile(r"[぀-ヿ㐀-䶿一-鿿豈-﫿]|[^\W぀-ヿ㐀-䶿一-鿿豈-﫿]+(?:['’-]\w+)*|[^\w\s]")
# Thai, Lao, Burmese, Khmer, kana and Chinese characters: written without spaces.
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_WIDE = rf"[{_UNSPACED}\u3000-\u303f\uff00-\uffef]"  # with their punctuation
_TEXT_WORD = re.compile(rf"[{_UNSPACED}][^\w\s]*|[^\s{_UNSPACED}]+")
_EXTRA_SPACE = re.compile(rf"(?<={_WIDE}) | (?={_WIDE})")
Spans = list[tuple[int, int]]


def words(text: str) -> Spans:
    """Return the start and end (excluded), in characters, of each word or symbol of a text."""
    return [match.span() for match in _WORD.finditer(text)]


def spaced_words(text: str) -> Spans:
    """Return the start and end (excluded), in characters, of each run without white space."""
    return [match.span() for match in re.finditer(r"\S+", text)]


def text_words(text: str) -> Spans:
    """Return the start and end (excluded) of each word with its punctuation.

    In writing systems without spaces, each character is a word.
    """
    return [match.span() for match in _TEXT_WORD.finditer(text)]


def split_words(text: str) -> list[str]:
    """Return the words of `text_words`."""
    return [text[start:end] for start, end in text_words(text)]


def join_words(words: Iterable[str]) -> str:
    """Return the text of words of `split_words`: with spaces, except in systems without them."""
    return _EXTRA_SPACE.sub("", " ".join(words))


def members_of(words: Spans, spans: Spans) -> np.ndarray:
    """Return a matrix (words, tokens) with 1 for tokens that have characters of the word, else 0.

    Args:
        words: Start and end of each word, in characters.
        spans: Start and end of each token.
    """
    starts, ends = np.array(spans).T
    return np.array([(starts < end) & (ends > start) for start, end in words], "float32")
