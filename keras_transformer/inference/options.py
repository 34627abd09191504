"""The options of a search, checked, and the function of tensors that they make of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from keras import ops

from keras_transformer.config import require, require_whole
from keras_transformer.decoding import (
    SCORINGS,
    beam_search,
    greedy_search,
    penalize_repetition,
    sampler,
)
from keras_transformer.models import DecoderOnly, EncoderDecoder


@dataclass(frozen=True)
class Search:
    """How to search: the options of a translator's `translate`, `nbest` and `sample`, checked."""

    beam_size: int = 4
    length_penalty: float = 0.6
    max_extra_length: int = 50
    min_length: int = 0
    temperature: float | None = None
    top_k: int = 0
    top_p: float = 1.0
    num_hypotheses: int | None = None
    scoring: str = "wu"

    def __post_init__(self):
        for name, least in dict(beam_size=1, max_extra_length=1, min_length=0, top_k=0).items():
            require_whole(name, getattr(self, name), least)
        require(self.length_penalty >= 0, "length_penalty", self.length_penalty, "at least 0")
        require(self.scoring in SCORINGS, "scoring", self.scoring, f"one of {SCORINGS}")
        if self.temperature is not None:
            require(self.temperature > 0, "temperature", self.temperature, "above 0")
        require(0 < self.top_p <= 1, "top_p", self.top_p, "in (0, 1]")
        if self.num_hypotheses is not None:
            require_whole("num_hypotheses", self.num_hypotheses, 1)
            within = self.num_hypotheses <= self.beam_size
            accepted = f"at most beam_size={self.beam_size}"
            require(within, "num_hypotheses", self.num_hypotheses, accepted)

    def function(self, model: EncoderDecoder, constraint: Any = None) -> Callable:
        """`search(source, max_lengths, prefix, uniforms, constraint_state)` -> ids, scores.

        A function of tensors, which can be compiled or traced: source ids (B, S), most target
        tokens a row (B,), first target tokens (B, P) padded, random numbers (B, L) for sampling,
        a state of the `constraint` if there is one (`decoding`), the last three or None;
        gives ids (B, K, L) and scores (B, K), best first. Where `prefill` takes more than one
        tensor of the source, such as features and their number, it is a dict of them.
        """
        config = model.config

        def search(source, max_lengths, prefix=None, uniforms=None, constraint_state=None):
            source = source if isinstance(source, dict) else {model.source_name: source}
            rows, length = ops.shape(source[model.source_name])[:2]
            length = model.target_length(length)
            if prefix is not None:
                length = length + ops.shape(prefix)[1]
            length = length + self.max_extra_length
            first_ids = ops.full((rows, 1), config.bos_id, dtype="int32")
            sampled = self.temperature is not None
            beam_size = 1 if sampled else self.beam_size
            logits, state, step = model.prefill(
                **source, first_ids=first_ids, length=length + 1, beam_size=beam_size
            )
            options = dict(
                eos_ids=config.eos_ids,
                length=length,
                max_lengths_B=max_lengths,
                pad_id=config.pad_id,
                banned_ids=(config.bos_id,),
                min_length=self.min_length,
                prefix_BP=prefix,
                length_penalty=self.length_penalty,
                scoring=self.scoring,
                constraint=constraint,
                constraint_state=constraint_state,
            )
            if sampled:
                options["uniforms_BL"] = uniforms
                options["choose"] = sampler(
                    temperature=self.temperature, top_k=self.top_k, top_p=self.top_p
                )
            if beam_size == 1:
                return greedy_search(step, logits, state, **options)
            options |= dict(beam_size=beam_size, num_hypotheses=self.num_hypotheses)
            return beam_search(step, logits, state, **options)

        return search


@dataclass(frozen=True)
class Generation(Search):
    """How to go on with a text: the options of a language model's `generate`, checked."""

    beam_size: int = 1
    length_penalty: float = 0.0
    max_new_tokens: int = 100
    min_p: float = 0.0
    repetition_penalty: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        require_whole("max_new_tokens", self.max_new_tokens, 1)
        require(0 <= self.min_p <= 1, "min_p", self.min_p, "in [0, 1]")
        above = self.repetition_penalty > 0
        require(above, "repetition_penalty", self.repetition_penalty, "above 0")
        for name, plain in dict(temperature=None, repetition_penalty=1.0).items():
            if self.beam_size > 1 and getattr(self, name) != plain:
                raise ValueError(f"{name} goes with beam_size=1, got beam_size={self.beam_size}")

    def function(self, model: DecoderOnly) -> Callable:
        """`search(token_ids, max_lengths, segments=None, uniforms=None)` -> ids, scores.

        A function of tensors, which can be compiled: prompts (B, P) that end in the last column,
        most new tokens a row, EOS included (B,), 0 in the places of padding before a prompt and 1
        elsewhere (B, P), random numbers (B, L); gives new ids (B, K, L), filled with -1, and
        scores (B, K).
        """
        config = model.config

        def search(token_ids, max_lengths, segments=None, uniforms=None):
            prompt_length = ops.shape(token_ids)[1]
            length = self.max_new_tokens + 1  # at the last place all end
            logits, state, step = model.prefill(
                token_ids, prompt_length + length, self.beam_size, segments
            )

            # -1 is no token: rows that are done need one all the same.
            def next_step(token_ids, *arguments):
                return step(ops.maximum(token_ids, 0), *arguments)

            options = dict(
                eos_ids=config.eos_ids,
                length=length,
                max_lengths_B=max_lengths,
                index=prompt_length,
                pad_id=-1,
                min_length=self.min_length,
                length_penalty=self.length_penalty,
                scoring=self.scoring,
            )
            if self.beam_size > 1:
                options |= dict(beam_size=self.beam_size, num_hypotheses=self.num_hypotheses)
                return beam_search(next_step, logits, state, **options)
            if self.repetition_penalty != 1.0:
                options["repetition_penalty"] = self.repetition_penalty
                options["seen_BV"] = _seen(token_ids, segments, config.vocab_size)
            if self.temperature is not None:
                options |= dict(uniforms_BL=uniforms, choose=self._sampler())
            return greedy_search(next_step, logits, state, **options)

        return search

    def next_token(self, logits_BV: Any, seen_BV: Any, uniform_B: Any) -> Any:
        """The token (B,) that the function's search takes, where nothing is forced."""
        logits_BV = ops.cast(logits_BV, "float32")
        if self.repetition_penalty != 1.0:
            logits_BV = penalize_repetition(logits_BV, seen_BV, self.repetition_penalty)
        if self.temperature is None:
            return ops.argmax(logits_BV, axis=-1)
        return self._sampler()(logits_BV, uniform_B)

    def _sampler(self):
        names = ("temperature", "top_k", "top_p", "min_p")
        return sampler(**{name: getattr(self, name) for name in names})


def _seen(token_ids, segments, vocab_size):
    """Which tokens stand in each prompt: (B, V)."""
    if segments is not None:
        token_ids = ops.where(ops.equal(segments, 0), -1, token_ids)
    places = ops.arange(vocab_size, dtype="int32")
    return ops.any(ops.equal(ops.expand_dims(token_ids, -1), places), axis=1)
