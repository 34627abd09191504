"""Keras's dense and normalization layers, computed by the backend; a soft cap and a bias."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_transformer.backend import (
    has_int8_linear,
    int8_linear,
    layer_norm,
    linear,
    rms_norm,
)
from keras_transformer.layers.blocks import WithBlocks
from keras_transformer.layers.layer import DirectCalls
from keras_transformer.layers.remainders import WithRemainder


@keras.saving.register_keras_serializable("keras_transformer")
class Dense(WithBlocks, WithRemainder, DirectCalls, keras.layers.Dense):
    """`keras.layers.Dense`, activation(x W + b), computed by the backend's fastest product.

    Arguments, call arguments, quantization and LoRA are those of `keras.layers.Dense`.
    """

    matrix_name, scale_name = "_kernel", "kernel_scale"

    def build(self, inputs_shape: Any) -> None:
        if not self.build_blocks(inputs_shape[-1], self.units):
            super().build(inputs_shape)
            return
        self.bias = None
        if self.use_bias:
            initial = self.bias_initializer
            self.bias = self.add_weight(shape=(self.units,), initializer=initial, name="bias")
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        # Reading Keras's property `kernel` takes longer than the product of a small layer.
        kernel = self.kernel if self.lora_enabled else self._kernel
        return linear(inputs, kernel, self.bias, self.activation)

    def quantized_call(self, inputs: Any, training: bool | None = None) -> Any:
        """Call the quantized layer; int8 weights use the backend's own kernel where possible."""
        if self.bits:
            x = self.project(inputs)
            x = x if self.bias is None else x + ops.cast(self.bias, x.dtype)
            return x if self.activation is None else self.activation(x)
        is_ours = self.quantization_mode == "int8" and not self.lora_enabled
        if not is_ours or not has_int8_linear(inputs):
            return super().quantized_call(inputs, training=training)
        x = int8_linear(inputs, self._kernel, self.kernel_scale, self.bias)
        return x if self.activation is None else self.activation(x)

    def outputs(self, ids: Any) -> Any:
        """Return the kernel's columns (..., D) for the outputs `ids` (...), as floats."""
        if self.bits:
            return self.float_rows(ids, self.compute_dtype)
        columns = ops.take(ops.transpose(self.kernel), ids, axis=0)
        if self.quantization_mode != "int8":
            return columns
        scale = ops.expand_dims(ops.take(self.kernel_scale, ids, axis=0), -1)
        return ops.cast(columns, self.compute_dtype) / ops.cast(scale, self.compute_dtype)


@keras.saving.register_keras_serializable("keras_transformer")
class LayerNormalization(DirectCalls, keras.layers.LayerNormalization):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta over the last axis (Ba et al. 2016).

    Arguments and call arguments are those of `keras.layers.LayerNormalization`; `axis` must be the
    last one.
    """

    def call(self, inputs: Any) -> Any:
        return layer_norm(inputs, self.gamma, self.beta, self.epsilon)


@keras.saving.register_keras_serializable("keras_transformer")
class RMSNormalization(DirectCalls, keras.layers.RMSNormalization):
    """x / sqrt(mean(x^2) + epsilon) * scale over the last axis (Zhang and Sennrich 2019).

    Arguments and call arguments are those of `keras.layers.RMSNormalization`; `axis` must be the
    last one.
    """

    def call(self, x: Any) -> Any:
        return rms_norm(x, self.scale, self.epsilon)


@keras.saving.register_keras_serializable("keras_transformer")
class SoftCap(DirectCalls, keras.layers.Layer):
    """A smooth limit for logits (Gemma 2): cap * tanh(x / cap), which is in (-cap, cap).

    Args:
        cap: The limit, above 0.
    """

    def __init__(self, cap: float, **kwargs: Any):
        super().__init__(**kwargs)
        self.cap = cap
        self.built = True

    def call(self, x: Any) -> Any:
        return ops.tanh(x / self.cap) * self.cap

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "cap": self.cap}


@keras.saving.register_keras_serializable("keras_transformer")
class Bias(DirectCalls, keras.layers.Layer):
    """A bias over the last axis, x + b, for logits.

    Args:
        trained: Whether b is trained.
    """

    def __init__(self, trained: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.trained = trained

    def build(self, x_shape: Any) -> None:
        self.bias = self.add_weight(
            shape=(x_shape[-1],), initializer="zeros", trainable=self.trained, name="bias"
        )

    def call(self, x: Any) -> Any:
        return x + ops.cast(self.bias, x.dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "trained": self.trained}
