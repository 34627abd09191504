"""Prefixes of pairs, in proportion."""

import pytest

from keras_transformer.training.prefix_pairs import with_prefixes
from keras_transformer.training.recipe import TranslationRecipe

pytestmark = pytest.mark.once("texts: no tensor")
PAIRS = [("a b c d", "A B C D E F G H"), ("one", "Eins"), ("x y", "今日は。")]


def test_prefixes_follow_their_pairs_in_proportion():
    cuts = set()
    for seed in range(20):
        pairs = with_prefixes(PAIRS, 1.0, seed)
        assert [pairs[0], pairs[2], pairs[3]] == PAIRS
        assert pairs[4] == ("x", "今日")
        source, target = pairs[1]
        count = len(source.split())
        assert PAIRS[0][0].startswith(source) and target == PAIRS[0][1][: 4 * count - 1]
        cuts.add(count)
    assert cuts == {1, 2, 3}


def test_share():
    assert with_prefixes(PAIRS, 0) == PAIRS and with_prefixes([], 1.0) == []
    many = [(f"a b {i}", f"A B {i}") for i in range(1000)]
    pairs = with_prefixes(many, 0.3, seed=1)
    assert 1240 < len(pairs) < 1360 and set(many) <= set(pairs)
    assert pairs == with_prefixes(many, 0.3, seed=1) != with_prefixes(many, 0.3, seed=2)


def test_bad_input():
    with pytest.raises(ValueError, match=r"share must be in \[0, 1\], got 2"):
        with_prefixes(PAIRS, 2)
    with pytest.raises(ValueError, match=r"prefix_pairs must be 0 with context_sentences, got 0.5"):
        TranslationRecipe(prefix_pairs=0.5, context_sentences=1)
