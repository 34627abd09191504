"""Variables written and assigned alone; tests/backend/test_process_group.py has two processes."""

from unittest import mock

import keras
import numpy as np
import pytest

from keras_transformer.weights import read_weights, slices
from keras_transformer.weights.slices import assign_variables, check_variables, write_variables
from keras_transformer.weights.values import Values


def values_of(variables):
    return {k: keras.ops.convert_to_numpy(v).tolist() for k, v in variables.items()}


def test_alone_it_is_a_plain_file_that_variables_get_back(tmp_path):
    path = tmp_path / "weights.safetensors"
    variables = {
        "a": keras.Variable([[1.0, 2.0]]),
        "b": keras.Variable(3, dtype="int32", trainable=False),
    }
    write_variables(path, variables)
    assert [x.name for x in tmp_path.iterdir()] == ["weights.safetensors"]
    np.testing.assert_array_equal(read_weights(path)["a"], [[1.0, 2.0]])
    before = values_of(variables)
    for variable in variables.values():
        variable.assign(variable * 0)
    assign_variables(Values(path), variables, "the model")
    assert values_of(variables) == before


def test_slices_of_one_process_are_one_array_of_a_plain_file(tmp_path):
    whole = np.arange(6.0, dtype="float32").reshape(2, 3)
    parts = [((0, 2), whole[:, 2:]), ((0, 0), whole[:, :2])]
    with mock.patch.object(slices, "slices_of", lambda variable, index: parts):
        write_variables(tmp_path / "weights.safetensors", {"a": keras.Variable(whole)})
    assert [x.name for x in tmp_path.iterdir()] == ["weights.safetensors"]
    np.testing.assert_array_equal(read_weights(tmp_path / "weights.safetensors")["a"], whole)


def test_variables_that_do_not_fit(tmp_path):
    path = tmp_path / "weights.safetensors"
    write_variables(path, {"a": keras.Variable([1.0]), "b": keras.Variable([1.0])})
    others = {"a": keras.Variable([1.0, 2.0]), "c": keras.Variable([5.0])}
    message = r"of the model: missing: c; unexpected: b; wrong shape: a \(1,\) instead of \(2,\)"
    for function in (check_variables, assign_variables):
        with pytest.raises(ValueError, match=message):
            function(Values(path), others, "the model")
    assert values_of(others) == {"a": [1.0, 2.0], "c": [5.0]}
