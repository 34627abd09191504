"""Encodings of the library `tokenizers`: of pairs, cut to a length, first ids of words."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.text.text_tokenizer_training import library
from keras_transformer.text.tokenizer import checked_texts


def made(content: bytes) -> Any:
    """Return the tokenizer of a `tokenizer.json`, without padding and truncation."""
    tokenizer = library().Tokenizer.from_buffer(content)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def encoded(
    tokenizer: Any, texts: Sequence[Any], add_special_tokens: bool = True, **options: Any
) -> list[Any]:
    """Return the encodings of texts, of texts that are split into words, or of pairs.

    Raises:
        ValueError: If a text is not valid Unicode, or one that the tokenizer cannot encode.
    """
    try:
        return tokenizer.encode_batch(texts, add_special_tokens=add_special_tokens, **options)
    except TypeError as error:  # for strings there is no other cause
        raise ValueError("texts must be valid Unicode, got a lone surrogate") from error
    except Exception as error:
        if type(error) is not Exception:  # the library's own
            raise
        raise ValueError(f"texts must be ones that the tokenizer can encode: {error}") from error


def encoded_pairs(
    tokenizer: Any, pairs: Sequence[tuple[str, str]], max_length: int, strategy: str
) -> list[tuple[list[int], list[int], list[tuple[int, int]]]]:
    """Return what `TextTokenizer.encode_pairs` does.

    Args:
        tokenizer: A tokenizer, whose truncation is changed.
        pairs, max_length, strategy: See there.
    """
    pairs = [
        # The number of texts in each is checked below.
        tuple(checked_texts(pair, f"pairs[{i}]"))  # type: ignore[misc]
        for i, pair in enumerate(pairs)
    ]
    for i, pair in enumerate(pairs):
        require(len(pair) == 2, f"pairs[{i}]", pair, "two texts")
    least = tokenizer.num_special_tokens_to_add(True) + 1
    if strategy == "only_second":
        firsts = encoded(tokenizer, [first for first, _ in pairs], False)
        least += max((len(encoding.ids) for encoding in firsts), default=0)
    require_whole("max_length", max_length, least)
    tokenizer.enable_truncation(max_length, strategy=strategy)
    results = []
    for encoding in encoded(tokenizer, pairs):
        owners = zip(encoding.sequence_ids, encoding.offsets, strict=True)
        places = [offsets if owner == 1 else (-1, -1) for owner, offsets in owners]
        results.append((encoding.ids, encoding.type_ids, places))
    return results


def cut(
    encoding: Any, max_length: int | None, starts: Sequence[int] = ()
) -> tuple[list[int], list[int]]:
    """Return the ids of an encoding, without the last ones of its text if there are too many.

    The special tokens around the text, such as [CLS] and [SEP], remain, as in `transformers`.

    Args:
        encoding: The encoding of a text.
        max_length: Maximum number of ids; None: any.
        starts: Indices of ids.

    Returns:
        The ids, and the indices; those of ids that are cut off are `max_length`.

    Raises:
        ValueError: If `max_length` leaves no room for the special tokens.
    """
    ids, is_special = encoding.ids, encoding.special_tokens_mask
    if max_length is None or len(ids) <= max_length:
        return ids, list(starts)
    require_whole("max_length", max_length, max(1, sum(is_special)))
    after = len(list(itertools.takewhile(bool, reversed(is_special))))
    end = max_length - after
    return ids[:end] + ids[len(ids) - after :], [x if x < end else max_length for x in starts]


def starts_of_words(encoding: Any, count: int) -> list[int]:
    """Return the index of the first id of each word of a text that is split into words.

    A word without ids gets the index of the next word that has one; if there is none, the last.

    Args:
        encoding: The encoding of the words.
        count: Number of words.
    """
    owners = np.array([-1 if x is None else x for x in encoding.word_ids])
    return [_first(owners >= i) for i in range(count)]


def starts_of_places(encoding: Any, text: str, places: Sequence[tuple[int, int]]) -> list[int]:
    """Return the index of the first id of each word of a text.

    If the space before a word is an id of its own, this is the word's first one.

    Args:
        encoding: The encoding of the text.
        text: The text.
        places: The first character of each word, and the one after its last.
    """
    ends, owners = np.array([end for _, end in encoding.offsets]), encoding.word_ids
    ends[np.array(encoding.special_tokens_mask, bool)] = 0
    found = []
    for start, _ in places:
        first = _first(ends > start)
        while first and owners[first] is not None and owners[first - 1] == owners[first]:
            begin, end = encoding.offsets[first - 1]
            if text[begin:end].strip():
                break
            first -= 1
        found.append(first)
    return found


def _first(fits):
    places = np.flatnonzero(fits)
    return int(places[0]) if len(places) else len(fits) - 1


def with_spaced_words(content: bytes) -> bytes:
    """Return a `tokenizer.json` that puts a space before each word of a split text.

    A byte-level tokenizer, such as RoBERTa's, has other pieces for a word after a space. Those with
    SentencePiece's pieces have the space anyway.

    Args:
        content: Contents of the file.
    """
    spec = json.loads(content)
    first = spec.get("pre_tokenizer") or {}
    for step in [first, *first.get("pretokenizers", [])]:
        if step.get("type") == "ByteLevel":
            step["add_prefix_space"] = True
    return json.dumps(spec, ensure_ascii=False).encode()
