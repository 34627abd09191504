"""Models of learned metrics: shares by hand, training on each backend, and errors of the config."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.models import BERTConfig, MetricConfig, MetricModel
from keras_transformer.models.metric_model import SHARES, sparsemax
from tests.backends import cases

numpy = ops.convert_to_numpy
BASE = BERTConfig(
    24,
    d_model=8,
    d_ff=8,
    num_layers=2,
    num_heads=2,
    max_length=8,
    num_types=1,
    head="hidden",
    dropout=0.0,
).to_dict()


def test_sparsemax_by_hand():
    for numbers, shares in (
        ([0.0, 0.0], [0.5, 0.5]),
        ([1.0, 0.5, -2.0], [0.75, 0.25, 0]),
        ([3.0, 0.0, 1.0], [1, 0, 0]),
    ):
        values = numpy(sparsemax(ops.convert_to_tensor(numbers)))
        np.testing.assert_allclose(values, shares, atol=1e-6)


@pytest.mark.parametrize("shares", cases(list(SHARES), "sparsemax"))
def test_trained(rng, shares):
    """All parts learn: which of two texts a translation equals."""
    config = MetricConfig("BERT", BASE, hidden_sizes=(8,), shares=shares, normalized=True)
    model = MetricModel(config)
    ids = rng.integers(1, 24, (6, 5)).astype("int32")
    inputs = dict(translation_ids=ids, source_ids=ids[::-1].copy(), reference_ids=ids.copy())
    inputs["reference_ids"][3:] = ids[:3]
    scores = np.repeat([[1.0], [0.0]], 3, axis=0).astype("float32")
    before = [numpy(x) for x in model.trainable_weights]
    model.compile(keras.optimizers.Adam(0.03), "mse")
    losses = model.fit(inputs, scores, batch_size=6, epochs=20, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 3
    names = [x.path for x, y in zip(model.trainable_weights, before, strict=True)
             if np.array_equal(numpy(x), y)]  # fmt: skip
    assert [x for x in names if "mixture" in x or "score" in x or "hidden" in x] == []


@pytest.mark.once("configs are plain values")
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        (dict(family="GPT"), "family must be one of"),
        (
            dict(segments=("source",)),
            "segments must be translation, then source, reference or both",
        ),
        (dict(segments=("translation", "reference")), "segments must be with a source, unless"),
        (dict(family="T5"), "joined must be True with a T5"),
        (dict(layer=3), "layer must be a whole number from 0 to 2, or None, got 3"),
        (dict(shares="entmax"), "shares must be one of"),
        (dict(pooling="sum"), "pooling must be one of"),
        (dict(activation="gelu"), "activation must be one of"),
        (dict(final_activation="gelu"), "final_activation must be one of"),
        (dict(base={}), "vocab_size"),
    ],
)
def test_errors_of_the_config(changes, error):
    with pytest.raises((ValueError, TypeError), match=error):
        MetricConfig(**dict(family="BERT", base=BASE) | changes)
