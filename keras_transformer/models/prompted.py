"""A language model as a model from sources to translations: the source is a prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from keras import ops

from keras_transformer.backend import quick
from keras_transformer.models.decoder_only import DecoderOnly
from keras_transformer.models.encoder_decoder import EncoderDecoder


@dataclass(frozen=True)
class PromptedConfig:
    """The fields of a config that a translator reads; see `Prompted`.

    Args:
        source_vocab_size, target_vocab_size: V.
        pad_id, bos_id: -1, because a prompt may contain any id of the model.
        eos_id: Ids that end a translation.
        max_length: Maximum tokens of a prompt, and of a translation.
    """

    source_vocab_size: int
    target_vocab_size: int
    eos_id: tuple[int, ...]
    max_length: int
    pad_id: int = -1
    bos_id: int = -1

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """The ids that end a translation."""
        return self.eos_id


class Prompted:
    """A language model that searches and scores like an `EncoderDecoder`.

    The source is a prompt, the target the model's reply to it. The prompt takes at most half of
    the model's positions, so that a translation of the same length has room.

    Args:
        model: The language model.
        eos_ids: Ids that end a translation.
    """

    source_name = EncoderDecoder.source_name

    def __init__(self, model: DecoderOnly, eos_ids: Sequence[int]):
        self.model = model
        size = model.config.vocab_size
        self.config = PromptedConfig(size, size, tuple(eos_ids), model.config.max_length // 2)

    @property
    def variables(self) -> list[Any]:
        """The variables of the language model."""
        return self.model.variables

    def count_params(self) -> int:
        """Return the number of weights."""
        return self.model.count_params()

    def target_length(self, source_length: Any) -> Any:
        """Return the length that a search extends: the prompt's."""
        return source_length

    def first_position(self, source_length: Any) -> Any:
        """Return the position of the first token of a translation: that after the prompt."""
        return source_length

    def __call__(self, inputs: dict[str, Any]) -> Any:
        """Return the logits (B, T, V) of the target's tokens; see `EncoderDecoder`."""
        prompt_BS, segments_BS = _left_padded(inputs["source_ids"])
        # The first target id is BOS. Its place is taken by the last token of the prompt.
        rest_BR = ops.convert_to_tensor(inputs["target_ids"], dtype="int32")[:, 1:]
        token_ids = quick.concatenate([prompt_BS, quick.maximum(rest_BR, 0)], axis=1)
        segments = quick.concatenate([segments_BS, quick.ones_like(rest_BR)], axis=1)
        logits = self.model({"token_ids": token_ids, "segments": segments})
        return logits[:, quick.shape(prompt_BS)[1] - 1 :]

    def prefill(
        self, source_ids: Any, first_ids: Any, length: Any, beam_size: int = 1
    ) -> tuple[Any, Any, Callable]:
        """Process the prompts; return what a search needs, see `EncoderDecoder.prefill`.

        Args:
            source_ids: (B, S) int32, prompts, padded on the right with -1.
            first_ids: Not used: a translation follows the prompt.
            length: Maximum number of target positions, including one for `first_ids`.
            beam_size: K.
        """
        prompt_BS, segments_BS = _left_padded(source_ids)
        most = quick.shape(prompt_BS)[1] + length - 1
        logits, state, step = self.model.prefill(prompt_BS, most, beam_size, segments_BS)

        def step_of_tokens(token_ids_BK: Any, *arguments: Any) -> Any:
            return step(quick.maximum(token_ids_BK, 0), *arguments)  # finished rows hold padding

        return logits, state, step_of_tokens


def _left_padded(ids_BS):
    """Return ids with their padding, -1, on the left and as 0, and segments: 0 for padding, else 1.

    A row of padding alone, which only fills the batch, gets one token.
    """
    ids_BS = ops.convert_to_tensor(ids_BS, dtype="int32")
    length = quick.shape(ids_BS)[1]
    count_B = quick.sum(quick.cast(ids_BS >= 0, "int32"), axis=1)
    padding_B1 = quick.expand_dims(length - quick.maximum(count_B, 1), 1)
    places_BS = quick.arange(length, dtype="int32") - padding_B1
    moved_BS = ops.take_along_axis(ids_BS, quick.maximum(places_BS, 0), axis=1)
    return quick.maximum(moved_BS, 0), quick.cast(places_BS >= 0, "int32")
