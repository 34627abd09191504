"""Where a model meets decoding: functions of token ids that search it, or score with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from keras import ops

from keras_transformer.config import require, require_whole
from keras_transformer.decoding import SCORINGS, beam_search, greedy_search, sampler
from keras_transformer.models import EncoderDecoder
from keras_transformer.ops import smoothed_cross_entropy


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

    def function(self, model: EncoderDecoder) -> Callable:
        """`search(source, max_lengths, prefix=None, uniforms=None)` -> ids, scores.

        A function of tensors, which can be compiled or traced: source ids (B, S), most target
        tokens a row (B,), first target tokens (B, P) padded, random numbers (B, L) for sampling;
        gives ids (B, K, L) and scores (B, K), best first. Where `prefill` takes more than one
        tensor of the source, such as features and their number, it is a dict of them.
        """
        config = model.config

        def search(source, max_lengths, prefix=None, uniforms=None):
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
                eos_id=config.eos_id,
                length=length,
                max_lengths_B=max_lengths,
                pad_id=config.pad_id,
                banned_ids=() if config.bos_id == config.eos_id else (config.bos_id,),
                min_length=self.min_length,
                prefix_BP=prefix,
                length_penalty=self.length_penalty,
                scoring=self.scoring,
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


def score_function(model: EncoderDecoder, given: int = 0) -> Callable:
    """`score(source_ids (B, S), labels (B, T))` -> log p(labels | source) (B,).

    The first `given` labels, such as a language, are conditions, too.
    """
    config = model.config

    def score(source_ids, labels):
        first = ops.full((ops.shape(labels)[0], 1), config.bos_id, dtype="int32")
        labels = ops.cast(labels, "int32")
        inputs = {
            "source_ids": source_ids,
            "target_ids": ops.concatenate([first, labels[:, :-1]], axis=1),
        }
        loss_BT = smoothed_cross_entropy(model(inputs), labels, 0.0)
        is_token_BT = ops.cast(ops.not_equal(labels, config.pad_id), loss_BT.dtype)
        return -ops.sum((loss_BT * is_token_BT)[:, given:], axis=1)

    return score
