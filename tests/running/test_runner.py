"""Batches of few shapes, and functions over a model that are compiled once."""

import hypothesis.strategies as st
import keras
import numpy as np
import pytest
from hypothesis import given
from keras import ops

from keras_transformer.backend import COMPILES_EACH_SHAPE
from keras_transformer.running.runner import Runner, score_function, search_batches, until_end

MAX_LENGTH = 40  # not a multiple of 16, to which lengths are rounded up where shapes are compiled
texts = st.lists(st.integers(1, MAX_LENGTH), max_size=30)


@given(texts, st.integers(1, 300))
def test_each_text_is_in_one_batch_within_the_budget(lengths, tokens_per_batch):
    batches = list(search_batches(lengths, tokens_per_batch, MAX_LENGTH))
    assert sorted(i for chosen, _, _ in batches for i in chosen) == list(range(len(lengths)))
    for chosen, rows, length in batches:
        assert len(chosen) <= rows
        assert max(lengths[i] for i in chosen) <= length <= MAX_LENGTH
        assert rows == 1 or rows * length <= tokens_per_batch
    longest = [max(lengths[i] for i in chosen) for chosen, _, _ in batches]
    assert longest == sorted(longest, reverse=True)


@given(texts, st.sampled_from([None, False, True]))
def test_shapes_are_few_where_each_is_compiled_or_on_demand(lengths, few):
    options = [] if few is None else [few]
    batches = search_batches(lengths, 256, MAX_LENGTH, *options)
    shapes = {(rows, length) for _, rows, length in batches}
    if COMPILES_EACH_SHAPE if few is None else few:
        assert {length for _, length in shapes} <= {16, 32, MAX_LENGTH}
        assert all(rows & (rows - 1) == 0 for rows, _ in shapes)
    else:
        assert {length for _, length in shapes} <= set(lengths)


def test_workers_share_texts_that_are_worth_it():
    def sizes(num_texts, tokens_per_batch=4096):
        batches = search_batches([32] * num_texts, tokens_per_batch, MAX_LENGTH, False, 2)
        return [len(chosen) for chosen, _, _ in batches]

    assert sizes(8) == [8]
    assert sizes(24) == [12, 12]
    assert sizes(24, 64) == [2] * 12


@pytest.mark.parametrize("tokens_per_batch", [0, 1.5])
def test_a_budget_out_of_range(tokens_per_batch):
    with pytest.raises(ValueError, match=f"tokens_per_batch must be .*, got {tokens_per_batch}"):
        next(search_batches([3], tokens_per_batch, MAX_LENGTH))


def test_ids_before_the_first_end():
    assert until_end([5, 6, 2, 7, 3], (3, 2)) == [5, 6]
    assert until_end(np.array([5, 6]), (2,)) == [5, 6]
    assert until_end([2, 5], (2,)) == []


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
