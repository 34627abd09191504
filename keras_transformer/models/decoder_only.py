"""Base class of decoder-only models: a graph of causal blocks, prefill and search steps."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras

from keras_transformer.backend import at_most, last_places, mask_bias, new_cache, quick
from keras_transformer.layers import (
    Decoder,
    PositionalEmbedding,
    padding_mask,
    segment_mask,
    segment_positions,
)
from keras_transformer.layers.basic import Dense
from keras_transformer.layers.layer import direct_calls
from keras_transformer.models.training_step import VocabularyModel


class DecoderOnly(VocabularyModel):
    """A functional model from `token_ids` to the logits of each next token.

    Args:
        config: The family's config, with at least the vocabulary size and special ids.
        policy: Dtype policy of the parts.
        embedding: Layer from ids to vectors.
        decoder: Stack of blocks without cross-attention.
        tie_output: Whether the embedding makes the logits; else a separate table does.

    Call arguments:
        inputs: Dict of `token_ids` (B, T), int32. If several sequences share a row, or one begins
            after padding, also `segments` (B, T), int32: the number of each token's sequence in
            its row, 0 for padding. Each sequence gets the same logits as in a row by itself.
            Padding after a sequence changes nothing and needs no segments.

    Returns:
        Logits (B, T, V).
    """

    def __init__(
        self,
        config: Any,
        policy: Any,
        embedding: PositionalEmbedding,
        decoder: Decoder,
        tie_output: bool = True,
        **kwargs: Any,
    ):
        output_layer = embedding.tokens
        if not tie_output:
            output_layer = Dense(config.vocab_size, use_bias=False, dtype=policy, name="output")
        inputs = {"token_ids": keras.Input((None,), dtype="int32", name="token_ids")}
        project = functools.partial(_project, embedding, None if tie_output else output_layer)
        outputs = project(_hidden(embedding, decoder, inputs))
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        self.config = config
        self.embedding = embedding
        self.decoder = decoder
        self._window = decoder.options.window
        self.output_layer = output_layer
        self._policy = policy
        self._project = project

    def compute_hidden(self, inputs: dict[str, Any]) -> Any:
        """Return the last hidden states (B, T, D), inside a call of Keras."""
        return _hidden(self.embedding, self.decoder, inputs)

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Return the logits (B, T, V); segments are optional and not an input of the graph."""
        if not isinstance(inputs, dict) or "segments" not in inputs:
            return super().call(inputs, training=training, mask=mask)
        ids = keras.tree.map_structure(_as_ids, inputs)
        return self._project(self.hidden(ids, training=training))

    def prefill(
        self, token_ids: Any, length: Any, beam_size: int = 1, segments: Any = None
    ) -> tuple[Any, Any, Callable]:
        """Process the prompts in one pass; return what a search needs.

        Args:
            token_ids: (B, P) int32, prompts that end in the last column.
            length: M, maximum number of positions, including the P of the prompts.
            beam_size: K, beams per prompt.
            segments: (B, P) int32, 1 for tokens and 0 for padding on the left; None: all prompts
                have P tokens.

        Returns:
            Logits (B, V), the state and `step`, as in `EncoderDecoder.prefill`.
        """
        mask = positions = None
        if segments is not None:
            mask = padding_mask(segments)
            positions = quick.maximum(quick.cumsum(segments, axis=1) - 1, 0)
        x = self.embedding(token_ids, positions=positions)
        x, caches = self.decoder(x, attention_mask=mask, positions=positions)
        places = length if self._window is None else at_most(length, self._window)
        for cache in caches:
            for name, tensor in cache["self"].items():
                tensor = tensor if self._window is None else last_places(tensor, self._window)
                cache["self"][name] = new_cache(tensor, places, beam_size)
        state = {"caches": caches}
        if segments is not None:
            # Positions that are not padding, later ones included; and the number of padding tokens.
            is_token_BP = quick.not_equal(segments, 0)
            rest = quick.ones_like(segments[:, :1], dtype="bool")
            rest_BR = quick.repeat(rest, length - quick.shape(segments)[1], axis=1)
            state["is_token_BM"] = quick.concatenate([is_token_BP, rest_BR], axis=1)
            state["padding_B"] = quick.sum(quick.cast(~is_token_BP, "int32"), axis=1)
        return self._project(x[:, -1:])[:, 0], state, self.step

    def step(
        self, token_ids_BK: Any, state: Any, index: Any, ancestors_BKM: Any = None
    ) -> tuple[Any, Any]:
        """Process one token per beam, like `EncoderDecoder.step`."""
        token_ids_BK = keras.ops.convert_to_tensor(token_ids_BK, dtype="int32")
        if ancestors_BKM is not None:
            ancestors_BKM = keras.ops.convert_to_tensor(ancestors_BKM, dtype="int32")
        with direct_calls(self.decoder):
            return self._direct_step(token_ids_BK, state, index, ancestors_BKM)

    def _direct_step(self, token_ids_BK, state, index, ancestors_BKM):
        beam_size = token_ids_BK.shape[1]
        positions, is_token_BM = None, state.get("is_token_BM")
        if is_token_BM is not None:
            positions = quick.expand_dims(index - state["padding_B"], 1)  # (B, 1)
            if ancestors_BKM is None:
                mask = self._in_places(is_token_BM, index, False)
                mask = mask_bias(quick.expand_dims(mask, (1, 2)), self.compute_dtype)
            else:
                ancestors_BKM = quick.where(quick.expand_dims(is_token_BM, 1), ancestors_BKM, -1)
        if ancestors_BKM is not None:
            ancestors_BKM = self._in_places(ancestors_BKM, index, -1)
            slots_K = quick.arange(beam_size, dtype="int32")
            mask_BKMK = quick.expand_dims(ancestors_BKM, -1) == slots_K
            places = quick.shape(ancestors_BKM)[2] * beam_size
            mask_B1KS = quick.reshape(mask_BKMK, (-1, 1, beam_size, places))
            mask = mask_bias(mask_B1KS, self.compute_dtype)
        elif is_token_BM is None:
            mask = None
        if positions is not None:
            positions = quick.repeat(positions, beam_size, axis=1)
        # All beams are at one position: the embedding gets each as a row.
        x = self.embedding(
            quick.reshape(token_ids_BK, (-1, 1)),
            index=index,
            positions=None if positions is None else quick.reshape(positions, (-1, 1)),
        )
        x, caches = self.decoder(
            quick.reshape(x, (-1, beam_size, self.config.d_model)),
            attention_mask=mask,
            cache=state["caches"],
            index=index,
            beam_size=beam_size,
            positions=positions,
        )
        return self._project(x), {**state, "caches": caches}

    def _in_places(self, x, index, nothing):
        """Return x (..., M) by cache place, not by position: the cache of a window is a ring."""
        size = quick.shape(x)[-1]
        if self._window is None:
            return quick.where(quick.arange(size, dtype="int32") <= index, x, nothing)
        size = at_most(size, self._window)
        positions = index - (index - quick.arange(size, dtype="int32")) % size
        last = quick.take(x, quick.maximum(positions, 0), axis=-1)
        return quick.where(positions >= 0, last, nothing)


def _hidden(embedding, decoder, inputs):
    segments = inputs.get("segments")
    mask = positions = None
    if segments is not None:
        mask, positions = segment_mask(segments, segments), segment_positions(segments)
    x = embedding(inputs["token_ids"], positions=positions)
    return decoder(x, attention_mask=mask, positions=positions)[0]


def _project(embedding, output_layer, x):
    return output_layer(x) if output_layer else embedding(x, reverse=True)


def _as_ids(x):
    return keras.ops.convert_to_tensor(x, dtype="int32")
