"""Subword regularization: random segmentations of a text, reproducible by seed.

The sentencepiece library samples too, but since 0.2.2 its generator is salted anew in each
process, so that no seed brings the same pieces back: a training run that resumes after a kill
could not repeat its own data. This is the same mathematics over the model's pieces and scores,
drawing from a generator that the caller seeds.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping

import sentencepiece

# SentencePiece writes a space as U+2581, and a piece has it at its beginning only: words are
# segmented independently of each other.
_WORD = re.compile("▁[^▁]*|[^▁]+")
# What SentencePiece's unigram model takes off the lowest score for an unknown character.
_UNKNOWN_PENALTY = 10.0


def bpe_dropout(
    word: str, scores: Mapping[str, float], dropout: float, random: Callable[[], float]
) -> list[str]:
    """Merges `word` by byte-pair encoding in which each merge is left out with some probability.

    Algorithm 1 of Provilkov et al. 2020, "BPE-Dropout": of all merges possible at a step each is
    dropped with probability `dropout`, the best of the rest is applied, until none is left.

    Args:
        word: Normalized text.
        scores: Every piece and its score; a pair may merge if it is a piece, best score first.
        dropout: From 0 (plain byte-pair encoding) to 1 (single characters).
        random: Returns floats of [0, 1).

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
    """Draws a segmentation of `word` with a probability proportional to P(segmentation)^alpha.

    Section 3.2 of Kudo 2018, "Subword Regularization", over all segmentations (l = infinity):
    forward filtering sums the probability of each beginning of the word, backward sampling draws
    the pieces from the end.

    Args:
        word: Normalized text.
        scores: Every piece and its log probability.
        alpha: Smoothing, above 0: towards 0 all segmentations become equally likely, and large
            values leave the best one only.
        random: Returns floats of [0, 1).
        longest: Characters in the longest piece.
        unknown: Log probability of a character that is no piece.

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
    """One of (value, log weight) with a probability proportional to its weight."""
    remaining = random()
    for value, weight in choices:
        remaining -= math.exp(weight - total)
        if remaining < 0:
            return value
    return choices[-1][0]  # where rounding left something over


class SubwordSampler:
    """Samples the ids of a text under a SentencePiece model.

    Args:
        processor: The model; special, byte and unused pieces of it are never matched with text.
        kind: "bpe" (`bpe_dropout`) or "unigram" (`sample_unigram`).

    Call arguments:
        text: Any text.
        strength: The dropout of "bpe", the alpha of "unigram".
        random: Returns floats of [0, 1).

    Returns:
        The ids, without any special id.
    """

    def __init__(self, processor: sentencepiece.SentencePieceProcessor, kind: str):
        self._processor = processor
        unmatched = (processor.is_control, processor.is_unknown, processor.is_byte)
        self._ids = {
            processor.id_to_piece(id_): id_
            for id_ in range(processor.get_piece_size())
            if not any(is_kind(id_) for is_kind in (*unmatched, processor.is_unused))
        }
        self._scores = {piece: processor.get_score(id_) for piece, id_ in self._ids.items()}
        self._segment = bpe_dropout
        if kind == "unigram":
            self._segment = functools.partial(
                sample_unigram,
                longest=max(map(len, self._scores)),
                unknown=min(self._scores.values()) - _UNKNOWN_PENALTY,
            )
        # Without byte fallback these are all the unknown piece.
        self._byte_ids = [processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]

    def __call__(self, text: str, strength: float, random: Callable[[], float]) -> list[int]:
        ids: list[int] = []
        for word in _WORD.findall(self._processor.normalize(text)):
            for piece in self._segment(word, self._scores, strength, random):
                if piece in self._ids:
                    ids.append(self._ids[piece])
                else:
                    ids.extend(self._byte_ids[byte] for byte in piece.encode())
        return ids
