"""The position-wise feed-forward network (Vaswani et al. 2017, section 3.3)."""

from __future__ import annotations

import keras

from keras_transformer.layers.base import Layer
from keras_transformer.layers.dense import Dense


@keras.saving.register_keras_serializable("keras_transformer")
class FeedForward(Layer):
    """FFN(x) = activation(x W_1 + b_1) W_2 + b_2, equation 2.

    Args:
        d_ff: width of the hidden layer.
        activation: name of the non-linearity.

    Call arguments:
        x: (B, T, D).

    Returns:
        (B, T, D).
    """

    def __init__(self, d_ff, activation="relu", **kwargs):
        super().__init__(**kwargs)
        self.d_ff = d_ff
        self.activation = activation
        self.hidden = Dense(d_ff, activation=activation, dtype=self.dtype_policy, name="hidden")

    def build(self, x_shape):
        self.output_projection = Dense(x_shape[-1], dtype=self.dtype_policy, name="output")
        self.hidden.build(x_shape)
        self.output_projection.build((*x_shape[:-1], self.d_ff))

    def call(self, x):
        return self.output_projection(self.hidden(x))

    def get_config(self):
        return {**super().get_config(), "d_ff": self.d_ff, "activation": self.activation}
