"""Searches that a GPU repeats without Python in between."""

from __future__ import annotations

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


def recorded_search(begin: Callable, variables: Sequence[keras.Variable]) -> Callable:
    """Return the function from the arguments of a search to its ids and scores, recorded.

    It records the search for each new shape of its arguments as CUDA graphs, see
    `backend.torch.graphs`, where these are on the current GPU.

    Args:
        begin: Function from tensors and None to a `decoding.SearchLoop`.
        variables: The variables that it reads.
    """
    from keras_transformer.backend.torch.graphs import RecordedSearch

    recorded = RecordedSearch(begin, variables)

    def search(*arguments: Any) -> Any:
        here = torch.device("cuda", torch.cuda.current_device())
        there = any(x is not None and x.device != here for x in arguments)
        return begin(*arguments).run() if there else recorded(*arguments)

    return search
