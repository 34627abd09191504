"""Rules: every layout there and back, and what config files say."""

import numpy as np
import pytest

from keras_transformer.checkpoints.families.base import (
    Rule,
    activation,
    one,
    only,
    their_activation,
    token_id,
)

THEIRS = {
    "a": np.arange(12.0).reshape(3, 4),
    "b": np.arange(8.0).reshape(2, 4),
    "row": np.arange(4.0)[None],
    "c": np.arange(30.0).reshape(5, 2, 3),
}


@pytest.mark.parametrize(
    "rule,expected",
    [
        (Rule("w", ("a",)), THEIRS["a"]),
        (Rule("w", ("a",), "transposed"), THEIRS["a"].T),
        (Rule("w", ("row",), "row"), THEIRS["row"][0]),
        (
            Rule("w", ("a", "b"), "transposed", (3, 2)),
            np.concatenate([THEIRS["a"].T, THEIRS["b"].T], axis=1),
        ),
        (Rule("w", ("a", None), "same"), np.concatenate([THEIRS["a"], np.zeros((3, 4))], axis=1)),
        (Rule("w", ("c",), "convolution"), THEIRS["c"].transpose(2, 1, 0)),
    ],
)
def test_there_and_back(rule, expected):
    ours = rule.take(THEIRS.__getitem__)
    np.testing.assert_array_equal(ours, expected)
    back = rule.give(ours)
    assert list(back) == rule.names
    for name, value in back.items():
        np.testing.assert_array_equal(value, THEIRS[name])


def test_a_convolution_over_images():
    kernel = np.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)  # out, in, height, width
    rule = Rule("w", ("k",), "convolution")
    ours = rule.take({"k": kernel}.get)
    np.testing.assert_array_equal(ours, kernel.transpose(2, 3, 1, 0))
    np.testing.assert_array_equal(rule.give(ours)["k"], kernel)


def test_fields():
    assert activation("gelu_new") == "gelu_tanh" and their_activation("gelu_tanh") == "gelu_new"
    with pytest.raises(ValueError, match="activation must be one of .*, got 'tanh'"):
        activation("tanh")
    assert one(dict(a=1, b=1), "a", "b") == 1
    with pytest.raises(ValueError, match=r"a and b must be equal, got \[1, 2\]"):
        one(dict(a=1, b=2), "a", "b")
    only(dict(a=1), a=1, b=2)
    with pytest.raises(ValueError, match="a must be 2, got 1"):
        only(dict(a=1), a=2)
    assert token_id(dict(a=None, b=[3]), "a", "b") == 3
    with pytest.raises(ValueError, match=r"a must be one token's number, got \[1, 2\]"):
        token_id(dict(a=[1, 2]), "a")
    with pytest.raises(KeyError, match="a"):
        token_id({}, "a")
