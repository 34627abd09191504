"""Token embeddings with positions, and their transpose as the output projection (3.4, 3.5)."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_transformer.backend import constant, dropout, quick
from keras_transformer.backend.private import in_symbolic_scope
from keras_transformer.config import POSITIONS, require
from keras_transformer.layers.layer import Layer, claim, whole_numbers
from keras_transformer.layers.residual import normalization
from keras_transformer.layers.token_table import token_table, vector_table


def sinusoids(max_length: int, d_model: int, layout: str = "sinusoidal") -> np.ndarray:
    """Return PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(the same) (section 3.5).

    Args:
        max_length: Number of positions p.
        d_model: D, even.
        layout: "sinusoidal" is the paper's; "sinusoidal_halves" has all sines before all cosines,
            as in Marian; "sinusoidal_tensor2tensor" also makes the last rate exactly 1/10000, as
            in fairseq.

    Returns:
        (max_length, D) float32.
    """
    claim(max_length, d_model)  # inside `skip_init`, refuses the huge table of a wrong config
    steps = np.arange(d_model // 2)
    last = d_model / 2 - (layout == "sinusoidal_tensor2tensor")
    angles = np.arange(max_length)[:, None] * 10000.0 ** -(steps / last)
    table = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    if layout != "sinusoidal":
        table = table.transpose(0, 2, 1)
    return table.reshape(max_length, d_model).astype("float32")


@keras.saving.register_keras_serializable("keras_transformer")
class PositionalEmbedding(Layer):
    """Dropout(E[ids] sqrt(D) + PE), and in reverse x E^T, the tied output of section 3.4.

    Args:
        vocab_size: V.
        d_model: D.
        positions: "learned", "none", or one of the layouts of `sinusoids`.
        max_length: Maximum number of tokens; with positions "none", longer inputs are accepted.
        dropout: Dropout rate in [0, 1) on the sum (section 5.4).
        scale: Whether embeddings are multiplied by sqrt(D); or another factor.
        position_offset: Index of the first position; lower ones are in the table, but unused.
        norm: Whether the sum is layer-normalized; or another kind of norm, see `AddNormOptions`.
        epsilon: Epsilon of that norm.
        num_types: Number of token types, each with a vector that is added (Devlin et al. 2019,
            Figure 2); 0: no such vectors.
        tokens: The token table of another `PositionalEmbedding`, to share it; None: a new table.

    Call arguments:
        inputs: Token ids (B, T); with `reverse`, hidden states (B, T, D).
        index: Position of the first token; 0 except in cached decoding.
        reverse: Whether to project hidden states to logits.
        positions: (B, T) token positions; None: `index`, `index` + 1 ...
        type_ids: (B, T) token types, if there are `num_types`; None: all 0.

    Returns:
        (B, T, D); with `reverse`, logits (B, T, V).

    Raises:
        ValueError: If `positions` is unknown, if D is odd with sinusoids, if inputs of a known
            length are longer than `max_length` and come without `positions`, or if ids come in a
            dtype that does not hold all of them exactly.
    """

    whole_arguments = ("inputs", "positions", "type_ids")

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        positions: str = "sinusoidal",
        max_length: int = 1024,
        dropout: float = 0.0,
        scale: bool | float = True,
        position_offset: int = 0,
        norm: bool | str = False,
        epsilon: float = 1e-6,
        num_types: int = 0,
        tokens: Any = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.autocast = False  # ids must not be cast to 16 bits; `call` casts hidden states
        require(positions in POSITIONS, "positions", positions, f"one of {POSITIONS}")
        if positions.startswith("sinusoidal") and d_model % 2:
            raise ValueError(f"d_model must be even for sinusoidal positions, got {d_model}")
        self.vocab_size = vocab_size
        self.d_model = d_model
        self.positions = positions
        self.max_length = max_length
        self.rate = dropout
        self.factor = d_model**0.5 if scale is True else float(scale or 1)
        self.options = dict(
            scale=scale,
            position_offset=position_offset,
            norm=norm,
            epsilon=epsilon,
            num_types=num_types,
        )
        self.tokens = tokens or token_table(vocab_size, d_model, self.dtype_policy)
        if tokens:
            tokens.is_shared = True  # `get_config` of the layer that made it reads this too
        self.types = None
        if num_types:
            self.types = vector_table(num_types, d_model, self.dtype_policy, "types")
        if positions == "learned":
            num_positions = max_length + position_offset
            self.learned = vector_table(num_positions, d_model, self.dtype_policy, "positions")
        elif positions != "none":
            self.sinusoids = sinusoids(max_length + position_offset, d_model, positions)
        self.norm = None
        if norm:
            kind = "layer" if norm is True else norm
            self.norm = normalization(kind, epsilon, self.dtype_policy, "norm")
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, inputs_shape: Any) -> None:
        if not self.tokens.built:
            self.tokens.build()
        if self.positions == "learned":
            self.learned.build()
        if self.types:
            self.types.build()
        if self.norm:
            self.norm.build((None, None, self.d_model))

    def call(
        self,
        inputs: Any,
        index: Any = 0,
        reverse: bool = False,
        positions: Any = None,
        type_ids: Any = None,
        training: bool = False,
    ) -> Any:
        if reverse:
            return self.tokens.logits(inputs, self.compute_dtype)
        inputs = self._whole("inputs", inputs)
        x = self.tokens.rows(inputs, self.compute_dtype)
        # The factor, too, is rounded to the compute dtype, as in Gemma.
        if self.factor != 1:  # sqrt(D)
            x = x * quick.cast(self.factor, self.compute_dtype)
        if self.positions != "none":
            x = x + quick.cast(self._position_vectors(inputs, index, positions), x.dtype)
        if self.types:
            if type_ids is None:
                type_ids = quick.zeros_like(inputs)
            x = x + self.types(type_ids)
        if self.norm:
            x = self.norm(x)
        if training and self.rate:
            x = dropout(x, self.rate, self.seed_generator)
        return x

    def _whole(self, name, ids):
        """Return ids or positions as integers."""
        largest = max(self.vocab_size, self.max_length + self.options["position_offset"]) - 1
        return whole_numbers(name, ids, largest)

    def _position_vectors(self, inputs, index, positions):
        """Return the vectors of positions (T, D), or (B, T, D) if `positions` are given."""
        if positions is None:
            # For a position beyond the table, some backends return NaN, others the last vector.
            length = inputs.shape[1]
            is_known = isinstance(length, int) and not in_symbolic_scope()
            has_room = not is_known or length <= self.max_length
            require(has_room, "inputs", length, f"at most {self.max_length} tokens long")
            if is_known and isinstance(index, int) and self.positions != "learned":
                first = index + self.options["position_offset"]
                if first + length <= len(self.sinusoids):
                    return constant(self.sinusoids, slice(first, first + length))
            # cumsum, not arange: an ONNX graph has no arange of a symbolic length.
            positions = index + quick.cumsum(quick.ones_like(inputs[0], dtype="int32"), 0) - 1
        else:
            positions = self._whole("positions", positions)
        positions = positions + self.options["position_offset"]
        if self.positions == "learned":
            return self.learned(positions)
        return quick.take(constant(self.sinusoids), positions, axis=0)

    def get_config(self) -> dict[str, Any]:
        shared = {}
        if getattr(self.tokens, "is_shared", False):
            # Keras (3.15) leaves this id out of the first of the layers that share the table.
            tokens = keras.saving.serialize_keras_object(self.tokens)
            shared["tokens"] = tokens | {"shared_object_id": id(self.tokens)}
        return {
            **super().get_config(),
            "vocab_size": self.vocab_size,
            "d_model": self.d_model,
            "positions": self.positions,
            "max_length": self.max_length,
            "dropout": self.rate,
            **shared,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> PositionalEmbedding:
        # Keras returns the same table for all layers of a model that share it.
        tokens = keras.saving.deserialize_keras_object(config.get("tokens"))
        return cls(**config | {"tokens": tokens})
