"""The model that the Transformer replaced: LSTMs with attention (Bahdanau et al. 2015).

The encoder is bidirectional (Bahdanau et al. 2015, section 3.2). Attention is the "general" kind of
Luong et al. 2015 (equation 8). It reads the lower LSTM of the decoder and feeds the upper one, as
in GNMT (Wu et al. 2016, section 3), so that `keras.layers.LSTM` runs over a whole target in
training. The first hidden states come from the mean of the memory (Sennrich et al. 2017, section
2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
from keras import ops

from keras_transformer.config import Config
from keras_transformer.layers import PositionalEmbedding
from keras_transformer.models.training_step import VocabularyModel


@dataclass(frozen=True)
class LSTMConfig(Config):
    """Config of an `AttentionalLSTM`.

    Args:
        source_vocab_size, target_vocab_size: Size of the shared vocabulary, given twice because a
            `Translator` compares both with its tokenizer.
        d_embedding: E, width of the token vectors.
        units: H, width of the LSTMs; even.
        dropout: Dropout rate in [0, 1) on embeddings and between the layers.
        max_length: Longest sequence in tokens.
        pad_id, bos_id, eos_id: Special ids.
    """

    source_vocab_size: int
    target_vocab_size: int
    d_embedding: int = 128
    units: int = 204
    dropout: float = 0.1
    max_length: int = 1024
    pad_id: int = 0
    bos_id: int = 2
    eos_id: int = 3


class RecurrentEncoder(keras.layers.Layer):
    """A bidirectional LSTM and a second LSTM on top of it.

    Call arguments:
        x: (B, S, E).
        valid: (B, S), True for tokens, which precede all padding.

    Returns:
        The memory (B, S, H). Padding does not change the outputs at tokens.
    """

    def __init__(self, units: int, dropout: float, **kwargs: Any):
        super().__init__(**kwargs)
        half, options = units // 2, dict(return_sequences=True)
        self.rightward = keras.layers.LSTM(half, **options, name="rightward")
        self.leftward = keras.layers.LSTM(half, **options, name="leftward")
        self.upper = keras.layers.LSTM(units, **options, name="upper")
        self.dropout = keras.layers.Dropout(dropout)

    def call(self, x: Any, valid: Any) -> Any:
        # The tokens are reversed and the padding stays last, so the LSTM needs no mask: Keras runs
        # it faster.
        place_BS = ops.cumsum(ops.ones_like(valid, dtype="int32"), axis=1) - 1
        count_B1 = ops.sum(ops.cast(valid, "int32"), axis=1, keepdims=True)
        order_BS1 = ops.expand_dims(ops.where(valid, count_B1 - 1 - place_BS, place_BS), 2)
        leftward = self.leftward(ops.take_along_axis(x, order_BS1, axis=1))
        leftward = ops.take_along_axis(leftward, order_BS1, axis=1)
        joined = ops.concatenate([self.rightward(x), leftward], axis=-1)
        return self.upper(self.dropout(joined))


class RecurrentDecoder(keras.layers.Layer):
    """Two LSTMs with attention in between: h_t, softmax(h_t W M^T) M, and both into the second.

    Call arguments:
        x: (B K, T, E), the tokens of K sequences for each source.
        memory: (B, S, H).
        valid: (B, S), True for tokens of the source.
        state: Hidden and cell states of both LSTMs, (B K, H) each; None: those before the first
            token.

    Returns:
        The hidden states (B K, T, E), and the new state.
    """

    def __init__(self, d_embedding: int, units: int, dropout: float, **kwargs: Any):
        super().__init__(**kwargs)
        options = dict(return_sequences=True, return_state=True)
        self.lower = keras.layers.LSTM(units, **options, name="lower")
        self.upper = keras.layers.LSTM(units, **options, name="upper")
        self.first = keras.layers.Dense(2 * units, activation="tanh", name="first")
        self.score = keras.layers.Dense(units, use_bias=False, name="score")
        self.output_layer = keras.layers.Dense(d_embedding, activation="tanh", name="output")
        self.dropout = keras.layers.Dropout(dropout)

    def call(self, x: Any, memory: Any, valid: Any, state: Any = None) -> tuple[Any, Any]:
        h_low, c_low, h_up, c_up = self.begin(memory, valid) if state is None else state
        x, h_low, c_low = self.lower(x, initial_state=[h_low, c_low])
        joined = ops.concatenate([x, self.attend(x, memory, valid)], axis=-1)
        x, h_up, c_up = self.upper(self.dropout(joined), initial_state=[h_up, c_up])
        attended = joined[..., joined.shape[-1] // 2 :]
        x = self.output_layer(self.dropout(ops.concatenate([x, attended], axis=-1)))
        return x, [h_low, c_low, h_up, c_up]

    def begin(self, memory: Any, valid: Any) -> list[Any]:
        """Return the state before the first token, from the mean of the memory."""
        weight_BS1 = ops.expand_dims(ops.cast(valid, memory.dtype), 2)
        mean_BH = ops.sum(memory * weight_BS1, axis=1) / ops.maximum(ops.sum(weight_BS1, axis=1), 1)
        h_low, h_up = ops.split(self.first(mean_BH), 2, axis=-1)
        return [h_low, ops.zeros_like(h_low), h_up, ops.zeros_like(h_up)]

    def attend(self, x: Any, memory: Any, valid: Any) -> Any:
        """Return the context of each hidden state: (B K, T, H)."""
        shape = ops.shape(memory)
        query_BQH = ops.reshape(self.score(x), (shape[0], -1, shape[2]))
        logits_BQS = ops.matmul(query_BQH, ops.transpose(memory, (0, 2, 1)))
        logits_BQS = ops.where(ops.expand_dims(valid, 1), logits_BQS, -1e9)
        context_BQH = ops.matmul(ops.softmax(logits_BQS, axis=-1), memory)
        return ops.reshape(context_BQH, ops.shape(x))


class AttentionalLSTM(VocabularyModel):
    """A functional model with the interface of a `Transformer`: inputs, logits, `prefill`, `step`.

    Like it, it has tied embeddings, trains with the same loss, and translates with the searches of
    `decoding`.

    Args:
        config: The model's config.

    Call arguments:
        inputs: Dict of `source_ids` (B, S) and `target_ids` (B, T), int32, padded on the right.

    Returns:
        Logits (B, T, V).
    """

    config_class = LSTMConfig
    source_name = "source_ids"

    def __init__(self, config: LSTMConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        options = dict(dropout=config.dropout, dtype=policy)
        embedding = PositionalEmbedding(
            config.source_vocab_size, config.d_embedding, positions="none", **options
        )
        encoder = RecurrentEncoder(config.units, **options, name="encoder")
        decoder = RecurrentDecoder(config.d_embedding, config.units, **options, name="decoder")

        def encode(source_ids):
            valid = ops.not_equal(source_ids, config.pad_id)
            return {"memory": encoder(embedding(source_ids), valid=valid), "valid": valid}

        def hidden(inputs):
            return decoder(embedding(inputs["target_ids"]), **encode(inputs["source_ids"]))[0]

        names = ("source_ids", "target_ids")
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
        logits = embedding(hidden(inputs), reverse=True)
        super().__init__(inputs=inputs, outputs=logits, **kwargs)
        self.config, self.embedding, self.decoder = config, embedding, decoder
        self.output_layer = embedding.tokens
        self.encode, self.compute_hidden = encode, hidden
        self._policy = policy

    def target_length(self, source_length: Any) -> Any:
        """Return the target length to which a search adds its extra length: the source's."""
        return source_length

    def prefill(
        self, source_ids: Any, first_ids: Any, length: Any, beam_size: int = 1
    ) -> tuple[Any, Any, Callable]:
        """Process the source and the first target tokens; see `EncoderDecoder.prefill`."""
        source = self.encode(source_ids)
        x, state = self.decoder(self.embedding(first_ids), **source)
        logits_BV = self.embedding(x[:, -1], reverse=True)
        state = [ops.repeat(ops.expand_dims(part, 1), beam_size, axis=1) for part in state]
        return logits_BV, {"source": source, "cells": state}, self.step

    def step(
        self, token_ids_BK: Any, state: Any, index: Any, ancestors_BKM: Any = None
    ) -> tuple[Any, Any]:
        """Process one token per beam; see `EncoderDecoder.step`.

        The state of a beam is in the slot that it had at the previous position.
        """
        cells = state["cells"]  # (B, K, H) each
        if ancestors_BKM is not None:
            slots_BK1 = ops.expand_dims(ops.take(ancestors_BKM, index - 1, axis=2), 2)
            cells = [ops.take_along_axis(part, slots_BK1, axis=1) for part in cells]
        rows = [ops.reshape(part, (-1, self.config.units)) for part in cells]
        x = self.embedding(ops.reshape(token_ids_BK, (-1, 1)))
        x, rows = self.decoder(x, **state["source"], state=rows)
        shape = ops.shape(token_ids_BK)
        logits = self.embedding(ops.reshape(x, (*shape, self.config.d_embedding)), reverse=True)
        cells = [ops.reshape(part, (*shape, self.config.units)) for part in rows]
        return logits, {**state, "cells": cells}
