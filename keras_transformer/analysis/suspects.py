"""Signs of errors in translations, without references: repetitions, copies, numbers, lengths."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from keras_transformer.config import require
from keras_transformer.text.tokenizer import checked_texts
from keras_transformer.text.word_spans import words

NGRAM = 4  # number of words of a sequence that counts as repeated
COPIED = 4  # number of successive source words in a translation that count as a copy
RATIO, SLACK = 2.0, 10  # accepted ratio to the expected length, and characters accepted beyond it
_NUMBER = re.compile(r"(?<!\d)\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)|\d+(?:[.,:'’]\d+)*")

SIGNS = {
    "repetition": f"A word three times in a row, two or three words twice in a row, or {NGRAM} "
    "words that occur again, more often than in the source.",
    "copy": f"The source itself, if it has two words or more, or {COPIED} or more words in a row "
    "from it.",
    "number": "A number of the source, in digits, is not in the translation.",
    "length": f"More than {RATIO:g} times the expected length plus {SLACK} characters, less than "
    f"1/{RATIO:g} of it minus {SLACK}, or empty. Expected: the length of the source times the "
    "median ratio of lengths in this test set.",
}


def suspects(sources: Sequence[str], translations: Sequence[str]) -> dict[str, list[int]]:
    """Return the translations that show signs of an error; a sign is not a proof.

    Each kana and each Chinese character counts as a word.

    Args:
        sources: Source texts.
        translations: Translations, one per source.

    Returns:
        For each sign in `SIGNS`, the indices of the translations that show it.

    Raises:
        ValueError: If the numbers of texts differ.
    """
    sources = checked_texts(sources, "sources")
    translations = checked_texts(translations, "translations")
    accepted = f"{len(sources)} texts, one per source"
    same = len(translations) == len(sources)
    require(same, "translations", f"{len(translations)} texts", accepted)
    pairs = list(zip(sources, translations, strict=True))
    ratios = [len(t.strip()) / len(s.strip()) for s, t in pairs if s.strip() and t.strip()]
    usual = statistics.median(ratios) if ratios else 1.0
    checks = {
        "repetition": lambda s, t: _repetitions(_split(t)) > _repetitions(_split(s)),
        "copy": lambda s, t: _is_copied(_split(s), _split(t)),
        "number": lambda s, t: bool(_numbers(s) - _numbers(t)),
        "length": lambda s, t: _is_odd(len(s.strip()) * usual, len(t.strip())),
    }
    return {
        sign: [i for i, pair in enumerate(pairs) if check(*pair)] for sign, check in checks.items()
    }


def _split(text):
    """Return the words of a text, without punctuation."""
    parts = (text[start:end] for start, end in words(text))
    return [part for part in parts if any(map(str.isalnum, part))]


def _repetitions(tokens):
    """Return the number of repeated n-grams, doubled phrases and tripled words."""
    tokens = [token.lower() for token in tokens]
    ngrams = Counter(zip(*(tokens[i:] for i in range(NGRAM)), strict=False))
    again = sum(count - 1 for count in ngrams.values())
    triple = sum(len(set(x)) == 1 for x in zip(tokens, tokens[1:], tokens[2:], strict=False))
    doubled = sum(
        tokens[i : i + n] == tokens[i + n : i + 2 * n] and len(set(tokens[i : i + n])) > 1
        for n in range(2, NGRAM)
        for i in range(len(tokens) - 2 * n + 1)
    )
    return again + triple + doubled


def _is_copied(source, translation):
    if source == translation:
        return sum(any(map(str.isalpha, word)) for word in source) > 1
    run = SequenceMatcher(None, source, translation, autojunk=False).find_longest_match()
    shared = source[run.a : run.a + run.size]
    return sum(any(map(str.isalpha, word)) for word in shared) >= COPIED


def _numbers(text):
    """Return the numbers of a text with their counts; 1,000 and 1.000 count as equal."""
    return Counter(re.sub(r"\D", "", number) for number in _NUMBER.findall(text))


def _is_odd(expected, length):
    if expected and not length:
        return True
    return length > RATIO * expected + SLACK or length < expected / RATIO - SLACK
