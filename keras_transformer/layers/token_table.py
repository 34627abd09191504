"""The table of token vectors, which is also the tied output projection (section 3.4)."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_transformer.backend import has_int8_linear, int8_linear, linear, lookup, quick
from keras_transformer.layers.blocks import WithBlocks
from keras_transformer.layers.layer import initializer
from keras_transformer.layers.remainders import WithRemainder


@keras.saving.register_keras_serializable("keras_transformer")
class TokenTable(WithBlocks, WithRemainder, keras.layers.ReversibleEmbedding):
    """A table E: rows for ids, and in reverse the logits x E^T of hidden states x.

    It can also be in blocks of 8 bits (`WithBlocks`), in int8 with a remainder (`WithRemainder`),
    or have a LoRA update.
    """

    matrix_name, scale_name = "_embeddings", "embeddings_scale"
    has_row_scales = is_table = True
    least_bits = 8

    def build(self, inputs_shape: Any = None) -> None:
        if self.built or not self.build_blocks(self.output_dim, self.input_dim):
            super().build(inputs_shape)
        self.built = True

    def rows(self, ids: Any, dtype: str) -> Any:
        """Return the rows (..., D) of ids (...)."""
        if self.bits:
            return self.float_rows(ids, dtype)
        vectors = lookup(self.embeddings, ids) if self._is_plain() else self(ids)
        return quick.cast(vectors, dtype)

    def logits(self, hidden: Any, dtype: str) -> Any:
        """Return the logits (..., V) of hidden states (..., D), computed in `dtype` if possible."""
        if self._is_plain():
            return linear(quick.cast(hidden, dtype), self.embeddings, transposed=True)
        if self.bits:
            return self.project(quick.cast(hidden, dtype))
        if self.quantization_mode == "int8" and has_int8_linear(hidden):
            return int8_linear(hidden, self._embeddings, self.embeddings_scale, transposed=True)
        return self(hidden, reverse=True)

    def _is_plain(self):
        return not (self.quantization_mode or self.lora_enabled)

    def quantized_call(self, inputs: Any, reverse: bool = False) -> Any:
        """Call the quantized table: rows of ids, or in `reverse` logits of hidden states."""
        if not self.bits:
            return super().quantized_call(inputs, reverse=reverse)
        if reverse:
            return self.project(ops.cast(inputs, self.reverse_dtype or self.compute_dtype))
        return self.float_rows(inputs, self.compute_dtype)

    def outputs(self, ids: Any) -> Any:
        """Return the table's rows (..., D) that project to the logits of ids (...), as floats."""
        return self(ids)


def token_table(vocab_size: int, d_model: int, policy: Any) -> TokenTable:
    """Return a new table (V, D) for a layer of this dtype policy.

    Its initial values have the standard deviation D^-0.5, so embeddings, which are multiplied by
    sqrt(D), and logits have about 1 at first. The table has the variable dtype: mixed precision
    casts its rows.
    """
    return TokenTable(
        vocab_size,
        d_model,
        embeddings_initializer=initializer(keras.initializers.RandomNormal(stddev=d_model**-0.5)),
        dtype=policy.variable_dtype,
        reverse_dtype=policy.compute_dtype,
        name="tokens",
    )


def vector_table(num_rows: int, d_model: int, policy: Any, name: str) -> keras.layers.Embedding:
    """Return a new table of vectors of token types or positions, to add to vectors of tokens."""
    return keras.layers.Embedding(
        num_rows,
        d_model,
        embeddings_initializer=initializer(keras.initializers.RandomNormal(stddev=0.02)),
        dtype=policy,
        name=name,
    )
