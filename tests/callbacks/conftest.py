"""Data for tests of callbacks."""

import numpy as np
import pytest


@pytest.fixture
def data():
    ids = np.random.default_rng(0).integers(4, 16, (12, 5)).astype("int32")
    return {"source_ids": ids, "target_ids": np.roll(ids, 1, axis=1)}, ids
