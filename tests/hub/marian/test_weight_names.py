"""Names of Marian's weights: what a file holds is what our weights give back."""

import keras
import numpy as np
import pytest

from keras_transformer.hub.marian.incoming import MarianModel
from keras_transformer.hub.marian.weight_names import rules_of
from tests.hub.marian.models import DATA


@pytest.mark.once("renames arrays")
@pytest.mark.parametrize("name", ["pre_norm", "post_norm"])
def test_weights_come_back(name):
    marian = MarianModel.read(DATA / f"{name}.npz")
    values = {x.path: keras.ops.convert_to_numpy(x) for x in marian.model("float32").weights}
    names = set()
    for rule in rules_of(marian.config):
        for theirs, value in rule.give(values[rule.ours]).items():
            names.add(theirs)
            stored = marian.file.read(theirs)
            np.testing.assert_array_equal(value[tuple(map(slice, stored.shape))], stored)
    assert names == marian.file.names
