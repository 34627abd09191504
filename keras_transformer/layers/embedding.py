"""Token embeddings with positions, and their transpose as the output projection (3.4, 3.5)."""

from __future__ import annotations

import keras
import numpy as np

from keras_transformer.backend import dropout, has_int8_linear, int8_linear, linear, lookup, quick
from keras_transformer.backend.private import in_symbolic_scope
from keras_transformer.config import require
from keras_transformer.layers.layer import Layer, initializer
from keras_transformer.layers.residual import normalization

SINUSOIDS = ("sinusoidal", "sinusoidal_halves", "sinusoidal_tensor2tensor")
POSITIONS = ("learned", "none", *SINUSOIDS)
_EXACT = {"bfloat16": 2**8, "float16": 2**11, "float32": 2**24}  # whole numbers up to here


def sinusoids(max_length: int, d_model: int, layout: str = "sinusoidal") -> np.ndarray:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(the same) (section 3.5).

    Args:
        max_length: number of positions.
        d_model: D, even.
        layout: "sinusoidal" is the paper's; "sinusoidal_halves" has all sines before all cosines,
            as Marian does; "sinusoidal_tensor2tensor" besides lets the rates end at just 1/10000,
            as fairseq does.

    Returns:
        (max_length, D) float32.
    """
    steps = np.arange(d_model // 2)
    last = d_model / 2 - (layout == "sinusoidal_tensor2tensor")
    angles = np.arange(max_length)[:, None] * 10000.0 ** -(steps / last)
    both = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    if layout != "sinusoidal":
        both = both.transpose(0, 2, 1)
    return both.reshape(max_length, d_model).astype("float32")


@keras.saving.register_keras_serializable("keras_transformer")
class PositionalEmbedding(Layer):
    """Dropout(E[ids] sqrt(D) + PE), and in reverse x E^T, the tied output of section 3.4.

    Args:
        vocab_size: V.
        d_model: D.
        positions: "learned", "none", or one of the layouts of `sinusoids`.
        max_length: number of positions there are.
        dropout: rate in [0, 1) on the sum (section 5.4).
        scale: whether embeddings are multiplied by sqrt(D).
        position_offset: number of the first position; those before it are there, unused.
        norm: whether the sum is layer-normalized, with `epsilon`.
        num_types: kinds of tokens, each with a vector that is added (Devlin et al. 2019, Figure
            2); 0: no such vectors.
        tokens: the token table of another such layer, to share it; None: an own one.

    Call arguments:
        inputs: ids (B, T); with `reverse`, the stream (B, T, D).
        index: position of the first token; 0 but for cached decoding.
        reverse: True projects the stream to logits.
        positions: (B, T), of the tokens; None: `index`, `index` + 1 ...
        type_ids: (B, T), with `num_types`.

    Returns:
        (B, T, D); with `reverse`, logits (B, T, V).

    Raises:
        ValueError: for another kind of positions, sinusoids of an odd width, or inputs longer than
            `max_length` without `positions` of their own.
    """

    def __init__(
        self,
        vocab_size,
        d_model,
        positions="sinusoidal",
        max_length=1024,
        dropout=0.0,
        scale=True,
        position_offset=0,
        norm=False,
        epsilon=1e-6,
        num_types=0,
        tokens=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.autocast = False  # lest ids become numbers of 16 bits; `call` casts the stream
        if positions not in POSITIONS:
            raise ValueError(f"positions must be one of {POSITIONS}, got {positions!r}")
        if positions.startswith("sinusoidal") and d_model % 2:
            raise ValueError(f"d_model must be even for sinusoidal positions, got {d_model}")
        self.vocab_size = vocab_size
        self.d_model = d_model
        self.positions = positions
        self.max_length = max_length
        self.rate = dropout
        self.options = dict(
            scale=scale,
            position_offset=position_offset,
            norm=norm,
            epsilon=epsilon,
            num_types=num_types,
        )
        # Scaled by sqrt(D) in the forward direction, so that both directions start at unit size.
        # In the weights' own type: in mixed precision rows are cast, not the whole table.
        self.tokens = tokens or keras.layers.ReversibleEmbedding(
            vocab_size,
            d_model,
            embeddings_initializer=initializer(
                keras.initializers.RandomNormal(stddev=d_model**-0.5)
            ),
            dtype=self.variable_dtype,
            reverse_dtype=self.compute_dtype,
            name="tokens",
        )
        if tokens:
            tokens.is_shared = True  # for the config of the layer that it was made by, too
        self.types = self._table(num_types, "types") if num_types else None
        if positions == "learned":
            self.learned = self._table(max_length + position_offset, "positions")
        elif positions != "none":
            self.sinusoids = sinusoids(max_length + position_offset, d_model, positions)
        self.norm = None
        if norm:
            self.norm = normalization("layer", epsilon, self.dtype_policy, "norm")
        self.seed_generator = keras.random.SeedGenerator()

    def _table(self, rows, name):
        initial = initializer(keras.initializers.RandomNormal(stddev=0.02))
        return keras.layers.Embedding(
            rows,
            self.d_model,
            embeddings_initializer=initial,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, inputs_shape):
        if not self.tokens.built:
            self.tokens.build()
        if self.positions == "learned":
            self.learned.build()
        if self.types:
            self.types.build()
        if self.norm:
            self.norm.build((None, None, self.d_model))

    def call(self, inputs, index=0, reverse=False, positions=None, type_ids=None, training=False):
        is_plain = not (self.tokens.quantization_mode or self.tokens.lora_enabled)
        if reverse and is_plain:
            x = quick.cast(inputs, self.compute_dtype)
            return linear(x, self.tokens.embeddings, transposed=True)
        if reverse and self.tokens.quantization_mode == "int8" and has_int8_linear(inputs):
            table, scale = self.tokens._embeddings, self.tokens.embeddings_scale
            return int8_linear(inputs, table, scale, transposed=True)
        if reverse:
            return self.tokens(inputs, reverse=True)
        inputs = self._whole("inputs", inputs)
        x = lookup(self.tokens.embeddings, inputs) if is_plain else self.tokens(inputs)
        x = quick.cast(x, self.compute_dtype)
        if self.options["scale"]:
            x = x * self.d_model**0.5
        if self.positions != "none":
            if positions is None:
                # Beyond the table some backends give NaN, or the last position again.
                length = inputs.shape[1]
                is_known = isinstance(length, int) and not in_symbolic_scope()
                fits = not is_known or length <= self.max_length
                require(fits, "inputs", length, f"at most {self.max_length} tokens long")
                # cumsum, not arange: a symbolic length has no arange in an ONNX graph.
                positions = index + quick.cumsum(quick.ones_like(inputs[0], dtype="int32"), 0) - 1
            else:
                positions = self._whole("positions", positions)
            positions = positions + self.options["position_offset"]
            x = x + quick.cast(self._position_vectors(positions), x.dtype)
        if self.types:
            if type_ids is None:
                type_ids = quick.zeros_like(inputs)
            x = x + self.types(type_ids)
        if self.norm:
            x = self.norm(x)
        if training and self.rate:
            x = dropout(x, self.rate, self.seed_generator)
        return x

    def _whole(self, name, x):
        """Whole numbers, also of what `keras.Input` and `Sequential` take for floats."""
        dtype = keras.backend.standardize_dtype(x.dtype)
        if dtype in ("int32", "int64"):
            return x
        largest = max(self.vocab_size, self.max_length + self.options["position_offset"]) - 1
        if largest > _EXACT.get(dtype, largest):
            raise ValueError(
                f"{name} must be whole numbers, got {dtype}, which has each of them up to "
                f'{_EXACT[dtype]} only: put keras.Input((None,), dtype="int32") before this layer'
            )
        return quick.cast(x, "int32")

    def _position_vectors(self, positions):
        if self.positions == "learned":
            return self.learned(positions)
        return quick.take(keras.ops.convert_to_tensor(self.sinusoids), positions, axis=0)

    def get_config(self):
        shared = {}
        if getattr(self.tokens, "is_shared", False):
            # Keras (3.15) itself leaves the number out of the first such object in a model.
            tokens = keras.saving.serialize_keras_object(self.tokens)
            shared["tokens"] = tokens | {"shared_object_id": id(self.tokens)}
        return {
            **super().get_config(),
            "vocab_size": self.vocab_size,
            "d_model": self.d_model,
            "positions": self.positions,
            "max_length": self.max_length,
            "dropout": self.rate,
            **self.options,
            **shared,
        }

    @classmethod
    def from_config(cls, config):
        # Keras finds the same table for all layers of a model that share it.
        tokens = keras.saving.deserialize_keras_object(config.get("tokens"))
        return cls(**config | {"tokens": tokens})
