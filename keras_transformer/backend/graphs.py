"""Recorded searches, which a GPU replays without Python between the kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_transformer.backend.compilation import BACKEND, COMPILES_EACH_SHAPE

if BACKEND == "torch":
    import torch

# Whether searches are recorded as CUDA graphs.
RECORDS_SEARCHES = BACKEND == "torch" and torch.cuda.is_available()
# Whether a search of a new shape takes longer than a repeated one.
SEARCHES_BY_SHAPE = COMPILES_EACH_SHAPE or RECORDS_SEARCHES


def recorded_search(begin: Callable, variables: Callable[[], Sequence[keras.Variable]]) -> Callable:
    """Return a function from the arguments of a search to its ids and scores; only on PyTorch.

    If the arguments are on the current GPU, the function records the search as CUDA graphs for each
    new shape (`backend.torch.cuda_graphs`); otherwise it runs the search without a recording.

    Args:
        begin: Function from tensors and None to a `decoding.SearchLoop`.
        variables: Function that returns the variables that the search reads.
    """
    from keras_transformer.backend.torch.cuda_graphs import RecordedSearch

    @functools.cache
    def recorded() -> RecordedSearch:  # made at the first call: it needs the GPU
        return RecordedSearch(begin, variables)

    def search(*arguments: Any) -> Any:
        devices = {x.device for x in arguments if x is not None}
        on_gpu = all(x.type == "cuda" for x in devices)
        if on_gpu and {x.index for x in devices} == {torch.cuda.current_device()}:
            return recorded()(*arguments)
        return begin(*arguments).run()

    return search
