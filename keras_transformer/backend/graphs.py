"""Searches that a GPU replays without Python between the kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_transformer.backend.compilation import BACKEND, COMPILES_EACH_SHAPE

if BACKEND == "torch":
    import torch

# Whether searches are recorded: on PyTorch with a GPU.
RECORDS_SEARCHES = BACKEND == "torch" and torch.cuda.is_available()
# Whether a search of a new shape takes longer than the next one.
SEARCHES_BY_SHAPE = COMPILES_EACH_SHAPE or RECORDS_SEARCHES


def recorded_search(begin: Callable, variables: Callable[[], Sequence[keras.Variable]]) -> Callable:
    """Return the function from the arguments of a search to its ids and scores, recorded.

    It records the search for each new shape of its arguments as CUDA graphs, see
    `backend.torch.cuda_graphs`, where these are on the current GPU.

    Args:
        begin: Function from tensors and None to a `decoding.SearchLoop`.
        variables: Function that returns the variables that it reads.
    """
    from keras_transformer.backend.torch.cuda_graphs import RecordedSearch

    @functools.cache
    def recorded() -> RecordedSearch:  # it needs the GPU
        return RecordedSearch(begin, variables)

    def search(*arguments: Any) -> Any:
        devices = {x.device for x in arguments if x is not None}
        on_gpu = all(x.type == "cuda" for x in devices)
        if on_gpu and {x.index for x in devices} == {torch.cuda.current_device()}:
            return recorded()(*arguments)
        return begin(*arguments).run()

    return search
