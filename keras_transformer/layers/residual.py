"""The residual connection around each sub-layer, with post-norm or pre-norm."""

from __future__ import annotations

import functools
from typing import Any

import keras

from keras_transformer.backend import dropout
from keras_transformer.layers.basic import LayerNormalization, RMSNormalization
from keras_transformer.layers.block_options import AddNormOptions
from keras_transformer.layers.layer import Layer, initializer


def normalization(norm: str, epsilon: float, dtype: object, name: str) -> keras.layers.Layer:
    """Make a norm: "layer" (Ba et al. 2016), "layer_no_bias" or "rms" (Zhang and Sennrich 2019).

    Raises:
        ValueError: If `norm` is none of these.
    """
    kinds: dict[str, Any] = {
        "layer": LayerNormalization,
        "layer_no_bias": functools.partial(LayerNormalization, center=False),
        "rms": RMSNormalization,
    }
    if norm not in kinds:
        raise ValueError(f"norm must be one of {sorted(kinds)}, got {norm!r}")
    return kinds[norm](epsilon=epsilon, dtype=dtype, name=name)


def _unchanged(x):
    return x


@keras.saving.register_keras_serializable("keras_transformer")
class AddNorm(Layer):
    """LayerNorm(x + Dropout(Sublayer(x))) (sections 3.1 and 5.4).

    In pre-norm (`norm_first=True`; Xiong et al. 2020) the norm is applied to the sub-layer's input
    and not to the residual stream: x + Dropout(Sublayer(LayerNorm(x))). In both cases a block
    computes `x = add_norm(x, sublayer(add_norm(x)))`. With `norm_output`, the output of the
    sub-layer has a norm of its own: x + Dropout(Norm(Sublayer(Norm(x)))); without `norm_input`, the
    inner Norm is left out.

    Args:
        norm_first: False is post-norm, as in the paper; True is pre-norm.
        options: Fields of `AddNormOptions` and arguments of `keras.layers.Layer`.

    Call arguments:
        x: (B, T, D), the residual stream.
        sublayer_output: (B, T, D), or None to get the sub-layer's input.

    Returns:
        (B, T, D): the sub-layer's input, or with `sublayer_output` the new residual stream.
    """

    options_class = AddNormOptions

    def __init__(self, norm_first: bool = False, **options: Any):
        layer_options = self.options_class.pop_from(options, norm_first=norm_first)
        super().__init__(**options)
        self.options = layer_options
        self.norm_first, self.rate = norm_first, self.options.dropout
        kind, epsilon = self.options.norm, self.options.epsilon
        self.norm: Any = _unchanged
        if layer_options.norm_input:
            self.norm = normalization(kind, epsilon, self.dtype_policy, "norm")
        self.output_norm = None
        if layer_options.norm_output:
            self.output_norm = normalization(kind, epsilon, self.dtype_policy, "output_norm")
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, x_shape: Any, sublayer_output_shape: Any = None) -> None:
        if self.options.norm_input:
            self.norm.build(x_shape)
        if self.output_norm:
            self.output_norm.build(x_shape)
        if self.options.layer_scale is not None:
            initial = initializer(keras.initializers.Constant(self.options.layer_scale))
            self.layer_scale = self.add_weight((x_shape[-1],), initial, name="layer_scale")

    def call(self, x: Any, sublayer_output: Any = None, training: bool = False) -> Any:
        if sublayer_output is not None:
            sublayer_output = self._processed(sublayer_output)
        if sublayer_output is None:
            return self.norm(x) if self.norm_first else x
        if training and self.rate:
            x = dropout(sublayer_output, self.rate, self.seed_generator, residual=x)
        else:
            x = x + sublayer_output
        return x if self.norm_first else self.norm(x)

    def _processed(self, x):
        """Return the output of a sub-layer, normalized and scaled; in the paper, unchanged."""
        x = self.output_norm(x) if self.output_norm else x
        if self.options.layer_scale is not None:
            x = x * keras.ops.cast(self.layer_scale, x.dtype)
        return x if self.options.residual_scale == 1 else x * self.options.residual_scale
