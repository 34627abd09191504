"""Sentences as input of a search: token ids, length limits, padded arrays."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.search import Search
from keras_transformer.text import Tokenizer
from keras_transformer.text.tokenizer import Frame, Texts, checked_texts


class Source(NamedTuple):
    """A source text, and its ids as `Tokenizer.encode_source` gives them."""

    text: str
    ids: list[int]


@dataclass(frozen=True)
class Request:
    """A request to translate: texts, and a caller's settings besides the options of the search.

    Args:
        texts: Source texts.
        prefixes: See `Translator.translate`.
        tokens_per_batch: Maximum source tokens per batch, padding included.
        strict: Whether a text that is too long raises ValueError; else it is cut with a warning.
        seed: Seed of `Translator.sample`.
        constraint: See `Translator.translate`.
        ids: Ids of each text, as in `Source`; None: the texts are not encoded yet.

    Raises:
        ValueError: If the texts are not strings.
    """

    texts: Sequence[str]
    prefixes: Sequence[str] | None = None
    tokens_per_batch: int = 4096
    strict: bool = False
    seed: int = 0
    constraint: Any = None
    ids: Sequence[list[int]] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", checked_texts(self.texts))

    def read(self, tokenizer: Tokenizer) -> Request:
        """Return the request with the ids of its texts, encoded if they are not yet."""
        known = self.ids is not None
        return self if known else replace(self, ids=tokenizer.encode_source(self.texts))

    def part(self, chosen: Sequence[int]) -> Request:
        """Return the request for the texts with these indices."""
        ids = None if self.ids is None else [self.ids[i] for i in chosen]
        prefixes = None if self.prefixes is None else [self.prefixes[i] for i in chosen]
        texts = Texts(self.texts[i] for i in chosen)
        return replace(self, texts=texts, prefixes=prefixes, ids=ids)

    def encoded(
        self, tokenizer: Tokenizer, max_length: int
    ) -> tuple[list[int], list[list[int]], list[list[int]]]:
        """Return the ids of all texts that are not empty.

        Args:
            tokenizer: Tokenizer of the model.
            max_length: The model's `max_length`.

        Returns:
            The indices of these texts; the ids of each; and the ids that its translation must begin
            with. A text with no tokens besides the special ones around it counts as empty.

        Raises:
            ValueError: If a prefix is too long, or with `strict` a text.
        """
        ids, frame = [*(self.read(tokenizer).ids or ())], tokenizer.source_frame
        sources = _limited(ids, self.texts, "texts", frame, max_length, self.strict)
        prefixes = encoded_prefixes(tokenizer, self.prefixes, len(self.texts), max_length - 2)
        empty = frame.around([])
        full = [i for i, ids in enumerate(sources) if ids != empty]
        return full, [sources[i] for i in full], [prefixes[i] for i in full]


def require_match(tokenizer: Tokenizer, config: Any) -> None:
    """Raise ValueError if vocabulary sizes or special ids of a tokenizer and a model differ.

    If the model has several EOS ids, the tokenizer's must be one of them.

    Args:
        tokenizer: The tokenizer.
        config: The config of the model.
    """
    for name in ("source_vocab_size", "target_vocab_size", "pad_id", "bos_id", "eos_id"):
        model_id, tokenizer_id = getattr(config, name), getattr(tokenizer, name)
        same = tokenizer_id in config.eos_ids if name == "eos_id" else model_id == tokenizer_id
        if not same:
            raise ValueError(
                f"the tokenizer does not match the model: its {name} is {tokenizer_id}, "
                f"the model's {model_id}"
            )


def require_pieces(tokenizer: Any, config: Any) -> None:
    """Raise ValueError if a tokenizer has more pieces than the model of a config."""
    if tokenizer.vocab_size > config.vocab_size:
        raise ValueError(
            f"the tokenizer does not match the model: it has {tokenizer.vocab_size} pieces, "
            f"the model {config.vocab_size}"
        )


def encoded_pairs(
    tokenizer: Tokenizer, sources: Sequence[str], targets: Sequence[str], limit: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Return the ids of sources and of targets, including the special tokens around them.

    Args:
        tokenizer: Tokenizer of the model.
        sources: Source texts.
        targets: Target texts.
        limit: The model's `max_length`.

    Raises:
        ValueError: If a text is longer than `limit`.
    """
    sources, targets = checked_texts(sources, "sources"), checked_texts(targets, "targets")
    source_ids, target_ids = tokenizer.encode_source(sources), tokenizer.encode_target(targets)
    frames = tokenizer.source_frame, tokenizer.target_frame
    return (
        _limited(source_ids, sources, "sources", frames[0], limit, strict=True),
        _limited(target_ids, targets, "targets", frames[1], limit, strict=True),
    )


def same_number(sources: Sequence, targets: Sequence) -> None:
    """Raise ValueError if the numbers of sources and targets differ."""
    if len(sources) != len(targets):
        raise ValueError(
            f"sources and targets must have the same length, got {len(sources)} and {len(targets)}"
        )


def _limited(
    ids: list[list[int]], texts: Sequence[str], name: str, frame: Frame, limit: int, strict: bool
) -> list[list[int]]:
    """Cut the ids of texts that are too long with a warning, or raise ValueError if `strict`."""
    for i, tokens in enumerate(ids):
        if len(tokens) > limit:
            problem = (
                f"{name} must have at most {limit} tokens each, the model's max_length, got "
                f"{len(tokens)} in {texts[i]!r:.60}"
            )
            if strict:
                raise ValueError(problem)
            warnings.warn(f"{problem}: it is cut", stacklevel=5)
            content = tokens[len(frame.before) : len(tokens) - len(frame.after)]
            ids[i] = frame.around(content, limit)
    return ids


def encoded_prefixes(
    tokenizer: Tokenizer, prefixes: Sequence[str] | None, count: int, limit: int
) -> list[list[int]]:
    """Return the ids that each translation must begin with.

    Args:
        tokenizer: Tokenizer of the model.
        prefixes: One text per source; None: only the tokens that all targets begin with.
        count: Number of sources.
        limit: Maximum tokens of a prefix.

    Raises:
        ValueError: If a prefix is longer than `limit`, or their number is not `count`.
    """
    frame = tokenizer.target_frame
    if prefixes is None:
        return [list(frame.before)] * count
    prefixes = checked_texts(prefixes, "prefixes")
    if len(prefixes) != count:
        raise ValueError(f"prefixes must have one entry per text, got {len(prefixes)} for {count}")
    ids = [x[: -len(frame.after)] for x in tokenizer.encode_target(prefixes)]
    for prefix, tokens in zip(prefixes, ids, strict=True):
        if len(tokens) > limit:
            raise ValueError(
                f"prefixes must have at most {limit} tokens each, got {len(tokens)} in "
                f"{prefix!r:.60}"
            )
    return ids


def padded(sequences: Sequence[Sequence[int]], rows: int, length: int, pad_id: int) -> np.ndarray:
    """Return the sequences as one array (rows, length), padded with `pad_id`."""
    array = np.full((rows, length), pad_id, "int32")
    for row, tokens in enumerate(sequences):
        array[row, : len(tokens)] = tokens
    return array


def most_tokens(
    sources: Sequence[Sequence[int]],
    prefixes: Sequence[Sequence[int]],
    rows: int,
    search: Search,
    max_length: int,
) -> np.ndarray:
    """Return the maximum tokens of each translation (rows,); 1 for rows that only fill a batch."""
    limits = np.ones(rows, "int32")
    for row, (source, prefix) in enumerate(zip(sources, prefixes, strict=True)):
        longest = search.limit(max(len(source), len(prefix)))
        limits[row] = min(search.max_length or longest, max_length - 1)
    return limits


def extended(x: np.ndarray, count: int) -> np.ndarray:
    """Return x with its last row repeated `count` times, for rows that only fill a batch."""
    return np.concatenate([x, np.repeat(x[-1:], count, axis=0)])
