"""Sentences as input of a search: token ids, length limits, padded arrays."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_transformer.search import Search
from keras_transformer.text import Tokenizer
from keras_transformer.text.tokenizer import checked_texts


@dataclass(frozen=True)
class Request:
    """Texts to translate, and what a caller wants of them besides the options of the search.

    Args:
        texts: Source texts.
        prefixes: See `Translator.translate`.
        tokens_per_batch: Maximum source tokens per batch, padding included.
        strict: Whether a text that is too long raises ValueError; else it is cut with a warning.
        seed: Seed of `Translator.sample`.
        constraint: See `Translator.translate`.

    Raises:
        ValueError: If the texts are not strings.
    """

    texts: Sequence[str]
    prefixes: Sequence[str] | None = None
    tokens_per_batch: int = 4096
    strict: bool = False
    seed: int = 0
    constraint: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", checked_texts(self.texts))

    def encoded(
        self, tokenizer: Tokenizer, max_length: int
    ) -> tuple[list[int], list[list[int]], list[list[int]]]:
        """Return the ids of all texts that are not empty.

        Args:
            tokenizer: Tokenizer of the model.
            max_length: The model's.

        Returns:
            The numbers of these texts; the ids of each; and the ids that its translation must begin
            with. A text without tokens besides the frame is empty, and so is its translation.
        """
        sources = encoded(tokenizer, self.texts, "texts", max_length, self.strict)
        prefixes = encoded_prefixes(tokenizer, self.prefixes, len(self.texts), max_length - 2)
        empty = sum(map(len, tokenizer.source_frame))
        full = [i for i, ids in enumerate(sources) if len(ids) > empty]
        return full, [sources[i] for i in full], [prefixes[i] for i in full]


def require_match(tokenizer: Tokenizer, config: Any) -> None:
    """Raise ValueError if vocabulary sizes or special ids of a tokenizer and a model differ.

    Args:
        tokenizer: The tokenizer.
        config: The config of the model.
    """
    for name in ("source_vocab_size", "target_vocab_size", "pad_id", "bos_id", "eos_id"):
        ours, theirs = getattr(config, name), getattr(tokenizer, name)
        same = theirs in config.eos_ids if name == "eos_id" else ours == theirs
        if not same:
            raise ValueError(
                f"the tokenizer does not match the model: its {name} is {theirs}, "
                f"the model's {ours}"
            )


def encoded(
    tokenizer: Tokenizer, texts: Sequence[str], name: str, limit: int, strict: bool
) -> list[list[int]]:
    """Return the ids of each text, including the special tokens around it.

    Args:
        tokenizer: Tokenizer of the model.
        texts: Target texts if `name` is "targets", else source texts.
        name: Name of the texts in error messages.
        limit: The model's `max_length`.
        strict: Whether a longer text raises ValueError; else it is cut with a warning.
    """
    texts = checked_texts(texts, name)
    if name == "targets":
        ids, frame = tokenizer.encode_target(texts), tokenizer.target_frame
    else:
        ids, frame = tokenizer.encode_source(texts), tokenizer.source_frame
    for i, tokens in enumerate(ids):
        if len(tokens) > limit:
            problem = (
                f"{name} must have at most {limit} tokens each, the model's max_length, got "
                f"{len(tokens)} in {texts[i]!r:.60}"
            )
            if strict:
                raise ValueError(problem)
            warnings.warn(f"{problem}: it is cut", stacklevel=5)
            content = tokens[len(frame.before) : -len(frame.after)]
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
        longest = max(len(source), len(prefix)) + search.max_extra_length
        limits[row] = min(search.max_length or longest, max_length - 1)
    return limits


def extended(x: np.ndarray, count: int) -> np.ndarray:
    """Return x with its last row repeated `count` times, for rows that only fill a batch."""
    return np.concatenate([x, np.repeat(x[-1:], count, axis=0)])
