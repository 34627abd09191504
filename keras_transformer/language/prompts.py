"""Prompts as input of a language model, and stop texts in whole output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keras_transformer.backend import COMPILES_EACH_SHAPE
from keras_transformer.running.runner import MULTIPLE
from keras_transformer.search import Generation
from keras_transformer.text.tokenizer import round_up


def left_padded(
    prompts: Sequence[Sequence[int]],
    rows: int,
    pad_id: int,
    few_shapes: bool = COMPILES_EACH_SHAPE,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return prompts padded on the left, and segments (B, P), 0 for padding; None if all are 1.

    With few shapes, P is a multiple of 16, and there are always segments.
    """
    longest = round_up(max(map(len, prompts)), MULTIPLE if few_shapes else 1)
    full = rows == len(prompts) and all(len(prompt) == longest for prompt in prompts)
    if full and not few_shapes:
        return np.array(prompts, "int32"), None
    token_ids = np.full((rows, longest), pad_id, "int32")
    segments = np.zeros((rows, longest), "int32")
    for row, prompt in enumerate(prompts):
        token_ids[row, longest - len(prompt) :] = prompt
        segments[row, longest - len(prompt) :] = 1
    segments[len(prompts) :, -1] = 1  # rows that only fill the batch
    return token_ids, segments


def room(search: Generation, prompt: Sequence[int], limit: int) -> int:
    """Return how many tokens may follow a prompt, by its options and the model's limit."""
    return min(search.max_new_tokens, min(search.max_length or limit, limit) - len(prompt))


def forbidden(search: Generation, ids: Sequence[int], made: int) -> list[int]:
    """Return tokens that must not follow `ids`, of which the last `made` are new.

    These are the suppressed ones, and those that would repeat a sequence of `no_repeat_ngram_size`.
    """
    found = [*search.suppress_tokens, *(() if made else search.begin_suppress_tokens)]
    if size := search.no_repeat_ngram_size:
        last = list(ids[len(ids) - size + 1 :])
        for i in range(len(ids) - size + 1):
            if list(ids[i : i + size - 1]) == last:
                found.append(ids[i + size - 1])
    return found


def before_stop(text: str, stop: Sequence[str]) -> str:
    """Return the text that precedes the first of `stop`."""
    ends = [place for mark in stop if (place := text.find(mark)) >= 0]
    return text[: min(ends)] if ends else text
