"""Training pairs whose sources contain the translations of some of their words."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np

from keras_transformer.config import is_number, require
from keras_transformer.data.alignments import NONE, align_tokens
from keras_transformer.text.glossary import spaced, tagged, without_tags
from keras_transformer.text.tokenizer import checked_pairs

Pairs = list[tuple[str, str]]
FREQUENT = 0.05  # A word that occurs in this share of the texts or more is no term.
MOST = 3  # maximum number of terms of a sentence
_WORD = re.compile(r"[^\W\d_]+|\S")


def with_terms(pairs: Sequence[tuple[str, str]], share: float, seed: int = 0) -> Pairs:
    """Return training pairs; some sources contain translations of one to three of their words.

    A translator that is trained on them learns to copy what `Glossary.inlined` writes into a source
    (Dinu et al. 2019, "Training Neural Machine Translation To Apply Terminology Constraints": the
    translation is appended to the term). The words are drawn among those that `align_tokens` links,
    without one-letter words and words that occur in 5 % or more of the texts.

    Args:
        pairs: (source, target) texts.
        share: Share of the pairs whose sources carry terms, in [0, 1].
        seed: Seed of the draws.

    Raises:
        ValueError: If `share` is out of range, an item is not a pair of texts, or a text contains a
            tag of terms.
    """
    require(is_number(share) and 0 <= share <= 1, "share", share, "in [0, 1]")
    pairs = checked_pairs(pairs)
    without_tags(itertools.chain.from_iterable(pairs), "pairs")
    if not share or not any(source.strip() and target.strip() for source, target in pairs):
        return pairs
    words = [[list(_WORD.finditer(text)) for text in side] for side in zip(*pairs, strict=True)]
    named = [[[x.group().casefold() for x in text] for text in side] for side in words]
    rare = [_rare(side) for side in named]
    links = align_tokens(*map(_numbered, named))
    generator, new_pairs = np.random.default_rng(seed), []
    for i, (source, target) in enumerate(pairs):
        terms = [
            (words[0][i][place].span(), words[1][i][t].group())
            for t, place in enumerate(links[i])
            if place != NONE and named[0][i][place] in rare[0] and named[1][i][t] in rare[1]
            if _is_whole(words[0][i][place]) and _is_whole(words[1][i][t])
        ]
        count = min(len(terms), generator.integers(1, MOST + 1))
        chosen = sorted(terms[k] for k in generator.permutation(len(terms))[:count])
        if generator.random() < share:
            for (start, end), form in reversed(chosen):
                source = source[:start] + tagged(source[start:end], form) + source[end:]
        new_pairs.append((spaced(source), target))
    return new_pairs


def _rare(texts):
    """Return the words of two or more letters that occur in less than `FREQUENT` of the texts."""
    counts = Counter(itertools.chain.from_iterable(map(set, texts)))
    most = FREQUENT * len(texts)
    return {word for word, count in counts.items() if len(word) > 1 and count < most}


def _is_whole(word):
    """Return whether no mark, such as a vowel sign, follows a word and continues it."""
    return not unicodedata.category(word.string[word.end() :][:1] or " ").startswith("M")


def _numbered(texts):
    numbers: dict[str, int] = {}
    return [[numbers.setdefault(word, len(numbers)) for word in text] for text in texts]
