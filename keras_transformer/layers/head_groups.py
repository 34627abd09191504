"""Order of the columns of fused projections: by key/value head.

A head group is a key/value head with the N / G query heads that share it. The columns of the G
groups follow each other; in a group come the query heads, then the key head, then the value head.
A device that holds the columns of whole groups then holds all that their attention needs: tensor
parallelism moves nothing between the projection and the attention (as in Megatron).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_transformer.backend import model_axis
from keras_transformer.config import require
from keras_transformer.layers.basic import Dense

FORMAT = 2  # number of the format of saved weights
_NAME = "format"


def fuse(parts: Sequence[np.ndarray], num_kv_heads: int) -> np.ndarray:
    """Return the columns of several projections, ordered by key/value head.

    Args:
        parts: Arrays (..., F_i): of queries, keys and values, or of keys and values.
        num_kv_heads: G, divides each F_i.
    """
    runs = [x.reshape(*x.shape[:-1], num_kv_heads, -1) for x in parts]
    return np.concatenate(runs, axis=-1).reshape(*parts[0].shape[:-1], -1)


def unfuse(x: np.ndarray, heads: Sequence[int]) -> list[np.ndarray]:
    """Return the projections that `fuse` joined.

    Args:
        x: Array (..., F) with columns ordered by key/value head.
        heads: Number of heads of each projection, the values' last.
    """
    runs = x.reshape(*x.shape[:-1], heads[-1], -1)
    parts = np.split(runs, _ends(heads, runs.shape[-1]), axis=-1)
    return [part.reshape(*x.shape[:-1], -1) for part in parts]


def _ends(heads, width):
    return np.cumsum(heads)[:-1] * width // sum(heads)


@keras.saving.register_keras_serializable("keras_transformer")
class FusedDense(Dense):
    """Projections of one input in one product, with columns ordered by key/value head.

    Args:
        heads: Number of heads of each projection: (N, G, G) for queries, keys and values, (G, G)
            for keys and values.
        head_dim: H, the width of a head.
        options: Arguments of `keras.layers.Dense` except `units`.
    """

    def __init__(self, heads: Sequence[int], head_dim: int, **options: Any):
        super().__init__(sum(heads) * head_dim, **options)
        self.heads, self.head_dim = tuple(heads), head_dim

    def save_own_variables(self, store: Any) -> None:
        """Save the weights, and `FORMAT`, the number of their format."""
        super().save_own_variables(store)
        if self.built:
            store[_NAME] = np.int32(FORMAT)

    def load_own_variables(self, store: Any) -> None:
        """Load weights; raise ValueError if they have another format."""
        values = {name: store[name] for name in list(store.keys())}
        version = int(values.pop(_NAME, 1))
        accepted = f"{FORMAT}: another version of keras_transformer wrote it"
        require(version == FORMAT, f"the format of {self.path}", version, accepted)
        super().load_own_variables(values)

    def get_config(self) -> dict[str, Any]:
        config = {**super().get_config(), "heads": self.heads, "head_dim": self.head_dim}
        del config["units"]
        return config


def scaled_queries(groups: int, others: int, head_dim: int, factor: float) -> Any:
    """Return a Glorot initializer that multiplies the query columns by a factor.

    It is used if `query_scale` replaces the scale 1 / sqrt(H) of the products.

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


def check_model_axis(num_heads: int, num_kv_heads: int | None) -> None:
    """Check that the devices along the model axis of the distribution can share the head groups.

    Args:
        num_heads: N.
        num_kv_heads: G; None: N.

    Raises:
        ValueError: If the number of these devices does not divide the number of groups.
    """
    size, count = model_axis(), num_kv_heads or num_heads
    if count % size:
        raise ValueError(
            f"{'num_kv_heads' if num_kv_heads else 'num_heads'} must be a multiple of {size}, the "
            f"devices along the model axis of the distribution, got {count}"
        )
