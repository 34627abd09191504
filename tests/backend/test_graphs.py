"""Which searches are recorded: with PyTorch those on its GPU, and no others."""

import pytest

from keras_transformer.backend import RECORDS_SEARCHES, SEARCHES_BY_SHAPE
from tests.backends import BACKEND


def test_the_suite_hides_gpus():
    assert not RECORDS_SEARCHES
    assert SEARCHES_BY_SHAPE is (BACKEND == "jax")  # which compiles each


@pytest.mark.skipif(BACKEND != "torch", reason="only PyTorch records searches")
@pytest.mark.parametrize("current", [0, 1])
def test_a_search_of_tensors_that_are_elsewhere_is_not_recorded(current, monkeypatch):
    import torch

    from keras_transformer.backend import recorded_search

    class Loop:
        def run(self):
            return "plain"

    class Recorded:
        def __init__(self, *_):
            pass

        def __call__(self, *arguments):
            return "recorded"

    class Tensor:
        device = torch.device("cuda", 1)

    monkeypatch.setattr(torch.cuda, "current_device", lambda: current)
    monkeypatch.setattr("keras_transformer.backend.torch.cuda_graphs.RecordedSearch", Recorded)
    search = recorded_search(lambda *arguments: Loop(), [])
    assert search(Tensor(), None) == ("recorded" if current == 1 else "plain")
    assert search(torch.zeros(1), Tensor()) == "plain"
