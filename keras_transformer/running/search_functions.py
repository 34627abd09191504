"""Searches over a model as functions of tensors, which can be compiled or traced."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from keras import ops

from keras_transformer.backend import quick
from keras_transformer.decoding import (
    IMPOSSIBLE,
    decoding_loop,
    penalize_repetition,
    sample_rows,
    sampler_of,
    whole_search,
)
from keras_transformer.models import DecoderOnly, EncoderDecoder, Speech
from keras_transformer.search import Generation, Search, Transcription


def translation_function(search: Search, model: EncoderDecoder, constraint: Any = None) -> Callable:
    """Return `find(source, max_lengths, prefix, uniforms, constraint_state)` -> ids, scores.

    The ids (B, K, L) and scores (B, K) are best first. See `translation_loop` for the arguments.
    """
    return whole_search(translation_loop(search, model, constraint))


def translation_loop(search: Search, model: EncoderDecoder, constraint: Any = None) -> Callable:
    """Return `begin(source, max_lengths, prefix, uniforms, constraint_state)` -> `SearchLoop`.

    The arguments of `begin` are tensors: source ids (B, S), maximum target tokens per row (B,),
    first target tokens (B, P), padded, random numbers (B, L) for sampling, and the state of the
    `constraint` (see `decoding`); the last three may be None. With the option `shortlist`, `begin`
    takes two more: a list (U,) of target ids that begins with `listed_first`, and which of them
    each row may use (B, U), see `text.lexical_shortlist.Shortlist.tokens_of`. If the model's
    `prefill` takes several tensors of the source, such as features and the number of frames,
    `source` is a dict of them.
    """
    config = model.config
    beam_size = 1 if search.temperature is not None else search.beam_size
    suppressed = search.suppress_tokens, search.begin_suppress_tokens
    listed, _ = listed_first(search, config)

    def begin(source, max_lengths, prefix=None, uniforms=None, constraint_state=None, *shortlist):
        source = source if isinstance(source, dict) else {model.source_name: source}
        source_ids = source[model.source_name]
        rows, source_length = ops.shape(source_ids)[:2]
        length = search.limit(model.target_length(source_length))
        if search.max_length is not None:
            length = min(search.max_length, config.max_length)
        if prefix is not None:
            length = length + ops.shape(prefix)[1]
        first_ids = quick.full((rows, 1), config.bos_id, dtype="int32")
        sizes = dict(first_ids=first_ids, length=length + 1, beam_size=beam_size)
        options = search
        to_search_id: Callable[[int], int] = int  # without a shortlist, the model's ids
        past = first_ids
        if search.shortlist:  # the ids of the search are indices of the list
            ids_U, sizes["listed"], to_search_id = shortlist[0], shortlist, listed.index
            always, first = (tuple(map(to_search_id, x)) for x in suppressed)
            options = replace(search, suppress_tokens=always, begin_suppress_tokens=first)
            prefix = None if prefix is None else _places(prefix, ids_U)
            past = quick.full((rows, 1), to_search_id(config.bos_id), dtype="int32")
        logits, state, step = model.prefill(**source, **sizes)
        loop = decoding_loop(
            step,
            logits,
            state,
            options,
            eos_ids=tuple(map(to_search_id, config.eos_ids)),
            length=length,
            index=model.first_position(source_length),
            max_lengths_B=max_lengths,
            pad_id=to_search_id(config.pad_id),
            banned_ids=(to_search_id(config.bos_id),),
            prefix_BP=prefix,
            # The repetition penalty of `transformers` includes the decoder's first token.
            past_BP=past if search.scoring == "transformers" else None,
            uniforms_BL=uniforms,
            constraint=constraint,
            constraint_state=constraint_state,
        )
        if not search.shortlist:
            return loop

        def result(results: Any) -> tuple[Any, Any]:
            ids, scores = loop.result(results)
            return ops.take(ids_U, ids, axis=0), scores

        return replace(loop, result=result)

    return begin


def listed_first(search: Search, config: Any) -> tuple[tuple[int, ...], int]:
    """Return the first ids of the list of a search with a shortlist.

    Also return how many of them each row may use: padding, BOS and EOS. The others are suppressed.
    """
    special = tuple(dict.fromkeys((config.pad_id, config.bos_id, *config.eos_ids)))
    suppressed = dict.fromkeys((*search.suppress_tokens, *search.begin_suppress_tokens))
    return (*special, *(x for x in suppressed if x not in special)), len(special)


def _places(ids_BP, listed_ids_U):
    """Return the index (B, P), int32, of each id in a list."""
    same_BPU = ops.equal(ops.expand_dims(ids_BP, 2), listed_ids_U)
    return ops.cast(ops.argmax(ops.cast(same_BPU, "int32"), axis=-1), "int32")


def generation_function(
    search: Generation, model: DecoderOnly, ends: Sequence[int] | None = None
) -> Callable:
    """Return `find(token_ids, max_lengths, segments=None, uniforms=None)` -> ids, scores.

    The new ids (B, K, L), padded with -1, and scores (B, K) are best first. See `generation_loop`
    for the arguments.
    """
    return whole_search(generation_loop(search, model, ends))


def generation_loop(
    search: Generation, model: DecoderOnly, ends: Sequence[int] | None = None
) -> Callable:
    """Return `begin(token_ids, max_lengths, segments=None, uniforms=None)` -> `SearchLoop`.

    `ends` are the ids that end a text; None: those of the model.

    The arguments of `begin` are tensors: prompts (B, P), padded on the left, maximum new tokens per
    row (B,), EOS included, segments (B, P), which are 0 for padding and 1 elsewhere (None: no
    padding), and random numbers (B, L) for sampling (None: no sampling).
    """
    config = model.config

    def begin(token_ids, max_lengths, segments=None, uniforms=None):
        prompt_length = ops.shape(token_ids)[1]
        length = search.max_new_tokens
        logits, state, step = model.prefill(
            token_ids, prompt_length + length, search.beam_size, segments
        )

        # Finished rows hold -1, which is not a token; the step needs a valid one.
        def next_step(token_ids: Any, *arguments: Any) -> Any:
            return step(ops.maximum(token_ids, 0), *arguments)

        past = token_ids
        if segments is not None:
            past = ops.where(ops.equal(segments, 0), -1, token_ids)
        return decoding_loop(
            next_step,
            logits,
            state,
            search,
            eos_ids=ends or config.eos_ids,
            length=length,
            max_lengths_B=max_lengths,
            index=prompt_length,
            pad_id=-1,
            uniforms_BL=uniforms,
            past_BP=past,
        )

    return begin


def transcription_function(model: Speech, search: Transcription, room: int, begun: int) -> Callable:
    """Return `find(inputs, first_ids)` -> the best ids (B, L) of each sound.

    `inputs` holds the sounds: a dict of tensors that `Speech.prefill` takes.

    Args:
        model: The model.
        search: Options of the search.
        room: L, the maximum number of tokens.
        begun: Number of `first_ids` of each row (B, begun), which precede the text.
    """
    config = model.config

    def find(inputs: Mapping[str, Any], first_ids: Any) -> Any:
        logits, state, step = model.prefill(
            **inputs, first_ids=first_ids, length=begun + room, beam_size=search.beam_size
        )
        loop = decoding_loop(
            step,
            logits,
            state,
            search,
            eos_ids=config.eos_ids,
            length=room,
            max_lengths_B=ops.full(ops.shape(logits)[:1], room, dtype="int32"),
            index=begun,
            pad_id=config.pad_id,
            banned_ids=(config.bos_id,),
            past_BP=first_ids,
        )
        return loop.run()[0][:, 0]

    return find


def next_token(
    search: Generation, logits_BV: Any, seen_BV: Any, uniform_B: Any, forbidden_BV: Any = None
) -> Any:
    """Return the token (B,) that `generation_function` takes if no token is forced.

    Args:
        search: Options of the search.
        logits_BV: Logits.
        seen_BV: Boolean, tokens that have occurred, for the repetition penalty.
        uniform_B: Random numbers in [0, 1) for sampling.
        forbidden_BV: Boolean, tokens that are not taken; None: all may be taken.
    """
    logits_BV = ops.cast(logits_BV, "float32")
    if search.repetition_penalty != 1.0:
        logits_BV = penalize_repetition(logits_BV, seen_BV, search.repetition_penalty)
    if forbidden_BV is not None:
        logits_BV = ops.where(forbidden_BV, IMPOSSIBLE, logits_BV)
    choose = sampler_of(search)
    return choose(logits_BV, uniform_B) if choose else ops.argmax(logits_BV, axis=-1)


def next_tokens(logits_BV: Any, choice: Mapping[str, Any], eos_ids: Sequence[int]) -> Any:
    """Return the next token (B,) of each sequence, by its own options.

    Args:
        logits_BV: Logits, float32.
        choice: Tensors with an entry for each row, in groups that may be absent: `uniform` (B,)
            with the other options of sampling (B,), `temperature` 0 for the most probable token;
            `repetition_penalty` (B,) with `seen`, the tokens that have occurred (B, V), boolean;
            `too_early` (B,), whether the sequence must not end yet, boolean; `forbidden` (B, V),
            tokens that are not taken, boolean.
        eos_ids: Tokens that end a sequence.
    """
    if "seen" in choice:
        penalty_B1 = choice["repetition_penalty"][:, None]
        logits_BV = penalize_repetition(logits_BV, choice["seen"], penalty_B1)
    if "forbidden" in choice:
        logits_BV = ops.where(choice["forbidden"], IMPOSSIBLE, logits_BV)
    if "too_early" in choice:
        ids_V = ops.arange(logits_BV.shape[-1], dtype="int32")
        is_end_V = functools.reduce(operator.or_, (ids_V == eos_id for eos_id in eos_ids))
        is_banned_BV = choice["too_early"][:, None] & is_end_V
        logits_BV = ops.where(is_banned_BV, IMPOSSIBLE, logits_BV)
    best_B = ops.cast(ops.argmax(logits_BV, axis=-1), "int32")
    if "uniform" not in choice:
        return best_B
    draws_B = choice["temperature"] > 0
    options = {f"{name}_B": choice[name] for name in Generation.names(draws=True)}
    options["temperature_B"] = ops.where(draws_B, choice["temperature"], 1.0)
    drawn_B = sample_rows(logits_BV, choice["uniform"], **options)
    return ops.where(draws_B, ops.cast(drawn_B, "int32"), best_B)
