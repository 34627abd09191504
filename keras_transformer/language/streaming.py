"""Streaming of the continuation of one prompt: token by token, or as pieces of text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_transformer.backend import IS_EAGER
from keras_transformer.decoding import uniforms
from keras_transformer.language.added_text import Pieces
from keras_transformer.language.prompts import left_padded, room
from keras_transformer.language.reply import forbidden
from keras_transformer.language.stops import Stops
from keras_transformer.models import DecoderOnly
from keras_transformer.running.runner import Runner
from keras_transformer.running.search_functions import next_token
from keras_transformer.search import Generation
from keras_transformer.text.text_tokenizer import TextTokenizer


def streamed_tokens(
    model: DecoderOnly,
    runner: Runner,
    prompt: Sequence[int],
    search: Generation,
    seed: int | None,
    ends: Collection[int],
) -> Iterator[int]:
    """Yield the tokens that follow a prompt, one by one.

    Args:
        model: The language model.
        runner: Runner that keeps the model's compiled functions.
        prompt: Token ids: at least one, and fewer than the model's `max_length`.
        search: Options of the search, with `beam_size=1`.
        seed: Seed of sampling; None: a random one.
        ends: Ids of the tokens that end the text; they are not yielded.
    """
    if seed is None:
        seed = int(np.random.default_rng().integers(1 << 31))
    draws = uniforms([[seed, 0]], search.max_new_tokens)
    most = room(search, prompt, model.config.max_length)
    state, ids = None, list(prompt)
    for i in range(most - search.forced_eos):  # a forced EOS is not yielded
        logits, state = _next_logits(model, runner, prompt, ids, state, most)
        seen = np.zeros((1, model.config.vocab_size), bool)
        seen[0, ids] = True
        never = np.zeros_like(seen)
        never[0, forbidden(search, ids, i)] = True
        if i < search.min_new_tokens:
            never[0, list(ends)] = True
        tensors = map(_tensor, (seen, draws[:, i], never))
        token = int(next_token(search, logits, *tensors)[0])
        if token in ends:
            return
        ids.append(token)
        yield token


def _next_logits(model, runner, prompt, ids, state, most):
    """Return the logits (1, V) of the next token, and the state.

    They come from a prefill if `state` is None, else from a step.
    """
    token_ids, segments = left_padded([prompt], 1, model.config.pad_id)
    length = token_ids.shape[1]
    key: Hashable
    run: Callable
    if state is None:
        key = "prefill", length, most

        def begin(token_ids, segments=None):
            logits, state, _ = model.prefill(token_ids, length + most, 1, segments)
            return logits, state

        run, arguments = begin, [token_ids, segments]
    else:
        key = "step"

        def follow(token, state, index):
            logits, state = model.step(token, state, index)
            return logits[:, 0], state

        index = length + len(ids) - len(prompt) - 1
        run, arguments = follow, [np.array([ids[-1:]], "int32"), state]
        arguments.append(index if IS_EAGER else np.array(index, "int32"))
    return runner(model, key, lambda: run, arguments)


def _tensor(x: Any) -> Any:
    return ops.convert_to_tensor(x)


def streamed_text(
    tokens: Iterable[int],
    tokenizer: TextTokenizer,
    prompt: Sequence[int] = (),
    stop: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the text that tokens add to a prompt, in pieces, up to the first stop text.

    A piece is held back while it may be the beginning of a stop text or of a character.

    Args:
        tokens: The new tokens, one by one.
        tokenizer: The model's tokenizer.
        prompt: Token ids of the prompt; empty: the text begins with the first new token.
        stop: Stop texts.
    """
    pieces = Pieces(tokenizer, prompt, Stops(stop))
    for token in tokens:
        if piece := pieces.add(token):
            yield piece
        if pieces.stopped:
            return
    if rest := pieces.rest():
        yield rest
