"""Declarations of tasks: their options are those of the methods that take them."""

import dataclasses
import inspect

import pytest

import keras_transformer
from keras_transformer.saved.kinds import KINDS

USED = [kind for kind in KINDS if kind.use]


@pytest.mark.once("declarations: no tensor")
@pytest.mark.parametrize("kind", USED, ids=lambda kind: kind.command)
def test_the_method_of_the_object_takes_the_options(kind):
    loader = getattr(keras_transformer, kind.loader)
    parameters = inspect.signature(getattr(loader, kind.command)).parameters
    for field in dataclasses.fields(kind.use.options):
        assert parameters[field.name].default == field.default
    assert {*kind.use.search} <= {*parameters} and "tokens_per_batch" in parameters
    assert parameters["tokens_per_batch"].default == kind.use.tokens_per_batch
    assert callable(loader.in_words)
