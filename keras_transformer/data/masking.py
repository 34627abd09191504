"""Pretraining tasks for encoders: masked language modeling, next sentence, sentence order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from keras_transformer.config import require, require_whole

TASKS = ("next_sentence", "sentence_order")


@dataclass(frozen=True)
class Masking:
    """Token masking for masked language models (Devlin et al. 2019, section 3.1, task 1).

    In each row the fraction `rate` of the tokens without special ids is chosen, at least one. Each
    chosen token becomes the mask with the probability `mask_share` and a random token with the
    probability `random_share`; otherwise it is unchanged. A new call in each epoch gives RoBERTa's
    dynamic masking (Liu et al. 2019, section 4.1):

    ```python
    inputs, labels = masking(token_ids, np.random.default_rng((seed, epoch, batch)))
    ```

    Args:
        vocab_size: Vocabulary size V; random tokens are drawn from all ids except special ones.
        mask_id: Id of the mask token.
        special_ids: Ids that are never chosen, such as [CLS] and [SEP]; the ids of padding and
            mask need not be listed.
        pad_id: Padding id, and the label of tokens that were not chosen.
        rate: Fraction of the tokens to choose, in (0, 1].
        mask_share, random_share: Probabilities that a chosen token becomes the mask, and a random
            token; each in [0, 1], together at most 1.
        longest: Maximum number of neighbouring tokens that are chosen together: n tokens with a
            probability proportional to 1 / n (Lan et al. 2020, section 4.1; there, n counts words).

    Call arguments:
        token_ids_BT: Integer token ids (B, T).
        generator: Random number generator.
        word_starts_BT: Boolean (B, T), True where a word begins: whole words are chosen, until the
            fraction `rate` of the tokens is reached. None: groups of up to `longest` tokens are
            chosen.

    Returns:
        The inputs (B, T); and the labels (B, T): the original ids of the chosen tokens, `pad_id`
        elsewhere.

    Raises:
        ValueError: If a value is out of range.
    """

    vocab_size: int
    mask_id: int
    special_ids: tuple[int, ...] = ()
    pad_id: int = 0
    rate: float = 0.15
    mask_share: float = 0.8
    random_share: float = 0.1
    longest: int = 1

    def __post_init__(self):
        require_whole("vocab_size", self.vocab_size, 1)
        require_whole("longest", self.longest, 1)
        for name in ("mask_id", "pad_id"):
            value = getattr(self, name)
            accepted = f"in [0, {self.vocab_size})"
            require(0 <= value < self.vocab_size, name, value, accepted)
        require(0 < self.rate <= 1, "rate", self.rate, "in (0, 1]")
        require(0 <= self.mask_share <= 1, "mask_share", self.mask_share, "in [0, 1]")
        most = 1 - self.mask_share
        in_range = 0 <= self.random_share <= most + 1e-9
        require(in_range, "random_share", self.random_share, f"in [0, {most:g}]")
        if len(self._ordinary_ids()) == 0:
            raise ValueError(f"special_ids must leave some ordinary ids, got all {self.vocab_size}")

    def __call__(
        self,
        token_ids_BT: np.ndarray,
        generator: np.random.Generator,
        word_starts_BT: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and labels, see the class."""
        token_ids_BT = np.asarray(token_ids_BT)
        if word_starts_BT is None and self.longest > 1:
            word_starts_BT = _starts(token_ids_BT.shape, self.longest, generator)
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
        """Return a mask of the tokens (or words) with the lowest random numbers of their row."""
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


def full_sentences(
    documents: Sequence[Sequence[Sequence[int]]],
    max_length: int,
    generator: np.random.Generator,
    sep_id: int,
) -> Iterator[list[int]]:
    """Make rows of consecutive whole sentences (Liu et al. 2019, section 4.2, "full-sentences").

    Documents are taken in random order. At the end of a document, the row continues with the next
    document after a separator. Sentences that are longer than a row are truncated.

    Args:
        documents: Documents as lists of sentences, which are lists of token ids.
        max_length: Maximum tokens of a row, at least 1.
        generator: Random number generator.
        sep_id: Id of the separator between two documents.

    Yields:
        The token ids of a row, at least one.

    Raises:
        ValueError: If `max_length` is below 1.
    """
    require_whole("max_length", max_length, 1)
    row: list[int] = []
    for number in generator.permutation(len(documents)):
        if row and row[-1] != sep_id:
            row.append(sep_id)
        for sentence in documents[number]:
            if row and len(row) + len(sentence) > max_length:
                yield row[:max_length]
                row = []
            row += map(int, sentence[:max_length])
    if row:
        yield row[:max_length]


def sentence_pairs(
    documents: Sequence[Sequence[Sequence[int]]],
    max_length: int,
    generator: np.random.Generator,
    task: str = "next_sentence",
) -> Iterator[tuple[list[int], list[int], int]]:
    """Make pairs of texts with one or more sentences each, and the label of each pair.

    Each document is divided into passages: the fewest consecutive sentences that have at least
    `max_length` tokens together; the last passage may have fewer tokens. A passage is split into
    two texts after a random sentence. Empty sentences are left out.

    Label 0, about half of the pairs: the second text follows the first in a document. Label 1: the
    second text is from another document ("next_sentence"; Devlin et al. 2019, section 3.1, task 2),
    or the two texts are swapped ("sentence_order"; Lan et al. 2020, section 3.1). If the second
    text is from another document, the next pair begins with the sentences that it replaced. If a
    pair is too long, the longer text is truncated at its end until both have the same length, then
    both texts.

    Args:
        documents: Documents as lists of sentences, which are lists of token ids.
        max_length: Maximum tokens of both texts together, at least 2.
        generator: Random number generator.
        task: One of `TASKS`.

    Yields:
        First text, second text, label. A passage of one sentence makes no pair.

    Raises:
        ValueError: If the task is unknown, `max_length` is below 2, or there are fewer than two
            non-empty documents for "next_sentence".
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
    """Join pairs as [CLS] first [SEP] second [SEP] and pad them (Devlin et al. 2019, Figure 2).

    Args:
        pairs: First and second texts, lists of token ids.
        cls_id, sep_id, pad_id: Special ids.
        length: Row length T; None: the length of the longest joined pair.

    Returns:
        `token_ids` and `type_ids` (B, T) int32. The types are 0 for [CLS], the first text and its
        [SEP], 1 for the second text and its [SEP], and 0 for padding.

    Raises:
        ValueError: If a pair with its three special tokens is longer than `length`.
    """
    longest = max(len(first) + len(second) + 3 for first, second in pairs)
    length = longest if length is None else length
    require(length >= longest, "length", length, f"at least {longest}, the longest pair")
    ids = np.full((len(pairs), length), pad_id, "int32")
    types = np.zeros((len(pairs), length), "int32")
    for row, (first, second) in enumerate(pairs):
        whole = [cls_id, *first, sep_id, *second, sep_id]
        ids[row, : len(whole)] = whole
        types[row, len(first) + 2 : len(whole)] = 1
    return {"token_ids": ids, "type_ids": types}


def _starts(shape, longest, generator):
    """Return random starts of groups of n <= `longest` tokens: (B, T), True where one begins.

    The probability of n is proportional to 1 / n.
    """
    sizes = np.arange(1, longest + 1)
    drawn_BT = generator.choice(sizes, size=shape, p=1 / sizes / np.sum(1 / sizes))
    ends_BT = np.cumsum(drawn_BT, axis=1)
    starts_BT = np.zeros((shape[0], shape[1] + 1), bool)
    starts_BT[:, 0] = True
    np.put_along_axis(starts_BT, np.minimum(ends_BT, shape[1]), True, axis=1)
    return starts_BT[:, : shape[1]]


def _end(sentences, start, room):
    """Return the end (exclusive) of the fewest sentences from `start` with at least `room` tokens.

    If the sentences from `start` have fewer tokens, return the number of all sentences.
    """
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
