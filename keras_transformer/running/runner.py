"""Functions of tensors over a model, compiled once and called many times."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer.backend import (
    COMPILES_EACH_SHAPE,
    IS_EAGER,
    RECORDS_SEARCHES,
    compiled,
    num_workers,
    recorded_search,
    smoothed_cross_entropy,
)
from keras_transformer.decoding import whole_search
from keras_transformer.models import EncoderDecoder
from keras_transformer.running.batches import MULTIPLE

LENGTH_MULTIPLE = MULTIPLE if COMPILES_EACH_SHAPE else 1


class Runner:
    """A cache of compiled functions of tensors over a model, one for each key."""

    def __init__(self) -> None:
        self._compiled: dict[Hashable, Callable] = {}

    def workers(self, key: Hashable) -> int:
        """Return how many threads may search at once; 1 on PyTorch, where Python runs each step."""
        return 1 if IS_EAGER else num_workers()

    def __call__(
        self,
        model: keras.Model,
        key: Hashable,
        make: Callable[[], Callable],
        arguments: Any,
        donates: Sequence[int] = (),
        varying: Sequence[int] = (),
    ) -> Any:
        """Call the function of a key, compiled at its first call, and return its result.

        Args:
            model: Model whose variables the function reads.
            key: Distinguishes the function from all others of this runner.
            make: Makes the function; called if the key is new.
            arguments: Arrays, numbers, None and trees of these.
            donates, varying: Indices of arguments, see `backend.compiled`.
        """
        if key not in self._compiled:
            self._compiled[key] = compiled(make(), model, donates, varying)
        return self._compiled[key](*(keras.tree.map_structure(_tensor, x) for x in arguments))

    def search(
        self, model: keras.Model, key: Hashable, begin: Callable, arguments: Any, varying: Any = ()
    ) -> list[np.ndarray]:
        """Return the ids and scores of a search.

        Args:
            model, key, arguments, varying: As in a call.
            begin: Function from the arguments to a `decoding.SearchLoop`.
        """

        def make() -> Callable:
            # No CUDA graph with a constraint or a shortlist: these may read more than arguments.
            plain = RECORDS_SEARCHES and all(x is None for x in arguments[4:])
            return recorded_search(begin, lambda: model.variables) if plain else whole_search(begin)

        return self.arrays(model, key, make, arguments, varying=varying)

    def arrays(self, *arguments: Any, **numbers: Any) -> list[np.ndarray]:
        """Return the result of a call as a list of arrays."""
        return [ops.convert_to_numpy(x) for x in keras.tree.flatten(self(*arguments, **numbers))]


def _tensor(x: Any) -> Any:
    return ops.convert_to_tensor(x) if isinstance(x, np.ndarray) else x


def score_function(model: EncoderDecoder, num_forced: int = 0) -> Callable:
    """Return `score(source_ids (B, S), labels (B, T))` -> log p(labels | source) (B,).

    The probability of the first `num_forced` labels, such as that of a language, does not count.
    """
    config = model.config

    def score(source_ids: Any, labels: Any) -> Any:
        first = ops.full((ops.shape(labels)[0], 1), config.bos_id, dtype="int32")
        labels = ops.cast(labels, "int32")
        inputs = {
            "source_ids": source_ids,
            "target_ids": ops.concatenate([first, labels[:, :-1]], axis=1),
        }
        loss_BT = smoothed_cross_entropy(model(inputs), labels, 0.0)
        is_token_BT = ops.cast(ops.not_equal(labels, config.pad_id), loss_BT.dtype)
        return -ops.sum((loss_BT * is_token_BT)[:, num_forced:], axis=1)

    return score
