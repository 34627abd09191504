"""Which layers have a window, by the fields of a `config.json`."""

from types import SimpleNamespace

import pytest

from keras_transformer.hub.families.window_fields import (
    FULL,
    SLIDING,
    layer_types,
    read_windows,
    window_fields,
)
from keras_transformer.models import LLaMAConfig

pytestmark = pytest.mark.once("fields of files")


def theirs(types=None, window=5, layers=3):
    return dict(num_hidden_layers=layers, layer_types=types, sliding_window=window)


@pytest.mark.parametrize(
    "config,usual,used,expected",
    [
        (theirs(), [True, False, True], True, (5, (0, 2))),
        (theirs(), [True, True, True], True, (5, None)),
        (theirs(), [False, False, False], True, (None, None)),
        (theirs(), [True, False, True], False, (None, None)),
        (theirs(window=None), [True, False, True], True, (None, None)),
        (theirs([FULL, SLIDING, FULL]), [True, True, True], True, (5, (1,))),
        (theirs([FULL] * 3), [True, True, True], False, (None, None)),
    ],
)
def test_read(config, usual, used, expected):
    assert read_windows(config, usual, used) == expected


@pytest.mark.parametrize(
    "config,used,message",
    [
        (theirs([FULL]), True, "layer_types must have num_hidden_layers=3 entries, got"),
        (theirs([SLIDING] * 3), False, "must be 'full_attention' without a sliding_window, got"),
        (theirs([SLIDING] * 3, None), True, "must be 'full_attention' without a sliding_window"),
    ],
)
def test_refused(config, used, message):
    with pytest.raises(ValueError, match=message):
        read_windows(config, [True] * 3, used)


def test_the_field():
    field = layer_types()
    assert field.read("layer_types", {}) is None
    assert field.read("layer_types", {"layer_types": [FULL]}) == [FULL]
    with pytest.raises(ValueError, match="layer_types must be a list of 'full_attention' and"):
        field.read("layer_types", {"layer_types": ["other"]})


@pytest.mark.parametrize("window,layers", [(None, None), (5, None), (5, (1,))])
def test_there_and_back(window, layers):
    config = LLaMAConfig(9, num_layers=3, window=window, window_layers=layers)
    found = SimpleNamespace(**window_fields(config))
    assert len(found.layer_types) == 3
    again = theirs(found.layer_types, found.sliding_window)
    assert read_windows(again, [False] * 3, window is not None) == (window, layers)
