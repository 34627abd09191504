"""Mined pairs, beside the margins worked out pair by pair."""

import numpy as np
import pytest

from keras_transformer.tasks.mining import margins, mined

pytestmark = pytest.mark.once("no tensor")


def by_hand(sources, targets, k):
    """The pairs by Artetxe and Schwenk 2019: the best margin first, each sentence once."""
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (sources, targets)]
    cosines = unit[0] @ unit[1].T
    near = np.sort(cosines, axis=1)[:, -k:].sum(1), np.sort(cosines, axis=0)[-k:].sum(0)
    margins = cosines / (near[0][:, None] / (2 * k) + near[1][None] / (2 * k))
    pairs = []
    for flat in np.argsort(-margins, axis=None):
        x, y = map(int, np.unravel_index(flat, margins.shape))
        if all(x != a and y != b for _, a, b in pairs):
            pairs.append((float(margins[x, y]), x, y))
    return pairs


@pytest.mark.parametrize("sizes", [(9, 14), (14, 9)])
def test_pairs_by_margin(sizes):
    generator = np.random.default_rng(0)
    # all similar, as the sentences of one subject are
    sources, targets = (generator.normal(size=(n, 6)) + 2 for n in sizes)
    targets[:5] = sources[[3, 1, 4, 0, 2]] + 0.1 * generator.normal(size=(5, 6))
    scores, xs, ys = mined(sources.astype("float32"), targets.astype("float32"), 3)
    expected = by_hand(sources, targets, 3)
    assert {*zip(xs.tolist(), ys.tolist(), strict=True)} >= {(3, 0), (1, 1), (4, 2), (0, 3), (2, 4)}
    # a pair of which neither is a neighbour of the other is no candidate
    for score, x, y in zip(scores[:5], xs[:5], ys[:5], strict=True):
        assert (pytest.approx(score, abs=1e-5), x, y) == expected.pop(0)
    assert len({*xs.tolist()}) == len(xs) == len({*ys.tolist()})
    assert (np.diff(scores) <= 0).all()


def test_margins_of_given_pairs():
    generator = np.random.default_rng(1)
    sources, targets = (generator.normal(size=(n, 6)) + 2 for n in (7, 9))
    found = by_hand(sources, targets, 3)
    scores, x, y = (np.array(column) for column in zip(*found, strict=True))
    np.testing.assert_allclose(margins(sources, targets, x, y, 3), scores, rtol=1e-5)


def test_fewer_sentences_than_neighbours():
    scores, xs, ys = mined(np.eye(2, dtype="float32"), np.eye(2, dtype="float32")[::-1], 4)
    assert sorted(zip(xs.tolist(), ys.tolist(), strict=True)) == [(0, 1), (1, 0)]
    np.testing.assert_allclose(scores, 2)


def test_a_number_of_neighbours():
    with pytest.raises(ValueError, match="neighbours must be a whole number of at least 1, got 0"):
        mined(np.eye(2), np.eye(2), 0)
    with pytest.raises(ValueError, match="neighbours must be a whole number of at least 1"):
        margins(np.eye(2), np.eye(2), [0], [0], 0)
