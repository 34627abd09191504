"""Base class of decoder-only models: a graph of causal blocks, prefill and search steps."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras

from keras_transformer.backend import BACKEND, mask_bias, quick
from keras_transformer.config import require
from keras_transformer.layers import (
    Decoder,
    PositionalEmbedding,
    padding_mask,
    segment_lengths,
    segment_mask,
    segment_positions,
)
from keras_transformer.layers.basic import Dense, SoftCap
from keras_transformer.layers.layer import direct_calls
from keras_transformer.layers.token_table import TokenTable
from keras_transformer.models import uncached
from keras_transformer.models.caches import beam_mask, following, in_cache_order, with_room
from keras_transformer.models.training_step import VocabularyModel


class DecoderOnly(VocabularyModel):
    """Base class of functional models from `token_ids` to the logits of each next token.

    Args:
        config: The family's config, with at least `vocab_size`, `d_model`, `max_length` and the
            special ids.
        policy: Dtype policy of the parts.
        embedding: Layer from ids to vectors.
        decoder: Stack of blocks without cross-attention.
        tie_output: Whether the embedding makes the logits; else a separate table does.
        logit_cap: Limits the logits smoothly: logit_cap * tanh(logits / logit_cap); None: no limit.
        logit_divisor: Number that divides the logits.

    Call arguments:
        inputs: Dict of `token_ids` (B, T), int32. If several sequences share a row, or one begins
            after padding, also `segments` (B, T), int32: the number of each token's sequence in
            its row, 0 for padding. Each sequence gets the same logits as in a row by itself.
            Padding after a sequence changes nothing and needs no segments, unless rotary rates
            depend on the length of the sequence.

    Returns:
        Logits (B, T, V).
    """

    optional_inputs = frozenset({"segments"})  # not an input of the graph

    def __init__(
        self,
        config: Any,
        policy: Any,
        embedding: PositionalEmbedding,
        decoder: Decoder,
        tie_output: bool = True,
        logit_cap: float | None = None,
        logit_divisor: float = 1.0,
        **kwargs: Any,
    ):
        output_layer = embedding.tokens
        if not tie_output:
            output_layer = Dense(config.vocab_size, use_bias=False, dtype=policy, name="output")
            output_layer.least_bits = TokenTable.least_bits
        inputs = {"token_ids": keras.Input((None,), dtype="int32", name="token_ids")}
        cap = SoftCap(logit_cap, dtype=policy, name="logit_cap") if logit_cap else None
        table = None if tie_output else output_layer
        project = functools.partial(_project, embedding, table, cap, logit_divisor)
        outputs = project(_hidden(embedding, decoder, inputs))
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        self.config = config
        self.embedding = embedding
        self.decoder = decoder
        self._windows = tuple(block.options.window for block in decoder.blocks)
        self.logit_cap, self.logit_divisor = logit_cap, logit_divisor
        self.output_layer = output_layer
        self._policy = policy
        self._project = project

    def compute_hidden(self, inputs: dict[str, Any]) -> Any:
        """Compute `hidden`, which runs this as the call of a layer."""
        return _hidden(self.embedding, self.decoder, inputs)

    def encode(self, inputs: dict[str, Any]) -> Any:
        """Return the last hidden states (B, T, D), like `encode` of an `EncoderOnly`."""
        return _hidden(self.embedding, self.decoder, inputs)

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Return the logits (B, T, V); segments are optional and not an input of the graph."""
        inputs = self.named_inputs(inputs)
        if "segments" not in inputs:
            return super().call(inputs, training=training, mask=mask)
        ids = keras.tree.map_structure(_as_ids, inputs)
        return self._project(self.hidden(ids, training=training))

    def require_causal(self) -> None:
        """Raise ValueError if tokens see later ones: such a model cannot generate."""
        accepted = "False, to generate text: this model gives vectors"
        require(self.decoder.causal, "bidirectional", True, accepted)

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

        Raises:
            ValueError: If the model is bidirectional.
        """
        self.require_causal()
        crosses = self._crosses(token_ids, length, segments)
        if crosses and self.decoder.length_scaling == "dynamic":
            hidden, state = uncached.prefill(self, token_ids, length, beam_size, segments)
            return self._project(hidden)[:, 0], state, self.step
        mask = positions = None
        if segments is not None:
            mask = padding_mask(segments)
            positions = quick.maximum(quick.cumsum(segments, axis=1) - 1, 0)
        x = self.embedding(token_ids, positions=positions)
        state, last_hidden = {}, []
        for name, lengths in self._regimes(crosses).items():
            hidden, caches = self.decoder(
                x, attention_mask=mask, positions=positions, lengths=lengths
            )
            of_blocks = zip(caches, self._windows, strict=True)
            state[name] = [
                {"self": with_room(cache["self"], length, beam_size, window)}
                for cache, window in of_blocks
            ]
            last_hidden.append(hidden[:, -1:])
        hidden = last_hidden[0]
        if crosses:
            tokens = segments
            if segments is None:
                tokens = quick.ones_like(keras.ops.convert_to_tensor(token_ids, dtype="int32"))
            hidden = self._of_length(last_hidden, quick.sum(tokens, axis=1))
        if segments is not None:
            # True for the tokens of a prompt and for all later positions, False for padding.
            is_token_BP = quick.not_equal(segments, 0)
            rest = quick.ones_like(segments[:, :1], dtype="bool")
            rest_BR = quick.repeat(rest, length - quick.shape(segments)[1], axis=1)
            state["is_token_BM"] = quick.concatenate([is_token_BP, rest_BR], axis=1)
            state["padding_B"] = quick.sum(quick.cast(~is_token_BP, "int32"), axis=1)
        return self._project(hidden)[:, 0], state, self.step

    def _crosses(self, token_ids, length, segments):
        """Return whether a sequence may get other rotary rates as it grows to `length`."""
        limit = self.decoder.length_limit
        if limit is None or (isinstance(length, int) and length <= limit):
            return False
        if self.decoder.length_scaling == "dynamic":
            return True
        shortest = quick.shape(token_ids)[1]
        if segments is not None:
            shortest = int(quick.sum(segments, axis=1).min()) if BACKEND == "torch" else 0
        return not (isinstance(shortest, int) and shortest > limit)

    def _regimes(self, crosses):
        """Return a dict from the names of the caches to the `lengths` argument of the decoder.

        If a sequence may outgrow the rotary rates of short sequences (`crosses`), each step is
        computed twice, with the short and with the long rates, and each has its own caches. If not,
        there is one entry, with the length None.
        """
        limit = self.decoder.length_limit
        if not crosses or limit is None:
            return {"caches": None}
        lengths = {"caches": limit, "long_caches": limit + 1}
        return {name: quick.full((1, 1), x, dtype="int32") for name, x in lengths.items()}

    def _of_length(self, results, lengths_B):
        """Return each row's result by its length, from `results` with short and with long rates."""
        short, long = results
        is_long_B11 = quick.expand_dims(lengths_B > self.decoder.length_limit, (1, 2))
        return quick.where(is_long_B11, long, short)

    def step(
        self, token_ids_BK: Any, state: Any, index: Any, ancestors_BKM: Any = None
    ) -> tuple[Any, Any]:
        """Process one token per beam, like `EncoderDecoder.step`."""
        token_ids_BK = keras.ops.convert_to_tensor(token_ids_BK, dtype="int32")
        if ancestors_BKM is not None:
            ancestors_BKM = keras.ops.convert_to_tensor(ancestors_BKM, dtype="int32")
        with direct_calls(self.decoder):
            if "ids_BKM" in state:
                hidden, state = uncached.step(self, token_ids_BK, state, index, ancestors_BKM)
                return self._project(hidden), state
            return self._direct_step(token_ids_BK, state, index, ancestors_BKM)

    def _direct_step(self, token_ids_BK, state, index, ancestors_BKM):
        """Compute `step`; with long and short rotary rates, each row takes those of its length."""
        beam_size, state = token_ids_BK.shape[1], dict(state)
        regimes = self._regimes("long_caches" in state)
        for name in regimes:
            state[name] = following(state[name], ancestors_BKM, index)
        positions, is_token_BM = None, state.get("is_token_BM")
        if is_token_BM is not None:
            positions = quick.expand_dims(index - state["padding_B"], 1)  # (B, 1)
            if ancestors_BKM is not None:
                ancestors_BKM = quick.where(quick.expand_dims(is_token_BM, 1), ancestors_BKM, -1)
            positions = quick.repeat(positions, beam_size, axis=1)
        in_table = positions
        if positions is not None:  # a row that has ended may be beyond the last position
            last = self.config.max_length - 1
            in_table = quick.reshape(quick.minimum(positions, last), (-1, 1))
        # All beams are at one position: the embedding gets each as a row.
        tokens = quick.reshape(token_ids_BK, (-1, 1))
        x = self.embedding(tokens, index=index, positions=in_table)
        options = dict(
            attention_mask=self._step_masks(index, is_token_BM, ancestors_BKM),
            index=index,
            beam_size=beam_size,
            positions=positions,
        )
        x = quick.reshape(x, (-1, beam_size, self.config.d_model))
        outputs = []
        for name, lengths in regimes.items():
            hidden, state[name] = self.decoder(x, cache=state[name], lengths=lengths, **options)
            outputs.append(hidden)
        hidden = outputs[0]
        if len(outputs) > 1:
            before = quick.zeros_like(token_ids_BK[:, 0]) + index
            before = before if positions is None else positions[:, 0]
            hidden = self._of_length(outputs, before + 1)
        return self._project(hidden), state

    def _step_masks(self, index, is_token_BM, ancestors_BKM):
        """Return the mask of each block over its cache; None: all filled places are visible."""
        if is_token_BM is None and ancestors_BKM is None:
            return None

        def of_window(window):
            if ancestors_BKM is None:
                mask = in_cache_order(is_token_BM, index, False, window)
                return mask_bias(quick.expand_dims(mask, (1, 2)), self.compute_dtype)
            return beam_mask(ancestors_BKM, index, window, self.compute_dtype)

        masks = {window: of_window(window) for window in set(self._windows)}
        return [masks[window] for window in self._windows]


def _hidden(embedding, decoder, inputs):
    """Return the hidden states (B, T, D) of a full forward pass."""
    segments = inputs.get("segments")
    mask = positions = lengths = None
    if segments is not None:
        mask, positions = segment_mask(segments, segments), segment_positions(segments)
        if decoder.length_limit is not None:
            lengths = segment_lengths(segments)
    x = embedding(inputs["token_ids"], positions=positions)
    return decoder(x, attention_mask=mask, positions=positions, lengths=lengths)[0]


def _project(embedding, output_layer, cap, divisor, x):
    x = x if divisor == 1 else x / divisor
    x = output_layer(x) if output_layer else embedding(x, reverse=True)
    return cap(x) if cap else x


def _as_ids(x):
    return keras.ops.convert_to_tensor(x, dtype="int32")
