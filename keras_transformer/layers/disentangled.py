"""Disentangled attention: separate vectors of content and of relative position (He et al. 2021)."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer.backend import dropout, quick
from keras_transformer.config import require
from keras_transformer.layers.attention import MultiHeadAttention, dot_product_attention
from keras_transformer.layers.block_options import AddNormOptions
from keras_transformer.layers.encoder import Encoder, EncoderBlock
from keras_transformer.layers.feed_forward import activation_of
from keras_transformer.layers.layer import claim, initializer
from keras_transformer.layers.recording import is_recorded, record
from keras_transformer.layers.residual import AddNorm, normalization

OTHERS = (  # options of `Encoder` that `DisentangledEncoder` refuses
    "norm_first", "num_kv_heads", "qk_norm", "query_scale", "soft_cap", "kernel", "window",
    "global_tokens", "relative_positions", "relative_by_layer", "rotary", "layer_drop",
)  # fmt: skip


def relative_rows(num_buckets: int, max_distance: int) -> np.ndarray:
    """Return the row in the table of relative positions for each distance.

    Distances up to k / 2 have a row each; longer ones share rows, in ranges that grow
    logarithmically.

    Args:
        num_buckets: k, number of rows for each direction, even.
        max_distance: P; in each direction, this distance and all longer ones share a row.

    Returns:
        (2 P + 1,) int32: rows in [0, 2 k) of the distances from -P to P.
    """
    claim(2 * max_distance + 1)
    middle = num_buckets // 2
    distances = np.arange(-max_distance, max_distance + 1)
    far = np.maximum(np.abs(distances), middle) / middle
    shares = np.log(far) / np.log((max_distance - 1) / middle)
    buckets = np.sign(distances) * (np.ceil(shares * (middle - 1)) + middle)
    rows = np.where(np.abs(distances) <= middle, distances, buckets) + num_buckets
    return np.clip(rows, 0, 2 * num_buckets - 1).astype("int32")


@keras.saving.register_keras_serializable("keras_transformer")
class DisentangledAttention(MultiHeadAttention):
    """Self-attention to contents and relative positions: softmax(A / sqrt(3 H)) V.

    A_ij = Q_i K_j + Q_i K'_d + Q'_d K_j for d = i - j, equation 4 of He et al. 2021: content to
    content, content to position, position to content. Q' and K' are the projections of relative
    positions, by the weights that project content. The third term uses the distance i - j, as the
    authors' code does; the equation has j - i there. Arguments are those of `MultiHeadAttention`.

    Call arguments:
        query: (B, T, D).
        relative: (R, D), vectors of relative positions.
        rows: (T, T) int32, the row of `relative` for each pair of a query and a key.
        attention_mask: Boolean, True = attend, broadcasts to (B, N, T, T).

    Returns:
        The output (B, T, D), and the keys and values, in the form of `MultiHeadAttention`'s cache.
    """

    whole_arguments = ("rows",)

    def build(self, query_shape: Any, relative_shape: Any = None, rows_shape: Any = None) -> None:
        super().build(query_shape)

    def call(self, query: Any, relative: Any, rows: Any, attention_mask: Any = None) -> Any:  # type: ignore[override]  # other arguments
        count = quick.shape(query)[0]
        query_BNTH, key_BNSH, value_BNSH = self._split(self.query_key_value, query, count)
        relative_1RD = quick.expand_dims(relative, 0)
        query_1NRH, key_1NRH, _ = self._split(self.query_key_value, relative_1RD, 1)
        query_BNTH, query_1NRH = query_BNTH * 3**-0.5, query_1NRH * 3**-0.5
        to_position_BNTS = _rows_of(query_BNTH, key_1NRH, rows)
        to_content_BNST = _rows_of(key_BNSH, query_1NRH, quick.transpose(rows, (1, 0)))
        bias_BNTS = to_position_BNTS + quick.transpose(to_content_BNST, (0, 1, 3, 2))
        attended_BNTH, weights_BNTS = dot_product_attention(
            query_BNTH, key_BNSH, value_BNSH, attention_mask, bias_BNTS * self.head_dim**-0.5
        )
        if is_recorded(self.path):
            record(self.path, weights_BNTS)
        return self._output(attended_BNTH, query), {"key": key_BNSH, "value": value_BNSH}


def _rows_of(x_BNTH, y_1NRH, rows_TS):
    """Return the products (B, N, T, S) of x_t with row `rows_TS[t, s]` of y."""
    products_BNTR = ops.matmul(x_BNTH, quick.transpose(y_1NRH, (0, 1, 3, 2)))
    return ops.take_along_axis(products_BNTR, quick.expand_dims(rows_TS, (0, 1)), axis=-1)


@keras.saving.register_keras_serializable("keras_transformer")
class DisentangledBlock(EncoderBlock):
    """A post-norm `EncoderBlock` with `DisentangledAttention`.

    Args:
        num_heads: Number of attention heads.
        d_ff: Width inside the feed-forward.
        options: Fields of `BlockOptions` and arguments of `keras.layers.Layer`.

    Call arguments:
        x: (B, T, D).
        relative, rows, attention_mask: See `DisentangledAttention`.

    Returns:
        (B, T, D).
    """

    attention_class = DisentangledAttention

    def call(  # type: ignore[override]  # other arguments
        self,
        x: Any,
        relative: Any,
        rows: Any,
        attention_mask: Any = None,
        training: bool = False,
    ) -> Any:
        attended, _ = self.attention(x, relative, rows, attention_mask=attention_mask)
        x = self.attention_norm(x, attended, training=training)
        return self.feed_forward_norm(x, self.feed_forward(x, training=training), training=training)


@keras.saving.register_keras_serializable("keras_transformer")
class DisentangledEncoder(Encoder):
    """A stack of `DisentangledBlock`s that share a layer-normalized table of relative positions.

    Args:
        num_layers: Number of blocks.
        num_heads: Number of attention heads per block.
        d_ff: Width inside the feed-forward.
        num_buckets, max_distance: See `relative_rows`.
        convolution: Width in tokens, odd, of a convolution over the stack's input. Its output is
            added to the first block's output, and the sum is normalized (DeBERTa-v2). 0: no
            convolution.
        options: Other arguments of `Encoder`, except those in `OTHERS`.

    Call arguments:
        x: (B, T, D).
        attention_mask: Boolean, True = attend, broadcasts to (B, N, T, T); with a convolution, the
            `padding_mask` (B, 1, 1, T).

    Returns:
        (B, T, D).

    Raises:
        ValueError: If an option in `OTHERS` is set.
    """

    block_class = DisentangledBlock

    def __init__(
        self,
        num_layers: int,
        num_heads: int,
        d_ff: int,
        num_buckets: int = 256,
        max_distance: int = 512,
        convolution: int = 0,
        **options: Any,
    ):
        super().__init__(num_layers, num_heads, d_ff, **options)
        settings = self.options.to_dict() | self._positions | {"layer_drop": self.layer_drop}
        for name in OTHERS:
            require(not settings[name], name, settings[name], "left out in disentangled attention")
        self.table = dict(num_buckets=num_buckets, max_distance=max_distance)
        self.convolution_width = convolution
        self.convolution: Any = None
        self.rows = relative_rows(num_buckets, max_distance)
        epsilon, policy = self.options.epsilon, self.dtype_policy
        self.relative_norm = normalization("layer", epsilon, policy, "relative_norm")
        if convolution:
            add_norm = self.options.part(AddNormOptions)
            self.convolution_norm = AddNorm(**add_norm, dtype=policy, name="convolution_norm")
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, x_shape: Any) -> None:
        rows, width = 2 * self.table["num_buckets"], x_shape[-1]
        initial = initializer(keras.initializers.RandomNormal(stddev=0.02))
        self.relative = keras.layers.Embedding(
            rows, width, embeddings_initializer=initial, dtype=self.dtype_policy, name="relative"
        )
        self.relative.build()
        self.relative_norm.build((rows, width))
        if self.convolution_width:
            self.convolution = keras.layers.Conv1D(
                width,
                self.convolution_width,
                padding="same",
                kernel_initializer=initializer("glorot_uniform"),
                activation=activation_of(self.options.activation),
                dtype=self.dtype_policy,
                name="convolution",
            )
            self.convolution.build(x_shape)
            self.convolution_norm.build(x_shape)
        super().build(x_shape)

    def call(self, x: Any, attention_mask: Any = None, training: bool = False) -> Any:  # type: ignore[override]  # other arguments
        most = self.table["max_distance"]
        positions = quick.arange(quick.shape(x)[1], dtype="int32")
        distance_TS = quick.expand_dims(positions, 1) - quick.expand_dims(positions, 0)
        rows_TS = quick.take(
            ops.convert_to_tensor(self.rows), ops.clip(distance_TS, -most, most) + most, axis=0
        )
        all_rows = quick.arange(2 * self.table["num_buckets"], dtype="int32")
        relative_RD = self.relative_norm(self.relative(all_rows))
        if training and self.options.dropout:
            relative_RD = dropout(relative_RD, self.options.dropout, self.seed_generator)
        options = dict(relative=relative_RD, rows=rows_TS, attention_mask=attention_mask)
        convolved = self._convolved(x, attention_mask) if self.convolution else None
        for block in self.blocks:
            if self.remat and training:
                x = self._rematerialized(block, x, **options)
            else:
                x = block(x, training=training, **options)
            if convolved is not None:
                x, convolved = self.convolution_norm(x, convolved, training=training), None
        return x

    def _convolved(self, x, attention_mask):
        """Return the convolution of the input, with zeros in place of padding."""
        if attention_mask is not None:
            x = quick.where(quick.transpose(attention_mask[:, 0], (0, 2, 1)), x, 0)
        return self.convolution(x)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.table, "convolution": self.convolution_width}
