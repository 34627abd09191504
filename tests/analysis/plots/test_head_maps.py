"""Heat maps of what heads attend to."""

import numpy as np
import pytest

from keras_transformer.analysis import plots
from keras_transformer.analysis.heads import Head, Ranking

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.once("pictures")


def ranking(*accuracies):
    heads = [Head(i // 2, i % 2, x, 0.5) for i, x in enumerate(accuracies)]
    return Ranking(sorted(heads, key=lambda x: -x.accuracy), 0.1, -1, 0.2, 9)


def test_each_head_has_its_cell(drawn):
    rankings = {
        ("next word", "encoder"): ranking(0.1, 0.9, 0.2, 0.3),
        ("antecedent", "encoder"): ranking(0.5, 0.4, 0.6, 0.7),
        ("antecedent", "cross"): ranking(0.25, 0.75),
    }
    figure = plots.head_accuracies(rankings)
    shown = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    np.testing.assert_array_equal(shown[0], [[0.1, 0.9, 0.2, 0.3], [0.5, 0.4, 0.6, 0.7]])
    np.testing.assert_array_equal(shown[1], [[0.25, 0.75]])
    assert {"next word", "antecedent", "0.1", "1.0", "90%"} <= set(drawn(figure))
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:2] == ["encoder", "cross"]


def test_there_must_be_a_ranking():
    with pytest.raises(ValueError, match="rankings must be at least one"):
        plots.head_accuracies({})
