"""Functions over a model that are compiled once."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.running.runner import Runner, score_function


def test_a_function_is_made_once_for_each_key_and_sees_new_weights():
    model, runner, made = keras.Sequential([keras.layers.Dense(1, use_bias=False)]), Runner(), []
    model.build((None, 2))

    def make():
        made.append(1)
        return lambda x, tree: {"y": model(x), "z": tree["a"] * 2 if tree["b"] is None else None}

    def run(key):
        tree = {"a": np.arange(3), "b": None}
        return runner.arrays(model, key, make, (np.ones((1, 2), "float32"), tree))

    for weight, expected in ((3.0, 6.0), (5.0, 10.0)):
        model.set_weights([np.full((2, 1), weight)])
        y, z = run("one")
        np.testing.assert_allclose(y, [[expected]])
        np.testing.assert_array_equal(z, [0, 2, 4])
    run("two")
    assert len(made) == 2


@pytest.mark.parametrize("given_labels", [0, 1])
def test_a_score_is_the_sum_of_log_probabilities(tiny_transformer, given_labels):
    model = tiny_transformer(tie_output=False)
    source = np.array([[4, 7, 5, 3], [8, 3, 0, 0]], "int32")
    labels = np.array([[6, 9, 3, 0], [5, 3, 0, 0]], "int32")
    target = np.insert(labels[:, :-1], 0, model.config.bos_id, axis=1)
    logits = ops.convert_to_numpy(model({"source_ids": source, "target_ids": target}))
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = [
        sum(log_probs[row, t, ids[t]] for t in range(given_labels, len(ids)))
        for row, ids in enumerate(([6, 9, 3], [5, 3]))
    ]
    score = score_function(model, given_labels)
    found = score(ops.convert_to_tensor(source), ops.convert_to_tensor(labels))
    np.testing.assert_allclose(ops.convert_to_numpy(found), expected, atol=1e-4)
