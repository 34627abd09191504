"""Base of encoder-decoder models: the graph of Figure 1, prefill and steps of a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import keras

from keras_transformer.backend import mask_bias, new_cache, quick
from keras_transformer.layers import (
    Decoder,
    Encoder,
    PositionalEmbedding,
    padding_mask,
    segment_mask,
    segment_positions,
)
from keras_transformer.layers.layer import direct_calls
from keras_transformer.models.vocabulary import VocabularyModel

_SEGMENTS = frozenset({"source_segments", "target_segments"})


@dataclass(frozen=True)
class Parts:
    """The layers of an encoder-decoder, and how they are wired (Figure 1).

    Args:
        pad_id: of source ids.
        source_embedding, target_embedding: ids to vectors; one layer where they share the table.
        encoder, decoder: the stacks.
        output_layer: holds the table that makes logits, an embedding or a `Dense`.
        output_bias: a layer that adds to the logits, or None.
        output_scale: a layer that scales the decoder's output before it becomes logits, or None.
    """

    pad_id: int
    source_embedding: keras.layers.Layer
    target_embedding: PositionalEmbedding
    encoder: Encoder
    decoder: Decoder
    output_layer: keras.layers.Layer
    output_bias: keras.layers.Layer | None = None
    output_scale: keras.layers.Layer | None = None
    is_tied: bool = field(init=False)

    def __post_init__(self):
        # Found now: while PyTorch exports a graph, attributes are proxies (2.13).
        is_tied = self.output_layer is self.target_embedding.tokens
        object.__setattr__(self, "is_tied", is_tied)

    def read(self, inputs: dict[str, Any]) -> tuple[Any, Any]:
        """Return what enters the encoder (B, S, D), and the mask of its keys, or None for all."""
        ids, segments = inputs["source_ids"], inputs.get("source_segments")
        if segments is None:
            return self.source_embedding(ids), padding_mask(ids, self.pad_id)
        x = self.source_embedding(ids, positions=segment_positions(segments))
        return x, segment_mask(segments, segments)

    def hidden(self, inputs: dict[str, Any]) -> Any:
        """Return the last hidden states (B, T, D) of a whole pass."""
        source, target = _segments(inputs)
        x, mask = self.read(inputs)
        memory = self.encoder(x, attention_mask=mask)
        cross_mask, self_mask, target_positions = mask, None, None
        if source is not None:
            cross_mask, self_mask = segment_mask(target, source), segment_mask(target, target)
            target_positions = segment_positions(target)
        x, _ = self.decoder(
            self.target_embedding(inputs["target_ids"], positions=target_positions),
            memory=memory,
            attention_mask=self_mask,
            cross_attention_mask=cross_mask,
        )
        return self.scaled(x)

    def scaled(self, x: Any) -> Any:
        """Return the decoder's output as logits are made of it."""
        return self.output_scale(x) if self.output_scale else x

    def project(self, x: Any) -> Any:
        """Return the logits (..., V) of hidden states (..., D)."""
        logits = self.target_embedding(x, reverse=True) if self.is_tied else self.output_layer(x)
        return self.output_bias(logits) if self.output_bias else logits


class EncoderDecoder(VocabularyModel):
    """A functional model from `source_ids` and `target_ids` to logits.

    A family of them makes the parts and hands them on; its `config`, a `config.Config`, has at
    least `pad_id`, `bos_id`, `eos_id` and the vocabulary sizes. A family whose source is no ids
    says in `source_name`, `source_dtype` and `optional_inputs` what its inputs are, and in the
    `read` of its parts how they enter the encoder.

    Args:
        config: the family's.
        policy: the dtype policy of the parts.
        parts: its layers.
        source_shape: of one source, without the batch.

    Call arguments:
        inputs: dict of `source_ids` (B, S) and `target_ids` (B, T), int32, padded with
            `config.pad_id`; the target is the labels shifted right by one, and starts with
            `config.bos_id`. Where several pairs share a row, also `source_segments` (B, S) and
            `target_segments` (B, T), int32: the number of the pair in its row, 0 for padding.
            Each pair's logits are those that it has alone.

    Returns:
        logits (B, T, V).

    Raises:
        ValueError: if one side's segments are given and the other's are not.
    """

    source_name, source_dtype = "source_ids", "int32"
    optional_inputs = _SEGMENTS  # which the graph has no inputs for

    def __init__(
        self,
        config: Any,
        policy: Any,
        parts: Parts,
        source_shape: tuple[int | None, ...] = (None,),
        **kwargs: Any,
    ):
        source = keras.Input(source_shape, dtype=self.source_dtype, name=self.source_name)
        target_ids = keras.Input((None,), dtype="int32", name="target_ids")
        inputs = {self.source_name: source, "target_ids": target_ids}
        super().__init__(inputs=inputs, outputs=parts.project(parts.hidden(inputs)), **kwargs)
        self.config = config
        self.source_embedding = parts.source_embedding
        self.target_embedding = parts.target_embedding
        self.encoder = parts.encoder
        self.decoder = parts.decoder
        self.output_layer = parts.output_layer
        self.output_bias = parts.output_bias
        self._policy = policy
        self._parts = parts

    def compute_hidden(self, inputs: dict[str, Any]) -> Any:
        """Return the last hidden states (B, T, D), inside a call of Keras."""
        return self._parts.hidden(inputs)

    def call(self, inputs, training=None, mask=None):
        """Return the logits (B, T, V), with segments or without.

        The graph has no optional inputs, such as segments. All who have none would have to give
        them as None (Keras 3.15), and they would stand in the signature of each export.
        """
        is_plain = not isinstance(inputs, dict) or not self.optional_inputs & inputs.keys()
        if is_plain:
            return super().call(inputs, training=training, mask=mask)
        types = {self.source_name: self.source_dtype}
        tensors = {
            name: keras.ops.convert_to_tensor(x, dtype=types.get(name, "int32"))
            for name, x in inputs.items()
        }
        return self._parts.project(self.hidden(tensors, training=training))

    def target_length(self, source_length: Any) -> Any:
        """Return the longest target before a search adds its extra length: that of the source."""
        return source_length

    def prefill(
        self, source_ids: Any, first_ids: Any, length: Any, beam_size: int = 1
    ) -> tuple[Any, Any, Callable]:
        """Reads the source and the first target tokens; what a search needs to go on.

        The keys and values of the source exist once a sentence; those of the target stand, all
        beams of a position side by side, in one row a sentence: token s of beam k in place
        s K + k, the first tokens in the places of beam 0.

        Args:
            source_ids: (B, S) int32, padded.
            first_ids: (B, P) int32, the target's first tokens, from `config.bos_id` on.
            length: M, positions the target may have in all, P and those to come.
            beam_size: K, beams of a sentence.

        Returns:
            The logits (B, V) of the next token; the state, a tree of tensors whose first axis
            is B; and `step`. On PyTorch a step may write into the state it is given: to go two
            ways from one state, copy it.
        """
        return self._prefill({"source_ids": source_ids}, first_ids, length, beam_size)

    def _prefill(self, source, first_ids, length, beam_size):
        x, mask = self._parts.read(source)
        memory = self.encoder(x, attention_mask=mask)
        x, caches = self.decoder(
            self.target_embedding(first_ids), memory=memory, cross_attention_mask=mask
        )
        for cache in caches:
            cache["self"] = {
                name: new_cache(tensor, length, beam_size) for name, tensor in cache["self"].items()
            }
        state = {"caches": caches}
        if mask is not None:  # made numbers once, not in each layer and step
            state["source_mask"] = mask_bias(mask, x.dtype)
        return self._logits(x[:, -1:])[:, 0], state, self.step

    def _logits(self, x):
        return self._parts.project(self._parts.scaled(x))

    def step(
        self, token_ids_BK: Any, state: Any, index: Any, ancestors_BKM: Any = None
    ) -> tuple[Any, Any]:
        """Take a token of each beam at position `index`; return the logits of the next.

        Args:
            token_ids_BK: (B, K) int32.
            state: what `prefill` or an earlier step returned.
            index: position of the tokens.
            ancestors_BKM: (B, K, M) int32, the one slot of each position that a beam sees, -1 for
                none; None: one beam.

        Returns:
            logits (B, K, V) and the new state.
        """
        token_ids_BK = keras.ops.convert_to_tensor(token_ids_BK, dtype="int32")
        if ancestors_BKM is not None:
            ancestors_BKM = keras.ops.convert_to_tensor(ancestors_BKM, dtype="int32")
        with direct_calls(self.decoder):
            return self._direct_step(token_ids_BK, state, index, ancestors_BKM)

    def _direct_step(self, token_ids_BK, state, index, ancestors_BKM):
        beam_size = token_ids_BK.shape[1]
        # All beams are at one position: to the embedding they are rows.
        x = self.target_embedding(quick.reshape(token_ids_BK, (-1, 1)), index=index)
        mask = None
        if ancestors_BKM is not None:
            slots_K = quick.arange(beam_size, dtype="int32")
            mask_BKMK = quick.expand_dims(ancestors_BKM, -1) == slots_K
            places = quick.shape(ancestors_BKM)[2] * beam_size
            mask = mask_bias(quick.reshape(mask_BKMK, (-1, 1, beam_size, places)), x.dtype)
        x, caches = self.decoder(
            quick.reshape(x, (-1, beam_size, self.config.d_model)),
            attention_mask=mask,
            cross_attention_mask=state.get("source_mask"),
            cache=state["caches"],
            index=index,
            beam_size=beam_size,
        )
        return self._logits(x), {**state, "caches": caches}


def _segments(inputs):
    given = sorted(_SEGMENTS & inputs.keys())
    if len(given) == 1:
        raise ValueError(
            f"source_segments and target_segments must be given together, got {given[0]} alone"
        )
    return [inputs.get(name) for name in ("source_segments", "target_segments")]
