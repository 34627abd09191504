"""The residual connection around each sub-layer, and where its norm stands."""

from __future__ import annotations

import keras

from keras_transformer.layers.base import Layer
from keras_transformer.layers.dense import LayerNormalization, RMSNormalization
from keras_transformer.ops import dropout as drop_and_add


def normalization(norm: str, epsilon: float, dtype: object, name: str) -> keras.layers.Layer:
    """The layer of a kind of norm: "layer" (Ba et al. 2016), or "rms" (Zhang and Sennrich 2019).

    Raises:
        ValueError: for another kind.
    """
    kinds = {"layer": LayerNormalization, "rms": RMSNormalization}
    if norm not in kinds:
        raise ValueError(f"norm must be one of {sorted(kinds)}, got {norm!r}")
    return kinds[norm](epsilon=epsilon, dtype=dtype, name=name)


@keras.saving.register_keras_serializable("keras_transformer")
class AddNorm(Layer):
    """LayerNorm(x + Dropout(Sublayer(x))) (sections 3.1 and 5.4).

    In pre-norm (`norm_first=True`; Xiong et al. 2020) the norm stands before the sub-layer and
    the residual stream passes untouched: x + Dropout(Sublayer(LayerNorm(x))). Either way the
    block reads `x = add_norm(x, sublayer(add_norm(x)))`.

    Args:
        norm_first: which of the two positions the norm has.
        dropout: rate in [0, 1).
        norm: kind of norm, "layer" or "rms".
        epsilon: of the norm.

    Call arguments:
        x: (B, T, D), the residual stream.
        sublayer_output: (B, T, D), or None to ask for the sub-layer's input.

    Returns:
        (B, T, D): the sub-layer's input, or with `sublayer_output` the new stream.
    """

    def __init__(self, norm_first=False, dropout=0.0, norm="layer", epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        self.norm_first = norm_first
        self.rate = dropout
        self.options = dict(norm=norm, epsilon=epsilon)
        self.norm = normalization(**self.options, dtype=self.dtype_policy, name="norm")
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, x_shape, sublayer_output_shape=None):
        self.norm.build(x_shape)

    def call(self, x, sublayer_output=None, training=False):
        if sublayer_output is None:
            return self.norm(x) if self.norm_first else x
        if training and self.rate:
            x = drop_and_add(sublayer_output, self.rate, self.seed_generator, residual=x)
        else:
            x = x + sublayer_output
        return x if self.norm_first else self.norm(x)

    def get_config(self):
        own = {"norm_first": self.norm_first, "dropout": self.rate}
        return {**super().get_config(), **own, **self.options}
