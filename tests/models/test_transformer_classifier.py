"""A classifier on an encoder-decoder: padding, saving, what is refused."""

import dataclasses

import numpy as np
import pytest
from keras import ops

from keras_transformer.models import TransformerClassifier, TransformerClassifierConfig

CONFIG = TransformerClassifierConfig(
    20, 20, d_model=8, d_ff=12, num_encoder_layers=1, num_decoder_layers=1, num_heads=2,
    labels=("no", "yes", "perhaps"), eos_id=(3, 4),
)  # fmt: skip
IDS = np.array([[7, 9, 3, 5, 4], [6, 8, 3, 0, 0]], "int32")


@pytest.fixture(scope="module")
def model():
    return TransformerClassifier(CONFIG)


def test_padding_changes_nothing(model):
    together = ops.convert_to_numpy(model({"token_ids": IDS}))
    alone = ops.convert_to_numpy(model({"token_ids": IDS[1:, :3]}))
    assert together.shape == (2, 3)
    np.testing.assert_allclose(together[1:], alone, atol=1e-5)


def test_the_last_end_is_classified(model):
    """A token after it changes the encoder alone, an earlier end changes both."""
    longer = np.concatenate([IDS[:1], [[4]]], axis=1)
    found = [ops.convert_to_numpy(model({"token_ids": x})) for x in (IDS[:1], longer)]
    assert np.abs(found[0] - found[1]).max() > 1e-4


@pytest.mark.once("test_transformer.py saves a model under each backend")
def test_saved_and_loaded(model, saved_and_loaded):
    again = saved_and_loaded(model)
    assert again.config == CONFIG
    found, before = (ops.convert_to_numpy(x({"token_ids": IDS})) for x in (again, model))
    np.testing.assert_allclose(found, before, atol=1e-6)


@pytest.mark.once("a config")
@pytest.mark.parametrize(
    "change,message",
    [
        (dict(head="hidden"), "head must be one of .*, got 'hidden'"),
        (dict(labels=()), r"labels must be one name or more, got \(\)"),
        (dict(head_dropout=1.0), r"head_dropout must be in \[0, 1\), got 1.0"),
        (dict(problem_type="x"), "problem_type must be .*, got 'x'"),
        (dict(num_heads=3), "d_model must be divisible by num_heads"),
    ],
)
def test_bad_values_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **change)
