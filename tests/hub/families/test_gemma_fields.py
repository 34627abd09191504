"""Fields of Gemma 1: the activation's older name, and what later Gemmas have besides."""

import pytest

from keras_transformer.hub.families import FAMILIES
from keras_transformer.hub.families.gemma_fields import FIELDS, LATER
from tests.hub.families.minimal import completed, minimal


def test_the_older_name_of_the_activation():
    config = minimal("gemma")
    usual = FAMILIES["gemma"].read(config, [])
    assert FAMILIES["gemma"].read(config | dict(hidden_act="gelu"), []) == usual
    assert completed(config | dict(hidden_act="gelu"))["hidden_act"] == "gelu_pytorch_tanh"
    with pytest.raises(ValueError, match="hidden_act must be 'gelu_pytorch_tanh' or 'gelu', got"):
        FAMILIES["gemma"].read(config | dict(hidden_act="silu"), [])


def test_fields_of_later_gemmas():
    assert FIELDS["gemma"].keys().isdisjoint(LATER) and LATER.keys() <= FIELDS["gemma2"].keys()
