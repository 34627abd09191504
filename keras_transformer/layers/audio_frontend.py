"""Embeddings of audio frames: of an encoder's input, and of frames that a decoder predicted."""

from __future__ import annotations

from typing import Any

import keras

from keras_transformer.backend import dropout, quick
from keras_transformer.layers.basic import Dense
from keras_transformer.layers.embedding import sinusoids
from keras_transformer.layers.layer import Layer, initializer
from keras_transformer.layers.masks import length_mask


@keras.saving.register_keras_serializable("keras_transformer")
class AudioEmbedding(Layer):
    """Two convolutions and positions: Dropout(GELU(Conv(GELU(Conv(features)))) + PE).

    This is the input of a speech encoder (Whisper; Radford et al. 2022, section 2.2). Both kernels
    are three frames wide, and the second convolution has stride 2. The positions PE are `sinusoids`
    in the layout "sinusoidal_tensor2tensor". They are a weight that is not trained, because
    checkpoints contain them.

    Args:
        d_model: D.
        max_frames: F, the maximum number of frames of a clip.
        dropout: Dropout rate in [0, 1) on the sum.

    Call arguments:
        features: (B, T, mels), T at most F.
        num_frames: (B,), the number of frames of each clip without padding; None: no padding.
            Padding does not change a clip's output.

    Returns:
        (B, ceil(T / 2), D); the first ceil(num_frames / 2) positions of a clip are not padding.
    """

    whole_arguments = ("num_frames",)

    def __init__(self, d_model: int, max_frames: int, dropout: float = 0.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.supports_masking = False  # outputs and inputs have different positions
        self.d_model = d_model
        self.max_frames = max_frames
        self.rate = dropout
        self.first = self._convolution(1, "convolution_0")
        self.second = self._convolution(2, "convolution_1")
        self.seed_generator = keras.random.SeedGenerator()

    def _convolution(self, stride, name):
        """Return a convolution over three frames with a GELU."""
        return keras.layers.Conv1D(
            self.d_model,
            3,
            strides=stride,
            kernel_initializer=initializer("glorot_uniform"),
            activation="gelu",
            data_format="channels_last",
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, features_shape: Any) -> None:
        self.first.build((None, None, features_shape[-1]))
        self.second.build((None, None, self.d_model))
        num_positions = -(-self.max_frames // 2)
        table = sinusoids(num_positions, self.d_model, "sinusoidal_tensor2tensor")
        self.positions = self.add_weight(
            table.shape,
            initializer(lambda shape, dtype=None: keras.ops.convert_to_tensor(table, dtype)),
            trainable=False,
            name="positions",
        )

    def call(self, features: Any, num_frames: Any = None, training: bool = False) -> Any:
        # Padded explicitly: "same" with stride 2 pads at one end only.
        x = self.first(_padded(_without(features, num_frames)))
        x = self.second(_padded(_without(x, num_frames)))
        indices_T = quick.arange(quick.shape(x)[1], dtype="int32")
        positions = keras.ops.take(self.positions, indices_T, axis=0)
        x = x + keras.ops.cast(positions, x.dtype)
        return dropout(x, self.rate, self.seed_generator) if training and self.rate else x

    def get_config(self) -> dict[str, Any]:
        settings = dict(d_model=self.d_model, max_frames=self.max_frames, dropout=self.rate)
        return {**super().get_config(), **settings}


@keras.saving.register_keras_serializable("keras_transformer")
class FramePrenet(Layer):
    """Two hidden layers with dropout, a projection, and positions: the input of a speech decoder.

    Dropout(relu(Dropout(relu(x W1 + b1)) W2 + b2)) W3 + b3 + alpha PE (Li et al. 2019, sections 3.3
    and 3.4), where PE are `sinusoids` and alpha is trained, from 1. Narrow hidden layers with much
    dropout keep the decoder from copying the last frame instead of attending to the text.

    Args:
        d_model: D.
        max_length: Maximum number of positions T.
        hidden: Width of the two hidden layers.
        dropout: Dropout rate in [0, 1) in training.

    Call arguments:
        frames: (B, T, mels).
        index: Position of the first frame; 0 except in cached decoding.

    Returns:
        (B, T, D).
    """

    def __init__(
        self, d_model: int, max_length: int, hidden: int = 64, dropout: float = 0.5, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.d_model, self.max_length = d_model, max_length
        self.width, self.rate = hidden, dropout
        shared = dict(dtype=self.dtype_policy)
        self.hidden = [
            Dense(hidden, activation="relu", name=f"hidden_{i}", **shared) for i in range(2)
        ]
        self.output_layer = Dense(d_model, name="output", **shared)
        self.sinusoids = sinusoids(max_length, d_model)
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, frames_shape: Any) -> None:
        self.hidden[0].build((None, None, frames_shape[-1]))
        for layer in (self.hidden[1], self.output_layer):
            layer.build((None, None, self.width))
        self.alpha = self.add_weight((), keras.initializers.Ones(), name="alpha")

    def call(self, frames: Any, index: Any = 0, training: bool = False) -> Any:
        x = frames
        for layer in self.hidden:
            x = layer(x)
            x = dropout(x, self.rate, self.seed_generator) if training and self.rate else x
        x = self.output_layer(x)
        # cumsum, not arange, as in `PositionalEmbedding`.
        indices_T = index + quick.cumsum(quick.ones_like(x[0, :, 0], dtype="int32"), 0) - 1
        table = keras.ops.convert_to_tensor(self.sinusoids)
        positions_TD = quick.cast(quick.take(table, indices_T, axis=0), x.dtype)
        return x + keras.ops.cast(self.alpha, x.dtype) * positions_TD

    def get_config(self) -> dict[str, Any]:
        settings = dict(d_model=self.d_model, max_length=self.max_length)
        return {**super().get_config(), **settings, "hidden": self.width, "dropout": self.rate}


def _padded(x):
    return keras.ops.pad(x, ((0, 0), (1, 1), (0, 0)))


def _without(x, num_frames):
    """Return x with zeros after the end of each clip, which convolutions then see as padding."""
    if num_frames is None:
        return x
    mask_B11T = length_mask(num_frames, quick.shape(x)[1])
    return x * quick.cast(quick.transpose(mask_B11T[:, 0], (0, 2, 1)), x.dtype)
