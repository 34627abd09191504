"""Rules: every layout there and back, and what config files say."""

import numpy as np
import pytest

from keras_transformer.hub.families.family import (
    Rule,
    only,
    their_activation,
    token_id,
    token_ids,
)

THEIRS = {
    "a": np.arange(12.0).reshape(3, 4),
    "b": np.arange(8.0).reshape(2, 4),
    "row": np.arange(4.0)[None],
    "d": np.arange(16.0).reshape(4, 4),
    "c": np.arange(30.0).reshape(5, 2, 3),
}


@pytest.mark.parametrize(
    "rule,expected",
    [
        (Rule("w", ("a",)), THEIRS["a"]),
        (Rule("w", ("a",), "transposed"), THEIRS["a"].T),
        (Rule("w", ("row",), "row"), THEIRS["row"][0]),
        (  # two head groups of two queries and one key
            Rule("w", ("d", "b"), "transposed", (4, 2)),
            np.concatenate([THEIRS["d"][:2], THEIRS["b"][:1], THEIRS["d"][2:], THEIRS["b"][1:]]).T,
        ),
        (Rule("w", ("a",), heads=(2, 2)), THEIRS["a"][:, [0, 2, 1, 3]]),
        (
            Rule("w", ("a", None), heads=(2, 2)),
            np.insert(THEIRS["a"], [2, 2, 4, 4], 0.0, axis=1),
        ),
        (Rule("w", ("c",), "convolution"), THEIRS["c"].transpose(2, 1, 0)),
        (Rule("w", ("b",), "plus_one"), THEIRS["b"] + 1),
    ],
)
def test_there_and_back(rule, expected):
    ours = rule.take(THEIRS.__getitem__)
    np.testing.assert_array_equal(ours, expected)
    back = rule.give(ours)
    assert list(back) == rule.names
    for name, value in back.items():
        np.testing.assert_array_equal(value, THEIRS[name])


def test_shares_of_one_tensor():
    """Ours are equal parts of theirs, which follow each other."""
    rules = [Rule("w", ("d",), "transposed", share=(i, 2)) for i in range(2)]
    ours = [rule.take(THEIRS.__getitem__, (4, 2)) for rule in rules]
    np.testing.assert_array_equal(ours[0], THEIRS["d"][:2].T)
    np.testing.assert_array_equal(ours[1], THEIRS["d"][2:].T)
    back = [rule.give(x)["d"] for rule, x in zip(rules, ours, strict=True)]
    np.testing.assert_array_equal(np.concatenate(back), THEIRS["d"])
    with pytest.raises(ValueError, match=r"d must have the shape \(6, 4\), got \(4, 4\)"):
        rules[0].take(THEIRS.__getitem__, (4, 3))


def test_each_part_has_its_shape():
    """Not only their sum: 4 + 2 rows are not 2 + 4."""
    rule = Rule("w", ("d", "b"), "transposed", (4, 2))
    assert rule.take(THEIRS.__getitem__, (4, 6)).shape == (4, 6)
    swapped = Rule("w", ("b", "d"), "transposed", (4, 2))
    with pytest.raises(ValueError, match=r"b must have the shape \(4, 4\), got \(2, 4\)"):
        swapped.take(THEIRS.__getitem__, (4, 6))
    row = Rule("w", ("a",), "row")
    with pytest.raises(ValueError, match=r"a must have the shape \(1, 4\), got \(3, 4\)"):
        row.take(THEIRS.__getitem__, (4,))


def test_a_convolution_over_images():
    kernel = np.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)  # out, in, height, width
    rule = Rule("w", ("k",), "convolution")
    ours = rule.take({"k": kernel}.get)
    np.testing.assert_array_equal(ours, kernel.transpose(2, 3, 1, 0))
    np.testing.assert_array_equal(rule.give(ours)["k"], kernel)


def test_fields():
    assert their_activation("gelu_tanh") == "gelu_new"
    only(dict(a=1), a=1, b=2)
    with pytest.raises(ValueError, match="a must be 2, got 1"):
        only(dict(a=1), a=2)


def test_tokens():
    facts = dict(vocab_size=5, a=None, b=[3], c=[1, 2], d=-1, e=5, eos_token_id=[4, 0])
    assert token_id(facts, "a", "b") == 3 and token_id(facts, "d", "a", "b") == 3
    assert token_id(facts, "a", "eos_token_id") == 4
    assert token_ids(facts, "eos_token_id") == (4, 0) and token_ids(facts, "b") == (3,)
    with pytest.raises(ValueError, match=r"c must be one token id, got \[1, 2\]"):
        token_id(facts, "c", "b")
    with pytest.raises(ValueError, match="a is null or missing, .*; set a to its id in"):
        token_id(facts, "a")
    with pytest.raises(ValueError, match=r"d must be in \[0, 5\), .*got -1"):
        token_id(facts, "d")
    with pytest.raises(ValueError, match=r"e must be in \[0, 5\), .*got 5"):
        token_id(facts, "e", "b")
    for wrong in ([4, "0"], [], "4"):
        with pytest.raises(ValueError, match=r"a must be a token id or a list of them, got"):
            token_ids(facts | {"a": wrong}, "a")
