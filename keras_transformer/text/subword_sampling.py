"""Subword regularization: random segmentations of a text, reproducible by seed.

The library sentencepiece samples, too, but since version 0.2.2 no seed reproduces its pieces in
another process, so a training run that resumes after a crash could not repeat its data. This module
uses the same algorithms, with the model's pieces and scores and a seeded generator of the caller.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping

import sentencepiece

from keras_transformer.text.pieces import symbols_of

# SentencePiece writes a space as U+2581. In pieces it occurs only at the beginning, so each word
# is segmented independently.
_WORD = re.compile("▁[^▁]*|[^▁]+")
# SentencePiece's unigram model scores an unknown character this much below the lowest score.
_UNKNOWN_PENALTY = 10.0


def bpe_dropout(
    word: str, scores: Mapping[str, float], dropout: float, random: Callable[[], float]
) -> list[str]:
    """Segment `word` by byte-pair encoding with random merges left out.

    Algorithm 1 of Provilkov et al. 2020, "BPE-Dropout": in each step every possible merge is
    dropped with probability `dropout` and the best remaining one is applied, until none remains.

    Args:
        word: Normalized text.
        scores: Score of every piece. Two pieces may merge if the result is a piece; the merge with
            the highest score is the best.
        dropout: From 0 (plain byte-pair encoding) to 1 (single characters).
        random: Function that returns floats in [0, 1).

    Returns:
        The pieces, which join to `word`.
    """
    pieces = list(word)
    while True:
        merges = [
            (-scores[merged], position)
            for position in range(len(pieces) - 1)
            if (merged := pieces[position] + pieces[position + 1]) in scores and random() >= dropout
        ]
        if not merges:
            return pieces
        _, position = min(merges)
        pieces[position : position + 2] = [pieces[position] + pieces[position + 1]]


def sample_unigram(
    word: str,
    scores: Mapping[str, float],
    alpha: float,
    random: Callable[[], float],
    *,
    longest: int,
    unknown: float,
) -> list[str]:
    """Sample a segmentation of `word` with a probability proportional to P(segmentation)^alpha.

    This is section 3.2 of Kudo 2018, "Subword Regularization", over all segmentations (l =
    infinity). Forward filtering sums the probability of each prefix of the word; backward sampling
    draws the pieces from the end.

    Args:
        word: Normalized text.
        scores: Log probability of every piece.
        alpha: Smoothing, above 0: towards 0 all segmentations become equally likely, and large
            values leave only the best one.
        random: Function that returns floats in [0, 1).
        longest: Length of the longest piece in characters.
        unknown: Log probability of a character that is not a piece.

    Returns:
        The pieces, which join to `word`.
    """
    totals = [0.0]
    last_pieces: list[list[tuple[int, float]]] = [[]]
    for end in range(1, len(word) + 1):
        choices = []
        for start in range(max(0, end - longest), end):
            score = scores.get(word[start:end], unknown if start == end - 1 else None)
            if score is not None:
                choices.append((start, totals[start] + alpha * score))
        highest = max(weight for _, weight in choices)
        totals.append(highest + math.log(sum(math.exp(weight - highest) for _, weight in choices)))
        last_pieces.append(choices)

    pieces: list[str] = []
    end = len(word)
    while end:
        start = _draw(last_pieces[end], totals[end], random)
        pieces.append(word[start:end])
        end = start
    return pieces[::-1]


def _draw(choices: list[tuple[int, float]], total: float, random: Callable[[], float]) -> int:
    """Draw a value from pairs (value, log weight), with a probability proportional to the weight.

    `total` is the logarithm of the sum of the weights.
    """
    remaining = random()
    for value, weight in choices:
        remaining -= math.exp(weight - total)
        if remaining < 0:
            return value
    return choices[-1][0]  # if rounding leaves a remainder


class SubwordSampler:
    """An encoder of texts with random segmentations under a SentencePiece model.

    Args:
        processor: The model; its special, byte and unused pieces are never matched with text.
            User-defined symbols are never split.
        kind: "bpe" (`bpe_dropout`) or "unigram" (`sample_unigram`).

    Call arguments:
        text: Any text.
        strength: Dropout for "bpe", alpha for "unigram".
        random: Function that returns floats in [0, 1).

    Returns:
        The ids, without special ids.
    """

    def __init__(self, processor: sentencepiece.SentencePieceProcessor, kind: str):
        self._processor = processor
        unmatched = (processor.is_control, processor.is_unknown, processor.is_byte)
        self._ids = {
            processor.id_to_piece(id_): id_
            for id_ in range(processor.get_piece_size())
            if not any(is_kind(id_) for is_kind in (*unmatched, processor.is_unused))
        }
        self._symbols = symbols_of(processor.serialized_model_proto())
        self._scores = {
            piece: processor.get_score(id_)
            for piece, id_ in self._ids.items()
            if piece not in self._symbols
        }
        self._segment = bpe_dropout
        if kind == "unigram":
            self._segment = functools.partial(
                sample_unigram,
                longest=max(map(len, self._scores)),
                unknown=min(self._scores.values()) - _UNKNOWN_PENALTY,
            )
        # Without byte fallback all of these are the unknown id.
        self._byte_ids = [processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]

    def __call__(self, text: str, strength: float, random: Callable[[], float]) -> list[int]:
        ids: list[int] = []
        for word in _WORD.findall(self._processor.normalize(text)):
            if word in self._symbols:
                ids.append(self._ids[word])
                continue
            for piece in self._segment(word, self._scores, strength, random):
                if piece in self._ids:
                    ids.append(self._ids[piece])
                else:
                    ids.extend(self._byte_ids[byte] for byte in piece.encode())
        return ids
