"""Base class of encoder-decoder models: the graph of Figure 1, prefill and search steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import keras

from keras_transformer.backend import caches_grow, linear, mask_bias, minimum, quick
from keras_transformer.config import require
from keras_transformer.layers import (
    Decoder,
    Encoder,
    PositionalEmbedding,
    padding_mask,
    segment_mask,
    segment_positions,
)
from keras_transformer.layers.basic import SoftCap
from keras_transformer.layers.layer import direct_calls
from keras_transformer.models.caches import beam_mask, following, with_room
from keras_transformer.models.training_step import VocabularyModel

NO_LOGIT = -1e9  # logit of a listed token that a row may not use
_SEGMENTS = frozenset({"source_segments", "target_segments"})


@dataclass(frozen=True)
class Parts:
    """The layers of an encoder-decoder, and their wiring (Figure 1).

    Args:
        pad_id: Padding id of the source.
        source_embedding: Layer from source ids to vectors.
        target_embedding: Layer from target ids to vectors; it may be `source_embedding`.
        encoder: Stack of encoder blocks.
        decoder: Stack of decoder blocks.
        output_layer: Layer that makes the logits, a `TokenTable` or a `Dense`.
        output_bias: Layer that adds to the logits, or None.
        output_scale: Layer that scales the decoder's output before the projection, or None.
        logit_cap: A `SoftCap` that limits the logits, or None.
    """

    pad_id: int
    source_embedding: keras.layers.Layer
    target_embedding: PositionalEmbedding
    encoder: Encoder
    decoder: Decoder
    output_layer: keras.layers.Layer
    output_bias: keras.layers.Layer | None = None
    output_scale: keras.layers.Layer | None = None
    logit_cap: SoftCap | None = None
    is_tied: bool = field(init=False)

    def __post_init__(self):
        # Compared here: while PyTorch (2.13) exports a graph, attributes are proxies.
        is_tied = self.output_layer is self.target_embedding.tokens
        object.__setattr__(self, "is_tied", is_tied)

    def embed_source(self, inputs: dict[str, Any]) -> tuple[Any, Any]:
        """Return the encoder's input (B, S, D) and the mask of its keys; None: all are visible."""
        ids, segments = inputs["source_ids"], inputs.get("source_segments")
        if segments is None:
            return self.source_embedding(ids), padding_mask(ids, self.pad_id)
        x = self.source_embedding(ids, positions=segment_positions(segments))
        return x, segment_mask(segments, segments)

    def forward(self, inputs: dict[str, Any]) -> Any:
        """Return the last hidden states (B, T, D): Figure 1 up to the output projection."""
        source, target = _segments(inputs)
        x, mask = self.embed_source(inputs)
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
        """Return the decoder's output times the factor of `output_scale`, if there is one."""
        return self.output_scale(x) if self.output_scale else x

    def project(self, x: Any) -> Any:
        """Return the logits (..., V) of hidden states (..., D)."""
        logits = self.target_embedding(x, reverse=True) if self.is_tied else self.output_layer(x)
        return self.capped(self.output_bias(logits) if self.output_bias else logits)

    def capped(self, logits: Any) -> Any:
        """Return the logits, limited by `logit_cap` if there is one."""
        return self.logit_cap(logits) if self.logit_cap else logits


class EncoderDecoder(VocabularyModel):
    """Base class of functional models from `source_ids` and `target_ids` to logits.

    Each family is a subclass that makes the parts and passes them on; its `config`, a
    `config.Config`, has at least `pad_id`, `bos_id`, `eos_id`, `d_model`, `max_length` and the
    vocabulary sizes. A family whose source is not token ids declares its inputs in `source_name`,
    `source_dtype` and `optional_inputs`; `embed_source` of its parts makes the encoder's input from
    them.

    Args:
        config: The family's config.
        policy: Dtype policy of the parts.
        parts: The layers.
        source_shape: Shape of one source, without the batch axis.

    Call arguments:
        inputs: Dict of `source_ids` (B, S) and `target_ids` (B, T), int32, padded with
            `config.pad_id`; the target is the labels shifted right by one, and starts with
            `config.bos_id`. If several pairs share a row, also `source_segments` (B, S) and
            `target_segments` (B, T), int32: the number of the pair in its row, 0 for padding.
            Each pair gets the same logits as in a row by itself.

    Returns:
        Logits (B, T, V).

    Raises:
        ValueError: If an input is missing or unknown, or only one side's segments are given.
    """

    source_name, source_dtype = "source_ids", "int32"
    optional_inputs = _SEGMENTS  # not inputs of the graph

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
        super().__init__(inputs=inputs, outputs=parts.project(parts.forward(inputs)), **kwargs)
        self.config = config
        self.source_embedding = parts.source_embedding
        self.target_embedding = parts.target_embedding
        self.encoder = parts.encoder
        self.decoder = parts.decoder
        self.output_layer = parts.output_layer
        self.output_bias = parts.output_bias
        self.logit_cap = parts.logit_cap and parts.logit_cap.cap
        self._windows = tuple(block.options.window for block in parts.decoder.blocks)
        self._policy = policy
        self._parts = parts

    def compute_hidden(self, inputs: dict[str, Any]) -> Any:
        """Compute `hidden` with the parts; a family may add losses."""
        return self._parts.forward(inputs)

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Return the logits (B, T, V), with segments or without.

        The graph has no optional inputs, such as segments: callers without them would have to pass
        None (Keras 3.15), and the signature of each export would list them.
        """
        inputs = self.named_inputs(inputs)
        if not self.optional_inputs & inputs.keys():
            return super().call(inputs, training=training, mask=mask)
        types = {self.source_name: self.source_dtype}
        tensors = {
            name: keras.ops.convert_to_tensor(x, dtype=types.get(name, "int32"))
            for name, x in inputs.items()
        }
        # `VocabularyModel.hidden` runs `compute_hidden` as a layer's call: that sets `training`.
        return self._parts.project(self.hidden(tensors, training=training))

    def require_whole_caches(self) -> None:
        """Raise ValueError if a decoder block has a window: exported graphs have no such caches."""
        window = next(filter(None, self._windows), None)
        require(window is None, "window", window, "None for a graph of a decoder step")

    def target_length(self, source_length: Any) -> Any:
        """Return the length that a search extends by `max_extra_length`: the source's."""
        return source_length

    def first_position(self, source_length: Any) -> Any:
        """Return the position of the first token of a translation: 1, that after BOS."""
        return 1

    def prefill(
        self,
        source_ids: Any,
        first_ids: Any,
        length: Any,
        beam_size: int = 1,
        listed: Any = None,
    ) -> tuple[Any, Any, Callable]:
        """Process the source and the first target tokens; return what a search needs.

        Keys and values of the source are stored once per sentence. Those of the target are stored
        in one row per sentence, with K adjacent places for each position: the token of beam k at
        position s is at place s K + k, and the first tokens are at the places of beam 0.

        Args:
            source_ids: (B, S) int32, padded.
            first_ids: (B, P) int32, first tokens of the target, beginning with `config.bos_id`.
            length: M, maximum number of target positions, including the first P.
            beam_size: K, beams per sentence.
            listed: A list (U,) of target ids, -1 for none, and which of them each sentence may use
                (B, U), boolean. The logits are then those of these U ids, and steps take indices of
                this list instead of ids. None: all ids.

        Returns:
            Logits (B, V) of the next token; the state, a tree of tensors whose first axis is B;
            and `step`. On PyTorch a step may write into the given state: copy a state to use it
            twice.
        """
        source = {"source_ids": source_ids}
        return self._prefill(source, first_ids, length, beam_size, listed)

    def _prefill(self, source, first_ids, length, beam_size, listed=None):
        """Compute `prefill` for a source that is a dict of inputs."""
        x, mask = self._parts.embed_source(source)
        memory = self.encoder(x, attention_mask=mask)
        x, caches = self.decoder(
            self.target_embedding(first_ids), memory=memory, cross_attention_mask=mask
        )
        for cache, window in zip(caches, self._windows, strict=True):
            cache["self"] = with_room(cache["self"], length, beam_size, window)
        state = {"caches": caches}
        if mask is not None:  # converted to a bias once, not in each layer and step
            state["source_mask"] = mask_bias(mask, x.dtype)
        if listed is None:
            return self._logits(x[:, -1:], state)[:, 0], state, self.step
        ids_U, may_use_BU = listed
        output = self._projection_to(ids_U, x.dtype)
        state["bias_BU"] = keras.ops.where(may_use_BU, 0.0, NO_LOGIT)
        step = partial(self._step, output=output)
        return self._logits(x[:, -1:], state, output)[:, 0], state, step

    def _projection_to(self, ids_U, dtype):
        """Return the part of the output projection that computes the logits of these ids.

        Args:
            ids_U: Ids; -1 stands for any.
            dtype: Dtype of the hidden states.

        Returns:
            A dict of `ids_U`; `table_UD`, the vectors of these ids; and `bias_U`, added to the
            logits, or None.
        """
        ids_U = keras.ops.maximum(ids_U, 0)
        table_UD = keras.ops.cast(self.output_layer.outputs(ids_U), dtype)
        bias_U = None
        if self.output_bias:
            bias_U = keras.ops.cast(keras.ops.take(self.output_bias.bias, ids_U), "float32")
        return {"ids_U": ids_U, "table_UD": table_UD, "bias_U": bias_U}

    def _logits(self, x, state, output=None):
        x = self._parts.scaled(x)
        if output is None:
            return self._parts.project(x)
        logits = quick.cast(linear(x, output["table_UD"], transposed=True), "float32")
        if output["bias_U"] is not None:
            logits += output["bias_U"]
        logits = self._parts.capped(logits)
        logits += quick.expand_dims(state["bias_BU"], 1)  # in place on PyTorch
        return logits

    def step(
        self, token_ids_BK: Any, state: Any, index: Any, ancestors_BKM: Any = None
    ) -> tuple[Any, Any]:
        """Process one token per beam at position `index`; return the logits of the next.

        Args:
            token_ids_BK: (B, K) int32.
            state: State that `prefill` or an earlier step returned.
            index: Position of the tokens.
            ancestors_BKM: (B, K, M) int32, the one slot that a beam sees at each position; -1 at
                positions that it does not see. None: one beam.

        Returns:
            Logits (B, K, V) and the new state.
        """
        return self._step(token_ids_BK, state, index, ancestors_BKM)

    def _step(self, token_ids_BK, state, index, ancestors_BKM=None, output=None):
        """Compute `step`; with an `output` of `_projection_to`, tokens are indices of its list."""
        token_ids_BK = keras.ops.convert_to_tensor(token_ids_BK, dtype="int32")
        if output is not None:
            token_ids_BK = quick.take(output["ids_U"], token_ids_BK, axis=0)
        if ancestors_BKM is not None:
            ancestors_BKM = keras.ops.convert_to_tensor(ancestors_BKM, dtype="int32")
        with direct_calls(self.decoder):
            x, state = self._direct_step(token_ids_BK, state, index, ancestors_BKM)
            return self._logits(x, state, output), state

    def _direct_step(self, token_ids_BK, state, index, ancestors_BKM):
        """Return hidden states (B, K, D) and the new state of a step.

        Beams are rows in the embedding, and queries in the decoder.
        """
        beam_size = token_ids_BK.shape[1]
        position = index
        if hasattr(index, "dtype"):
            # A recorded CUDA graph runs on after all rows have ended, past the last position.
            position = minimum(index, self.config.max_length - 1)
        # All beams are at one position: the embedding gets each as a row.
        x = self.target_embedding(quick.reshape(token_ids_BK, (-1, 1)), index=position)
        x, caches = self.decoder(
            quick.reshape(x, (-1, beam_size, self.config.d_model)),
            attention_mask=self._step_mask(ancestors_BKM, index, x.dtype),
            cross_attention_mask=state.get("source_mask"),
            cache=following(state["caches"], ancestors_BKM, index),
            index=index,
            beam_size=beam_size,
        )
        return x, {**state, "caches": caches}

    def _step_mask(self, ancestors_BKM, index, dtype):
        """Return the mask over the caches in a step, or a list with one for each block."""
        if ancestors_BKM is None or self.decoder.recurrence:
            return None
        if any(self._windows):
            kinds = {x: beam_mask(ancestors_BKM, index, x, dtype) for x in set(self._windows)}
            return [kinds[window] for window in self._windows]
        beam_size = ancestors_BKM.shape[1]
        seen_BKM = ancestors_BKM[:, :, : index + 1] if caches_grow() else ancestors_BKM
        slots_K = quick.arange(beam_size, dtype="int32")
        mask_BKMK = quick.expand_dims(seen_BKM, -1) == slots_K
        places = quick.shape(seen_BKM)[2] * beam_size
        return mask_bias(quick.reshape(mask_BKMK, (-1, 1, beam_size, places)), dtype)


def _segments(inputs):
    names = sorted(_SEGMENTS & inputs.keys())
    if len(names) == 1:
        raise ValueError(
            f"source_segments and target_segments must be given together, got {names[0]} alone"
        )
    return [inputs.get(name) for name in ("source_segments", "target_segments")]
