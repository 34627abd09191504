"""Helpers around the library `tokenizers`: encode texts and pairs, cut them, locate words."""

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
    """Make a `tokenizers.Tokenizer` from a `tokenizer.json`, without padding and truncation.

    Args:
        content: Contents of the `tokenizer.json`.
    """
    tokenizer = library().Tokenizer.from_buffer(content)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def encoded(
    tokenizer: Any, texts: Sequence[Any], add_special_tokens: bool = True, **options: Any
) -> list[Any]:
    """Return the library's encoding of each text.

    Args:
        tokenizer: A `tokenizers.Tokenizer`.
        texts: Texts, texts that are split into words, or pairs of texts.
        add_special_tokens: Whether texts get the tokenizer's special tokens, such as [CLS].
        options: Further options of `encode_batch`.

    Raises:
        ValueError: If a text is not valid Unicode, or the tokenizer cannot encode it.
    """
    try:
        return tokenizer.encode_batch(texts, add_special_tokens=add_special_tokens, **options)
    except TypeError as error:  # raised for lone surrogates only, since texts are strings
        raise ValueError("texts must be valid Unicode, got a lone surrogate") from error
    except Exception as error:
        if type(error) is not Exception:  # the library's own errors are of this exact type
            raise
        raise ValueError(f"texts must be ones that the tokenizer can encode: {error}") from error


def encoded_pairs(
    tokenizer: Any, pairs: Sequence[tuple[str, str]], max_length: int, strategy: str
) -> list[tuple[list[int], list[int], list[tuple[int, int]]]]:
    """Encode pairs of texts; the result is that of `TextTokenizer.encode_pairs`.

    Args:
        tokenizer: A `tokenizers.Tokenizer`; its truncation is changed.
        pairs, max_length, strategy: See `TextTokenizer.encode_pairs`.
    """
    pairs = [
        tuple(checked_texts(pair, f"pairs[{i}]"))  # type: ignore[misc]  # two texts, see below
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
    """Return the ids of an encoding, truncated to `max_length`.

    Only ids of the text are removed, from its end. The special tokens around it, such as [CLS] and
    [SEP], remain, as in `transformers`.

    Args:
        encoding: The encoding of a text.
        max_length: Maximum number of ids; None: no limit.
        starts: Indices of some ids, such as the first ids of words.

    Returns:
        The remaining ids; and `starts`, in which the index of a removed id is `max_length`.

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
    """Return the index of the first id of each word, for a text that was split into words.

    A word without ids gets the first index of the next word that has ids, or the last index of
    the encoding if there is no such word.

    Args:
        encoding: The encoding of the words.
        count: Number of words.
    """
    owners = np.array([-1 if x is None else x for x in encoding.word_ids])
    return [_first(owners >= i) for i in range(count)]


def starts_of_places(encoding: Any, text: str, places: Sequence[tuple[int, int]]) -> list[int]:
    """Return the index of the first id of each word, for a text that was encoded as a whole.

    If the space before a word is a separate id, it counts as the first id of the word.

    Args:
        encoding: The encoding of the text.
        text: The text.
        places: Start and end of each word in the text, in characters.
    """
    ends, owners = np.array([end for _, end in encoding.offsets]), encoding.word_ids
    ends[np.array(encoding.special_tokens_mask, bool)] = 0
    firsts = []
    for start, _ in places:
        first = _first(ends > start)
        while first and owners[first] is not None and owners[first - 1] == owners[first]:
            begin, end = encoding.offsets[first - 1]
            if text[begin:end].strip():
                break
            first -= 1
        firsts.append(first)
    return firsts


def _first(mask):
    places = np.flatnonzero(mask)
    return int(places[0]) if len(places) else len(mask) - 1


def with_spaced_words(content: bytes) -> bytes:
    """Return a `tokenizer.json` changed to encode each word of a split text with a space before it.

    A byte-level tokenizer, such as RoBERTa's, has other pieces for a word after a space than
    without one. Tokenizers with SentencePiece's pieces add the space anyway.

    Args:
        content: Contents of the `tokenizer.json`.
    """
    spec = json.loads(content)
    first = spec.get("pre_tokenizer") or {}
    for step in [first, *first.get("pretokenizers", [])]:
        if step.get("type") == "ByteLevel":
            step["add_prefix_space"] = True
    return json.dumps(spec, ensure_ascii=False).encode()
