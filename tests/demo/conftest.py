"""A large sample of the embedded corpus."""

import pytest

from keras_transformer import demo


@pytest.fixture(scope="session")
def corpus():
    """All three parts: the training text has rules that `pairs` lacks."""
    parts = demo.splits(train=198_000)
    return parts["test"] + parts["validation"] + parts["train"]
