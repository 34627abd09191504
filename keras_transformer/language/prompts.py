"""Helpers of generation: padded prompts, limits of length and stop texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keras_transformer.backend import COMPILES_EACH_SHAPE
from keras_transformer.running.batches import MULTIPLE
from keras_transformer.search import Generation
from keras_transformer.text.tokenizer import round_up


def left_padded(
    prompts: Sequence[Sequence[int]],
    rows: int,
    pad_id: int,
    few_shapes: bool = COMPILES_EACH_SHAPE,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return prompts padded on the left, and their segments: 0 for padding, else 1.

    Args:
        prompts: Token ids of each prompt.
        rows: B, at least the number of prompts; further rows are filled with padding.
        pad_id: Id of the padding.
        few_shapes: Whether to round the length P of the rows up to a multiple of 16, and always to
            return segments, so that few shapes are compiled.

    Returns:
        Ids (B, P); and segments (B, P), None if nothing is padded and `few_shapes` is False.
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
    segments[len(prompts) :, -1] = 1  # a row that only fills the batch must have a token
    return token_ids, segments


def room(search: Generation, prompt: Sequence[int], limit: int) -> int:
    """Return the maximum number of new tokens after a prompt; 0 or less if it is too long.

    Args:
        search: Options of the search, of which `max_new_tokens` and `max_length` are limits.
        prompt: Token ids of the prompt.
        limit: Maximum number of tokens, prompt included, that the model accepts.
    """
    return min(search.max_new_tokens, min(search.max_length or limit, limit) - len(prompt))


def before_stop(text: str, stop: Sequence[str]) -> str:
    """Return the text up to the first occurrence of a stop text; all of it if there is none."""
    ends = [place for mark in stop if (place := text.find(mark)) >= 0]
    return text[: min(ends)] if ends else text
