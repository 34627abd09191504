"""Pooling and the modules after it, in NumPy."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.models.sentence import POOLINGS, Embedding, Step, pool

X = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
COUNTS = np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], bool)


def by_hand(mode, row, counts):
    rows, places = row[counts], 1 + np.flatnonzero(counts)[:, None]
    return {
        "mean": lambda: rows.mean(0),
        "cls": lambda: rows[0],
        "max": lambda: rows.max(0),
        "mean_sqrt_len_tokens": lambda: rows.sum(0) / np.sqrt(len(rows)),
        "weightedmean": lambda: (rows * places).sum(0) / places.sum(),
        "lasttoken": lambda: rows[-1],
    }[mode]()


@pytest.mark.parametrize("modes", [(mode,) for mode in POOLINGS] + [("max", "cls", "mean")])
def test_pooling(modes):
    found = ops.convert_to_numpy(
        pool(ops.convert_to_tensor(X), ops.convert_to_tensor(COUNTS), modes)
    )
    expected = [
        np.concatenate([by_hand(mode, *one) for mode in modes])
        for one in zip(X, COUNTS, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_steps_and_back():
    kernel, gamma = np.arange(12.0).reshape(3, 4).astype("float32") / 9, np.ones(4, "float32")
    steps = (
        Step("dense", "tanh", weights={"kernel": kernel}),
        Step("layer_norm", weights={"gamma": gamma, "beta": gamma}),
        Step("normalize"),
    )
    embedding = Embedding(steps, {"query": "q: "}, "query", max_length=7, dimension=2)
    assert embedding.width(3) == 2 and Embedding(steps).width(3) == 4
    y = np.tanh(X[:, 0] @ kernel)
    y = (y - y.mean(1, keepdims=True)) / np.sqrt(y.var(1, keepdims=True) + 1e-5) + 1
    y = (y / np.linalg.norm(y, axis=1, keepdims=True))[:, :2]
    again = Embedding.of(embedding.facts(), embedding.weights())
    for one in (embedding, again):
        found = ops.convert_to_numpy(one(ops.convert_to_tensor(X[:, 0])))
        np.testing.assert_allclose(found, y, atol=1e-5)
    assert again.facts() == embedding.facts() and Embedding().facts() == {}


@pytest.mark.once("no tensor")
def test_prompts_and_bad_values():
    embedding = Embedding(prompts={"query": "q: ", "passage": "p: "}, default_prompt_name="query")
    assert [embedding.prompt(*x) for x in ((None, None), (None, "passage"), ("", None))] == [
        "q: ", "p: ", ""
    ]  # fmt: skip
    assert embedding.prompt_name("document", "passage") == "passage"
    assert Embedding().prompt(None, None) == "" and Embedding().prompt_name("query") is None
    for options, message in (
        (
            dict(default_prompt_name="x"),
            "prompt_name must be one of none: the model has no prompts",
        ),
        (dict(prompts={"a": 1}), "prompts must be texts by name"),
        (dict(max_length=0), "max_length must be a whole number of at least 1"),
        (dict(dimension=-1), "dimension must be a whole number of at least 1"),
        (dict(similarity="maxsim"), "similarity must be one of"),
        (dict(include_prompt=1), "include_prompt must be true or false"),
    ):
        with pytest.raises(ValueError, match=message):
            Embedding(**options)
    for options, message in (
        (dict(kind="lstm"), "a step's kind must be one of"),
        (dict(kind="dense", activation="elu", weights={"kernel": X}), "a step's activation"),
        (dict(kind="layer_norm"), "weights of a layer_norm must be gamma"),
    ):
        with pytest.raises(ValueError, match=message):
            Step(**options)
    with pytest.raises(ValueError, match="the embedding of the model does not fit"):
        Embedding.of({"steps": [{"kind": "dense", "weights": ["kernel"]}]}, {})
