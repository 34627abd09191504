"""The residual connection around each sub-layer, and where its norm stands."""

from __future__ import annotations

import keras

from keras_transformer.backend import dropout as drop_and_add
from keras_transformer.layers.dense import LayerNormalization, RMSNormalization
from keras_transformer.layers.layer import Layer
from keras_transformer.layers.options import AddNormOptions


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
        options: those of `AddNormOptions`, and of a Keras layer.

    Call arguments:
        x: (B, T, D), the residual stream.
        sublayer_output: (B, T, D), or None to ask for the sub-layer's input.

    Returns:
        (B, T, D): the sub-layer's input, or with `sublayer_output` the new stream.
    """

    def __init__(self, norm_first=False, **options):
        own = AddNormOptions.taken(options, norm_first=norm_first)
        super().__init__(**options)
        self.options = own
        self.norm_first, self.rate = norm_first, self.options.dropout
        kind, epsilon = self.options.norm, self.options.epsilon
        self.norm = normalization(kind, epsilon, self.dtype_policy, "norm")
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
        return {**super().get_config(), **self.options.to_dict()}
