"""Fixtures of tests of models."""

import keras
import numpy as np
import pytest


@pytest.fixture(scope="session")
def assert_counts(randomize):
    """`assert_counts(family, config, inputs, **change)`: another field, other sizes or logits."""

    def check(family, config, inputs, **change):
        changed = type(config).from_dict(config.to_dict() | change)
        one, other = (randomize(family(x), scale=2.0) for x in (config, changed))
        if one.count_params() == other.count_params():
            one, other = (keras.ops.convert_to_numpy(x(inputs)) for x in (one, other))
            assert np.abs(one - other).max() > 1e-4

    return check
