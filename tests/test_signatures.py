"""Options in the signatures of functions that take them by name."""

import dataclasses
import inspect

import pytest

from keras_transformer.signatures import spelled_out

pytestmark = pytest.mark.once(reason="no tensor is in it")


@dataclasses.dataclass
class Options:
    size: int = 3
    name: str = "x"


def test_each_option_is_in_the_signature():
    @spelled_out(Options, ("size", "name"), name="y")
    def one(text, **options):
        return options

    parameters = inspect.signature(one).parameters
    assert list(parameters) == ["text", "size", "name"]
    assert [parameters[x].default for x in ("size", "name")] == [3, "y"]
    assert parameters["size"].annotation is int
    assert one("", size=4) == dict(size=4)


def test_annotations_can_be_spelled_otherwise():
    @spelled_out(Options, ("size",), lambda field, hint: (field.name, hint))
    def one(text: str, **options):
        return options

    assert inspect.signature(one).parameters["size"].annotation == ("size", int)
