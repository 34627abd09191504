"""The position-wise feed-forward network (Vaswani et al. 2017, section 3.3)."""

from __future__ import annotations

import functools
from typing import Any

import keras

from keras_transformer.layers.basic import Dense
from keras_transformer.layers.block_options import FeedForwardOptions
from keras_transformer.layers.layer import Layer

_APPROXIMATE = {"gelu_tanh": functools.partial(keras.activations.gelu, approximate=True)}


def activation_of(name: str) -> Any:
    """Return an activation in a form that a dense layer accepts: a Keras name or a function."""
    return _APPROXIMATE.get(name, name)


@keras.saving.register_keras_serializable("keras_transformer")
class FeedForward(Layer):
    """FFN(x) = activation(x W_1 + b_1) W_2 + b_2, equation 2.

    With a gate, (activation(x W_1) * x V) W_2 (Shazeer 2020, "GLU Variants Improve Transformer").

    Args:
        d_ff: Width of the hidden layer.
        activation: Activation of the hidden layer, a Keras name or "gelu_tanh".
        options: Fields of `FeedForwardOptions` and arguments of `keras.layers.Layer`.

    Call arguments:
        x: (B, T, D).
        training: Ignored; `MixtureOfExperts` adds a loss in training.

    Returns:
        (B, T, D).
    """

    options_class = FeedForwardOptions

    def __init__(self, d_ff: int, activation: str = "relu", **options: Any):
        layer_options = self.options_class.pop_from(options, d_ff=d_ff, activation=activation)
        super().__init__(**options)
        self.options = layer_options
        self.hidden = self._dense(d_ff, "hidden", activation=activation_of(activation))
        self.gate = self._dense(d_ff, "gate") if self.options.gated else None

    def _dense(self, units, name, activation=None):
        use_bias, dtype = self.options.use_bias, self.dtype_policy
        return Dense(units, activation=activation, use_bias=use_bias, dtype=dtype, name=name)

    def build(self, x_shape: Any) -> None:
        self.output_projection = self._dense(x_shape[-1], "output")
        self.hidden.build(x_shape)
        if self.gate:
            self.gate.build(x_shape)
        self.output_projection.build((*x_shape[:-1], self.options.d_ff))

    def call(self, x: Any, training: bool = False) -> Any:
        hidden = self.hidden(x)
        return self.output_projection(hidden * self.gate(x) if self.gate else hidden)
