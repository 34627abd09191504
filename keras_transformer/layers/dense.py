"""Keras's own dense and normalization layers, computed by `keras_transformer.backend`."""

from __future__ import annotations

import keras
from keras import ops

from keras_transformer.backend import has_int8_linear, int8_linear, layer_norm, linear, rms_norm
from keras_transformer.layers.layer import DirectCalls


@keras.saving.register_keras_serializable("keras_transformer")
class Dense(DirectCalls, keras.layers.Dense):
    """activation(x W + b): `keras.layers.Dense` in one pass over the result where it can be.

    Args and call arguments: those of `keras.layers.Dense`; quantization and LoRA too.
    """

    def call(self, inputs, training=None):
        return linear(inputs, self.kernel, self.bias, self.activation)

    def quantized_call(self, inputs, training=None):
        """Return the call of a quantized layer, of 8 bits by our own kernel where it can be."""
        is_ours = self.quantization_mode == "int8" and not self.lora_enabled
        if not is_ours or not has_int8_linear(inputs):
            return super().quantized_call(inputs, training=training)
        x = int8_linear(inputs, self._kernel, self.kernel_scale, self.bias)
        return x if self.activation is None else self.activation(x)

    def quantize(self, mode=None, type_check=True, **options):
        """Quantize the layer; `keras.layers.Dense` refuses its subclasses by default."""
        super().quantize(mode, type_check=False, **options)


@keras.saving.register_keras_serializable("keras_transformer")
class LayerNormalization(DirectCalls, keras.layers.LayerNormalization):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta over the last axis (Ba et al. 2016).

    Args and call arguments: those of `keras.layers.LayerNormalization`, `axis` the last.
    """

    def call(self, inputs):
        return layer_norm(inputs, self.gamma, self.beta, self.epsilon)


@keras.saving.register_keras_serializable("keras_transformer")
class RMSNormalization(DirectCalls, keras.layers.RMSNormalization):
    """x / sqrt(mean(x^2) + epsilon) * scale over the last axis (Zhang and Sennrich 2019).

    Args and call arguments: those of `keras.layers.RMSNormalization`, `axis` the last.
    """

    def call(self, x):
        return rms_norm(x, self.scale, self.epsilon)


@keras.saving.register_keras_serializable("keras_transformer")
class Bias(DirectCalls, keras.layers.Layer):
    """x + b, b along the last axis, for logits.

    Args:
        trained: whether b is; Marian's is not.
    """

    def __init__(self, trained=False, **kwargs):
        super().__init__(**kwargs)
        self.trained = trained

    def build(self, x_shape):
        self.bias = self.add_weight(
            shape=(x_shape[-1],), initializer="zeros", trainable=self.trained, name="bias"
        )

    def call(self, x):
        return x + ops.cast(self.bias, x.dtype)

    def get_config(self):
        return {**super().get_config(), "trained": self.trained}
