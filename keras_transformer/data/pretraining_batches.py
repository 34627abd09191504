"""Batches of consecutive sentences with masked tokens, to pretrain BERT, RoBERTa and ALBERT."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.data.masking import (
    TASKS,
    Masking,
    full_sentences,
    join_pairs,
    sentence_pairs,
)
from keras_transformer.data.prefetching import Stream, for_keras
from keras_transformer.data.ragged import Ragged

INPUTS = ("full_sentences", *TASKS)


class PretrainingBatches:
    """Batches of rows with consecutive sentences of documents, padded to one length.

    Rows and masks are drawn anew in each epoch; the batch of a step depends only on the step and
    the seed. All epochs have as many rows as the first: in later ones, rows are repeated or left
    out.

    Args:
        documents: Documents as lists of sentences, which are lists of token ids.
        masking: Masking of the tokens of each batch.
        inputs: "full_sentences": a row is filled with sentences (RoBERTa; see
            `masking.full_sentences`). "next_sentence" or "sentence_order": a row is a pair of texts
            with a label (BERT, ALBERT; see `masking.sentence_pairs`).
        cls_id, sep_id: Ids of [CLS], which begins a row, and [SEP], which ends each text.
        tokens_per_batch: Maximum cells of a batch, padding included; at least `max_length`.
        max_length: Row length T, special tokens included, at least 5.
        shuffle: Whether rows and their order differ between epochs; False for validation. The masks
            differ in any case.
        seed: Seed of rows, order and masks.

    Raises:
        ValueError: If a value is out of range, the documents make no row, or "next_sentence" gets
            fewer than two documents.
    """

    def __init__(
        self,
        documents: Sequence[Sequence[Sequence[int]]],
        masking: Masking,
        inputs: str = "full_sentences",
        *,
        cls_id: int,
        sep_id: int,
        tokens_per_batch: int = 4096,
        max_length: int = 512,
        shuffle: bool = True,
        seed: int = 0,
    ):
        require(inputs in INPUTS, "inputs", inputs, f"one of {INPUTS}")
        require_whole("max_length", max_length, 5)
        require_whole("tokens_per_batch", tokens_per_batch, max_length)
        self.documents, self.masking, self.inputs = documents, masking, inputs
        self.cls_id, self.sep_id, self.max_length = cls_id, sep_id, max_length
        self.shuffle, self.seed = shuffle, seed
        self._size = tokens_per_batch // max_length
        self._cached: Any = None
        self._count = len(self._draw(0))
        sentences = "two sentences or more" if inputs in TASKS else "one sentence or more"
        require(self._count > 0, "documents", "no row", f"one with {sentences}")

    def __len__(self) -> int:
        """Return the number of batches per epoch."""
        return -(-self._count // self._size)

    def batch(self, step: int) -> tuple[dict[str, np.ndarray], Any]:
        """Return inputs and labels of a step; steps count over all epochs.

        Returns:
            With "full_sentences": the inputs `token_ids` (B, T), and the labels of the masked
            tokens (B, T), see `Masking`. With pairs: the inputs also have `type_ids` (B, T), and
            the labels are a dict with `masked_lm` (B, T) and `next_sentence` (B,), which is also
            the key for "sentence_order".
        """
        epoch, number = divmod(step, len(self))
        drawn = self._epoch(epoch if self.shuffle else 0)
        drawn = drawn[number * self._size : (number + 1) * self._size]
        generator = np.random.default_rng((self.seed, step, 1))
        pad_id = self.masking.pad_id
        if self.inputs not in TASKS:
            framed = Ragged.pack([[self.cls_id, *row, self.sep_id] for row in drawn])
            ids_BT = framed.padded(len(drawn), self.max_length, pad_id)
            masked_BT, labels_BT = self.masking(ids_BT, generator)
            return {"token_ids": masked_BT}, labels_BT
        pairs = [pair for *pair, _ in drawn]
        inputs = join_pairs(pairs, self.cls_id, self.sep_id, pad_id, self.max_length)
        inputs["token_ids"], masked = self.masking(inputs["token_ids"], generator)
        label_B = np.array([label for *_, label in drawn], "int32")
        return inputs, {"masked_lm": masked, "next_sentence": label_B}

    def dataset(self, first_step: int = 0, steps: int | None = None, num_workers: int = 0) -> Any:
        """Return the batches of masked rows for `fit`, see `TokenBatches.dataset`."""
        return for_keras(Stream(self.batch, first_step, steps, num_workers))

    def _draw(self, epoch):
        generator = np.random.default_rng((self.seed, epoch))
        if self.inputs in TASKS:
            length = self.max_length - 3
            return list(sentence_pairs(self.documents, length, generator, self.inputs))
        length = self.max_length - 2
        return list(full_sentences(self.documents, length, generator, self.sep_id))

    def _epoch(self, epoch):
        """Return the rows of an epoch in order; the rows of one epoch are cached."""
        cached = self._cached  # read once: threads may request two epochs at a time
        if cached is None or cached[0] != epoch:
            rows = list(itertools.islice(itertools.cycle(self._draw(epoch)), self._count))
            if self.shuffle:
                np.random.default_rng((self.seed, epoch, 2)).shuffle(rows)
            cached = self._cached = epoch, rows
        return cached[1]
