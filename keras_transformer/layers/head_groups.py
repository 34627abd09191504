"""Order of the columns of fused projections: by key/value head.

For each of the K key/value heads come its N / K query heads, then its key head, then its value
head. A device that holds the columns of whole key/value heads then holds all that their attention
needs: tensor parallelism moves nothing between the projection and the attention (as in Megatron).
Files of format 1 have the order [queries, keys, values].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_transformer.backend.private import layers_inside
from keras_transformer.layers.basic import Dense

FORMAT = 2  # of saved weights
_NAME = "format"


def fuse(parts: Sequence[np.ndarray], num_kv_heads: int) -> np.ndarray:
    """Return the columns of several projections, ordered by key/value head.

    Args:
        parts: Arrays (..., F_i): of queries, keys and values, or of keys and values.
        num_kv_heads: K, divides each F_i.
    """
    runs = [x.reshape(*x.shape[:-1], num_kv_heads, -1) for x in parts]
    return np.concatenate(runs, axis=-1).reshape(*parts[0].shape[:-1], -1)


def unfuse(x: np.ndarray, heads: Sequence[int]) -> list[np.ndarray]:
    """Return the projections that `fuse` joined.

    Args:
        x: Array (..., F) with columns ordered by key/value head.
        heads: Number of heads of each projection, that of the values last.
    """
    runs = x.reshape(*x.shape[:-1], heads[-1], -1)
    parts = np.split(runs, _ends(heads, runs.shape[-1]), axis=-1)
    return [part.reshape(*x.shape[:-1], -1) for part in parts]


def _ends(heads, width):
    return np.cumsum(heads)[:-1] * width // sum(heads)


@keras.saving.register_keras_serializable("keras_transformer")
class FusedDense(Dense):
    """Projections of one input in one product, with columns ordered by key/value head.

    It loads weights of format 1, whose columns are ordered by projection.

    Args:
        heads: Number of heads of each projection: (N, K, K) for queries, keys and values, (K, K)
            for keys and values.
        head_dim: H, the width of a head.
        options: Arguments of `keras.layers.Dense` but `units`.
    """

    def __init__(self, heads: Sequence[int], head_dim: int, **options: Any):
        super().__init__(sum(heads) * head_dim, **options)
        self.heads, self.head_dim = tuple(heads), head_dim
        self.loaded_format = FORMAT  # of the weights that were loaded last

    def reordered(self, x: np.ndarray) -> np.ndarray:
        """Return an array (..., F) of format 1 in the present order; other arrays unchanged."""
        if x.shape[-1:] != (self.units,):
            return x
        return fuse(np.split(x, _ends(self.heads, self.units), axis=-1), self.heads[-1])

    def save_own_variables(self, store: Any) -> None:
        """Save the weights with the number of their format."""
        super().save_own_variables(store)
        if self.built:
            store[_NAME] = np.int32(FORMAT)

    def load_own_variables(self, store: Any) -> None:
        """Load the weights of any format."""
        values = {name: store[name] for name in list(store.keys())}
        self.loaded_format = int(values.pop(_NAME, 1))
        if self.loaded_format > FORMAT:
            raise ValueError(
                f"the format of {self.path} must be at most {FORMAT}, got {self.loaded_format}: "
                "a newer version of keras_transformer wrote it"
            )
        if self.loaded_format == 1:
            values = {name: self.reordered(x) for name, x in values.items()}
        super().load_own_variables(values)

    def get_config(self) -> dict[str, Any]:
        config = {**super().get_config(), "heads": self.heads, "head_dim": self.head_dim}
        del config["units"]
        return config


def fused_layers(model: keras.Model) -> list[FusedDense]:
    """Return the fused projections of a model."""
    return [layer for layer in layers_inside(model) if isinstance(layer, FusedDense)]


def reordered_moments(
    values: Mapping[str, np.ndarray], optimizer: keras.optimizers.Optimizer, model: keras.Model
) -> dict[str, np.ndarray]:
    """Return the state of an optimizer, saved in format 1, in the present order.

    Args:
        values: Its arrays by the number of the variable in `optimizer.variables`.
        optimizer: The built optimizer.
        model: The model that it trains.
    """
    layers = {  # by the beginning of the names of a weight's moments
        f"{weight.path.replace('/', '_')}_": layer
        for layer in fused_layers(model)
        for weight in layer.weights
        if weight.name != "lora_kernel_a"  # its columns are those of the rank
    }
    found = dict(values)
    for name, variable in zip(sorted(values, key=int), optimizer.variables, strict=False):
        for weight, layer in layers.items():
            if variable.name.startswith(weight):
                found[name] = layer.reordered(values[name])
    return found


def load_moments_of_any_format(model: keras.Model) -> None:
    """Let the optimizer of a compiled model load a state of any format from a Keras file.

    The state has no number of its own: its format is that of the weights, which Keras (3.15) loads
    before it.
    """
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        return
    load = optimizer.load_own_variables

    def load_own_variables(store: Any) -> None:
        values = {name: store[name] for name in list(store.keys())}
        if any(layer.loaded_format == 1 for layer in fused_layers(model)):
            values = reordered_moments(values, optimizer, model)
        load(values)

    optimizer.load_own_variables = load_own_variables


def scaled_queries(groups: int, others: int, head_dim: int, factor: float) -> Any:
    """Return an initializer: Glorot values, the query columns times a factor.

    For attention that scales the products of queries and keys in another way than by 1 / sqrt(H).

    Args:
        groups: Query heads in each head group.
        others: Key and value heads in each head group.
        head_dim: H.
        factor: Factor of the query columns.
    """

    def initial(shape, dtype=None):
        scale = np.repeat([factor, 1.0], [groups * head_dim, others * head_dim])
        scale = keras.ops.convert_to_tensor(np.tile(scale, shape[-1] // len(scale)), dtype)
        return keras.initializers.GlorotUniform()(shape, dtype) * scale

    return initial
