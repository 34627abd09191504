"""Pretraining tasks of encoders: masked tokens, and pairs of texts that follow or do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from keras_transformer.config import require, require_whole

TASKS = ("next_sentence", "sentence_order")


@dataclass(frozen=True)
class Masking:
    """Hides tokens that a masked LM is to find (Devlin et al. 2019, section 3.1, task 1).

    Of each row's tokens `rate` are chosen, at least one; of these `mask_share` become the mask,
    `random_share` another token drawn at random, and the rest stay. Called anew in each epoch it
    is RoBERTa's dynamic masking (Liu et al. 2019, section 4.1):

    ```python
    inputs, labels = masking(token_ids, np.random.default_rng((seed, epoch, batch)))
    ```

    Args:
        vocab_size: V, which random tokens are drawn from, without the special ones.
        mask_id: the id that masks.
        special_ids: those that are never chosen, such as [CLS] and [SEP]; padding and the mask
            are not, either.
        pad_id: the id that pads, and the label where nothing was chosen.
        rate: share of the tokens that are chosen, in (0, 1].
        mask_share, random_share: what becomes of these, in [0, 1], together at most 1.

    Call arguments:
        token_ids_BT: integers.
        generator: of the random numbers.
        word_starts_BT: True where a word begins: then words are chosen as a whole, until `rate`
            of the tokens is reached; None: each token by itself.

    Returns:
        inputs (B, T), and labels (B, T): the token that was there, where one was chosen.

    Raises:
        ValueError: on a value out of range.
    """

    vocab_size: int
    mask_id: int
    special_ids: tuple[int, ...] = ()
    pad_id: int = 0
    rate: float = 0.15
    mask_share: float = 0.8
    random_share: float = 0.1

    def __post_init__(self):
        require_whole("vocab_size", self.vocab_size, 1)
        for name in ("mask_id", "pad_id"):
            value = getattr(self, name)
            accepted = f"in [0, {self.vocab_size})"
            require(0 <= value < self.vocab_size, name, value, accepted)
        require(0 < self.rate <= 1, "rate", self.rate, "in (0, 1]")
        require(0 <= self.mask_share <= 1, "mask_share", self.mask_share, "in [0, 1]")
        most = 1 - self.mask_share
        fits = 0 <= self.random_share <= most + 1e-9
        require(fits, "random_share", self.random_share, f"in [0, {most:g}]")
        if len(self._ordinary_ids()) == 0:
            raise ValueError(f"special_ids must leave ordinary ones, got all {self.vocab_size}")

    def __call__(
        self,
        token_ids_BT: np.ndarray,
        generator: np.random.Generator,
        word_starts_BT: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and labels, as the class says."""
        token_ids_BT = np.asarray(token_ids_BT)
        chosen_BT = self._chosen(token_ids_BT, generator, word_starts_BT)
        fate_BT = generator.random(token_ids_BT.shape)
        ordinary = self._ordinary_ids()
        random_BT = ordinary[generator.integers(len(ordinary), size=token_ids_BT.shape)]
        is_random_BT = chosen_BT & (fate_BT >= 1 - self.random_share)
        is_masked_BT = chosen_BT & ~is_random_BT & (fate_BT < self.mask_share)
        inputs_BT = np.where(is_masked_BT, self.mask_id, token_ids_BT)
        inputs_BT = np.where(is_random_BT, random_BT, inputs_BT).astype(token_ids_BT.dtype)
        return inputs_BT, np.where(chosen_BT, token_ids_BT, self.pad_id)

    def _ordinary_ids(self):
        return np.setdiff1d(np.arange(self.vocab_size), self._special_ids())

    def _special_ids(self):
        return [*self.special_ids, self.pad_id, self.mask_id]

    def _chosen(self, token_ids_BT, generator, word_starts_BT):
        """The tokens of the words whose random numbers are the least of their row."""
        number_BT = generator.random(token_ids_BT.shape)
        if word_starts_BT is not None:
            places_T = np.arange(token_ids_BT.shape[1])
            starts_BT = np.maximum.accumulate(np.where(word_starts_BT, places_T, 0), axis=1)
            number_BT = np.take_along_axis(number_BT, starts_BT, axis=1)
        can_be_BT = ~np.isin(token_ids_BT, self._special_ids())
        number_BT = np.where(can_be_BT, number_BT, np.inf)
        tokens_B = can_be_BT.sum(axis=1)
        wanted_B = np.maximum(np.rint(self.rate * tokens_B), 1)
        before_BT = np.stack([np.searchsorted(np.sort(row), row) for row in number_BT])
        return can_be_BT & (before_BT < wanted_B[:, None])


def sentence_pairs(
    documents: Sequence[Sequence[Sequence[int]]],
    max_length: int,
    generator: np.random.Generator,
    task: str = "next_sentence",
) -> Iterator[tuple[list[int], list[int], int]]:
    """Pairs of texts, each some sentences long, and whether the second follows the first (0).

    Half of the pairs are as they stand in a document, in the others (1) the second is of another
    document ("next_sentence"; Devlin et al. 2019, section 3.1, task 2), or the two have changed
    places ("sentence_order"; Lan et al. 2020, section 3.1). Sentences whose place another text
    took begin the next pair. Of pairs that are too long the longer text loses its end.

    Args:
        documents: lists of sentences, which are lists of token ids.
        max_length: tokens of both texts together, at least 2.
        generator: of the random numbers.
        task: one of `TASKS`.

    Yields:
        First text, second text, label. What has only one sentence is left out.

    Raises:
        ValueError: for another task, a length below 2, or one document where another is needed.
    """
    require(task in TASKS, "task", task, f"one of {TASKS}")
    require_whole("max_length", max_length, 2)
    others = [i for i, document in enumerate(documents) if any(document)]
    if task == "next_sentence" and len(others) < 2:
        raise ValueError(f"documents must be two or more, got {len(others)} that hold tokens")
    for number, document in enumerate(documents):
        sentences, start = [sentence for sentence in document if len(sentence)], 0
        while start < len(sentences):
            end = _end(sentences, start, max_length)
            if end - start < 2:
                start = end
                continue
            split = int(generator.integers(start + 1, end))
            first, second = _flat(sentences[start:split]), _flat(sentences[split:end])
            label, start = int(generator.random() < 0.5), end
            if label and task == "sentence_order":
                first, second = second, first
            elif label:
                while (drawn := others[generator.integers(len(others))]) == number:
                    pass
                other = [sentence for sentence in documents[drawn] if len(sentence)]
                begin = int(generator.integers(len(other)))
                room = max(1, max_length - len(first))
                second, start = _flat(other[begin : _end(other, begin, room)]), split
            yield *_cut(first, second, max_length), label


def join_pairs(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    cls_id: int,
    sep_id: int,
    pad_id: int = 0,
    length: int | None = None,
) -> dict[str, np.ndarray]:
    """[CLS] first [SEP] second [SEP], padded (Devlin et al. 2019, Figure 2).

    Args:
        pairs: first and second texts, lists of token ids.
        cls_id, sep_id, pad_id: the special ids.
        length: of the rows; None: of the longest.

    Returns:
        `token_ids` and `type_ids` (B, T) int32: 0 for the first text, 1 for the second.

    Raises:
        ValueError: if a pair is longer.
    """
    longest = max(len(first) + len(second) + 3 for first, second in pairs)
    length = longest if length is None else length
    require(length >= longest, "length", length, f"at least {longest}, as the longest pair")
    ids = np.full((len(pairs), length), pad_id, "int32")
    types = np.zeros((len(pairs), length), "int32")
    for row, (first, second) in enumerate(pairs):
        whole = [cls_id, *first, sep_id, *second, sep_id]
        ids[row, : len(whole)] = whole
        types[row, len(first) + 2 : len(whole)] = 1
    return {"token_ids": ids, "type_ids": types}


def _end(sentences, start, room):
    """The index after those sentences from `start` on that have `room` tokens, or a few more."""
    tokens = np.cumsum([len(sentence) for sentence in sentences[start:]])
    return start + min(int(np.searchsorted(tokens, room)) + 1, len(tokens))


def _flat(sentences):
    return [int(token) for sentence in sentences for token in sentence]


def _cut(first, second, max_length):
    over = max(0, len(first) + len(second) - max_length)
    from_first = min(over, max(0, len(first) - len(second)))
    from_second = min(over, max(0, len(second) - len(first)))
    first, second = first[: len(first) - from_first], second[: len(second) - from_second]
    over -= from_first + from_second
    half = over // 2
    return first[: len(first) - half], second[: len(second) - (over - half)]
