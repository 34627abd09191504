"""The precision that is asked for, where the processor has its units."""

import keras
import pytest

from keras_transformer.backend import usable_precision


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_what_every_processor_has_is_taken(name, recwarn):
    assert keras.dtype_policies.get(usable_precision(name)).name == name
    assert not recwarn
