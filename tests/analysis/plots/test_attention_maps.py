"""Pictures of attention: weights, and lines between words."""

import numpy as np
import pytest

from keras_transformer.analysis import plots
from keras_transformer.analysis.alignment import Attention, between_words

pytest.importorskip("matplotlib")

LAYERS, HEADS = 2, 3


@pytest.fixture(scope="module")
def attention():
    """Return random attention between "Two dogs" and "Zwei Hun|de"."""
    rng = np.random.default_rng(0)

    def weights(queries, keys, causal=False):
        x = rng.random((LAYERS, HEADS, queries, keys), "float32")
        x = np.tril(x) if causal else x
        return x / x.sum(axis=-1, keepdims=True)

    return Attention(
        *("Two dogs", "Zwei Hunde"),
        *(["Two", "dogs", "</s>"], ["Zwei", "Hun", "de", "</s>"], ["<s>", "Zwei", "Hun", "de"]),
        *([(0, 3), (4, 8), (8, 8)], [(0, 4), (5, 8), (8, 10), (10, 10)]),
        *(weights(3, 3), weights(4, 4, causal=True), weights(4, 3)),
    )


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_maps_show_the_weights(attention, part, drawn):
    figure = plots.attention_maps(attention, part)
    images = [axes.images[0] for axes in figure.axes if axes.images]
    assert len(images) == LAYERS * HEADS
    weights = getattr(attention, part)
    for image, expected in zip(images, weights.reshape(-1, *weights.shape[2:]), strict=True):
        np.testing.assert_array_equal(image.get_array(), expected)
        assert image.get_clim() == (0, weights.max())
    labels = drawn(figure)
    sides = dict(encoder="Two </s>", decoder="<s> Hun </s>", cross="Two dogs Hun de </s>")
    assert set(sides[part].split()) <= set(labels)


def test_chosen_layers_and_heads(attention):
    figure = plots.attention_maps(attention, layers=[1], heads=[2, 0])
    shown = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    np.testing.assert_array_equal(shown, attention.cross[1][[2, 0]])
    titles = [axes.get_title() for axes in figure.axes if axes.images]
    assert titles == ["layer 1, head 2", "layer 1, head 0"]


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(part="middle"), "part must be one of"),
        (dict(layers=[2]), "layers must be some of 0 to 1"),
        (dict(heads=[]), "heads must be some of 0 to 2"),
        (dict(heads=[-1]), "heads must be some of 0 to 2"),
    ],
    ids=["part", "layer", "no head", "negative head"],
)
def test_what_is_not_there(attention, options, message):
    with pytest.raises(ValueError, match=message):
        plots.attention_maps(attention, **options)


def test_words_add_up(attention):
    queries, keys, weights = between_words(attention)
    assert queries == ["Zwei", "Hunde", "</s>"] and keys == ["Two", "dogs", "</s>"]
    np.testing.assert_allclose(weights[:, :, 1], attention.cross[:, :, 1:3].mean(axis=2))
    queries, keys, weights = between_words(attention, "decoder")
    assert queries == ["Zwei", "Hunde", "</s>"] and keys == ["<s>", "Zwei", "Hunde"]
    np.testing.assert_allclose(weights[..., 2, 2], attention.decoder[..., 3, 2:].sum(axis=-1))
    for part in ("encoder", "decoder", "cross"):
        np.testing.assert_allclose(between_words(attention, part)[2].sum(axis=-1), 1, atol=1e-6)


def test_lines_are_as_wide_as_weights(attention, drawn):
    figure = plots.attention_lines(attention, "cross", layer=0, heads=[1], word=1)
    assert {"Zwei", "Hunde", "Two", "dogs"} <= set(drawn(figure))
    _, _, weights = between_words(attention)
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 2]
    found = {int(line.get_ydata()[1]): line.get_linewidth() for line in lines}
    assert all(line.get_ydata()[0] == 1 for line in lines)
    expected = {i: 6 * w for i, w in enumerate(weights[0, 1, 1]) if w >= 0.05}
    assert found == pytest.approx(expected)
    with pytest.raises(ValueError, match="word must be below 3"):
        plots.attention_lines(attention, word=3)
    with pytest.raises(ValueError, match="layers must be some of 0 to 1"):
        plots.attention_lines(attention, layer=-3)
