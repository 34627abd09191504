"""Sentence pairs as token ids in flat arrays, and their subword sampling in each epoch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from keras_transformer.data.ragged import Ragged

_CHUNK = 8192  # pairs that are encoded in one call
_PROBES = 1000  # texts from which the growth of lengths by sampling is estimated


class PairTokenizer(Protocol):
    """The part of a tokenizer that batches need; ids end in EOS and do not contain BOS."""

    pad_id: int
    bos_id: int
    eos_id: int

    def encode_source(
        self, texts: Sequence[str], *, sampling: float = 0.0, seed: int | None = None
    ) -> list[list[int]]:
        """Return the ids of each source text."""
        ...

    def encode_target(
        self, texts: Sequence[str], *, sampling: float = 0.0, seed: int | None = None
    ) -> list[list[int]]:
        """Return the ids of each target text."""
        ...


class EncodedSide:
    """The source side or the target side of a corpus.

    Ids and texts are stored in flat arrays: lists of Python objects would need much more memory.

    Args:
        ids: Ids of each text.
        texts: The texts in UTF-8; used if `sampling` is above 0.
        encode: The tokenizer's method for this side.
        sampling: Strength of subword sampling, in [0, 1); 0: none.
    """

    def __init__(self, ids: Ragged, texts: Ragged, encode: Callable, sampling: float):
        self.ids = ids
        self.sampling = sampling
        self._texts = texts
        self._encode = encode

    def planned_lengths(self, seed: int) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function that estimates the number of tokens of texts after sampling.

        Its argument is the number of tokens without sampling; if `sampling` is 0, it returns its
        argument. The estimate is the mean plus one standard deviation, so most texts need no more.

        Args:
            seed: Seed of the sampling that the estimate is based on.
        """
        if not self.sampling:
            return np.asarray
        lengths = self.ids.lengths
        probes = np.linspace(0, len(lengths) - 1, _PROBES).astype(np.int64)
        sampled = np.array([len(ids) for ids in self._sampled(probes, seed)])
        plain = lengths[probes]
        # Words are sampled independently: the mean grows with the length, the standard deviation
        # with its square root.
        growth = sampled.sum() / plain.sum()
        spread = np.std((sampled - growth * plain) / np.sqrt(plain))
        return lambda lengths: growth * lengths + spread * np.sqrt(lengths)

    def visit(self, rows: Ragged, length: int, seed: Sequence[int]) -> Ragged:
        """Return the ids of the texts of a batch, sampled if `sampling` is above 0.

        If the sampled texts of a row do not fit into it, the first ones get the segmentation
        without sampling, until all fit.

        Args:
            rows: Indices of the texts in each row of the batch.
            length: Maximum tokens of a row.
            seed: Seed of the sampling.
        """
        if not self.sampling:
            return self.ids.take(rows.values)
        number = int(np.random.SeedSequence(tuple(seed)).generate_state(1)[0])
        sampled = self._sampled(rows.values, number)
        for start, stop in itertools.pairwise(rows.starts):
            excess = sum(map(len, sampled[start:stop])) - length
            for place in range(start, stop):
                if excess <= 0:
                    break
                excess -= len(sampled[place])
                sampled[place] = self.ids[rows.values[place]]
                excess += len(sampled[place])
        return Ragged.pack(sampled)

    def _sampled(self, indices: np.ndarray, seed: int) -> list[Any]:
        texts = [self._texts[index].tobytes().decode() for index in indices]
        return self._encode(texts, sampling=self.sampling, seed=seed)


def encode_pairs(
    pairs: Iterable[tuple[str, str]], tokenizer: PairTokenizer, max_length: int, sampling: float
) -> tuple[list[EncodedSide], np.ndarray]:
    """Encode a corpus; return its two sides, and whether each pair was short enough (N,).

    Args:
        pairs: (source, target) texts, read once.
        tokenizer: The tokenizer.
        max_length: Maximum tokens of a side, EOS included; longer pairs are left out.
        sampling: Strength of subword sampling, in [0, 1); above 0, the texts are kept in memory.

    Raises:
        ValueError: If there are no pairs, all are too long, or ids do not end in EOS.
        TypeError: If a pair is not two texts.
    """
    encoders = tokenizer.encode_source, tokenizer.encode_target
    ids: tuple[list, list] = ([], [])
    texts: tuple[list, list] = ([], [])
    short: list[bool] = []
    numbered = enumerate(pairs)
    while chunk := list(itertools.islice(numbered, _CHUNK)):
        for index, pair in chunk:
            if not _is_pair(pair):
                raise TypeError(f"pairs[{index}] must be two texts (str), got {pair!r}")
        columns = list(zip(*(pair for _, pair in chunk), strict=True))
        encoded = [encoders[side](list(columns[side])) for side in (0, 1)]
        eos_id = tokenizer.eos_id
        if not all(len(row) and row[-1] == eos_id for row in itertools.chain(*encoded)):
            raise ValueError(f"tokenizer must end the ids of each text in eos_id={eos_id}")
        is_short = [max(map(len, pair)) <= max_length for pair in zip(*encoded, strict=True)]
        short += is_short
        for side in (0, 1):
            ids[side].append(Ragged.pack(itertools.compress(encoded[side], is_short)))
            kept = itertools.compress(columns[side], is_short if sampling else ())
            texts[side].append(Ragged.pack(text.encode() for text in kept))
    if not ids[0]:
        raise ValueError("pairs must have at least one pair, got none")
    sides = [
        EncodedSide(Ragged.join(ids[side]), Ragged.join(texts[side]), encoders[side], sampling)
        for side in (0, 1)
    ]
    if not len(sides[0].ids):
        raise ValueError(
            f"max_length must leave at least one pair; all {len(short)} are longer than "
            f"{max_length} tokens"
        )
    return sides, np.array(short)


def _is_pair(pair):
    return (
        isinstance(pair, tuple | list)
        and len(pair) == 2
        and all(isinstance(text, str) for text in pair)
    )
