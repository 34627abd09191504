"""Pictures: what is drawn is what was given, and nothing is left in pyplot."""

import builtins
import io

import numpy as np
import pytest
import sacrebleu

from keras_transformer import plots
from keras_transformer.alignment import Attention, between_words
from keras_transformer.layers import sinusoids
from keras_transformer.plots.base import families_for
from keras_transformer.schedules import WarmupSchedule

pytest.importorskip("matplotlib")
from matplotlib import font_manager
from matplotlib._pylab_helpers import Gcf

LAYERS, HEADS = 2, 3


@pytest.fixture(scope="module")
def attention():
    """Of "Two dogs" and "Zwei Hun|de", with random weights."""
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


def drawn(figure):
    """That it can be drawn, and the texts that are seen."""
    figure.savefig(io.BytesIO(), format="svg")
    texts = [text for axes in figure.axes for text in axes.texts]
    labels = [x for axes in figure.axes for x in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    assert not Gcf.figs  # what pyplot holds on to
    return [x.get_text() for x in (*texts, *labels)]


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_maps_show_the_weights(attention, part):
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


def test_lines_are_as_wide_as_weights(attention):
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


def test_positions():
    figure = plots.positional_encoding(8, 5)
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), sinusoids(5, 8))
    drawn(figure)
    with pytest.raises(ValueError, match="d_model must be even"):
        plots.positional_encoding(7, 5)


def test_the_papers_rate():
    figure = plots.learning_rate(WarmupSchedule.paper(512, 100), 400)
    steps, rates = figure.axes[0].lines[0].get_data()
    by_hand = 512**-0.5 * np.minimum(steps**-0.5, steps * 100**-1.5)
    np.testing.assert_allclose(rates, by_hand, rtol=1e-5)
    assert steps[0] == 1 and steps[-1] == 400 and 100 in steps


LOGS = [dict(loss=3.0, val_loss=4.0, seconds=9.0), dict(loss=2.0, val_loss=3.0, seconds=9.0)]


@pytest.mark.parametrize("form", ["logs", "history", "csv"])
def test_history_of_all_forms(form, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("epoch,loss,val_loss\n0,3.0,4.0\n1,2.0,3.0\n")
    history = dict(logs=LOGS, history=dict(loss=[3.0, 2.0], val_loss=[4.0, 3.0]), csv=path)[form]
    figure = plots.training_history(history)
    (axes,) = figure.axes
    assert axes.get_title() == "loss"
    assert [list(line.get_ydata()) for line in axes.lines] == [[3.0, 2.0], [4.0, 3.0]]
    assert list(axes.lines[0].get_xdata()) == [1, 2]
    drawn(figure)


def test_a_history_of_nothing():
    with pytest.raises(ValueError, match="history must be the metrics of an epoch or more"):
        plots.training_history([])


def test_bleu_of_each_length():
    sources = ["a b", "a b", "a b c d", "a b c d e f g h"]
    references = ["a b c d", "e f g h", "a b c d e", "a b c d e f g h"]
    hypotheses = ["a b c d", "e f g x", "a b c d e", "a b c d x f g h"]
    figure = plots.bleu_by_length(sources, hypotheses, references, bins=2)
    bleu = sacrebleu.BLEU()
    expected = [
        bleu.corpus_score(hypotheses[:2], [references[:2]]).score,
        bleu.corpus_score(hypotheses[2:], [references[2:]]).score,
    ]
    assert [bar.get_height() for bar in figure.axes[0].patches] == pytest.approx(expected)
    labels = drawn(figure)
    assert "2\n2 texts" in labels and "4–8\n2 texts" in labels
    with pytest.raises(ValueError, match=r"as many, got \(1, 2, 1\)"):
        plots.bleu_by_length(["a"], ["a", "b"], ["a"])


def test_calibration_by_hand():
    confidence, quality, count = plots.calibration([0.0, 0.1, 0.9, 1.0], [0.0, 0.2, 0.4, 0.6], 2)
    np.testing.assert_allclose(confidence, [0.05, 0.95])
    np.testing.assert_allclose(quality, [0.1, 0.5])
    assert count.tolist() == [2, 2]
    figure = plots.reliability([0.0, 0.1, 0.9, 1.0], [0.0, 0.2, 0.4, 0.6], 2)
    assert figure.axes[0].get_title() == "expected calibration error 0.250"  # (0.05 + 0.45) / 2
    drawn(figure)
    drawn(plots.reliability([0.95], [1.0]))
    with pytest.raises(ValueError, match=r"scores must be in \[0, 1\]"):
        plots.reliability([1.2], [0.5])
    with pytest.raises(ValueError, match="as many"):
        plots.reliability([], [])


def test_fonts_for_any_script():
    families = families_for("dog собака 犬")
    assert families[0] == "DejaVu Sans" and len(families) <= 2
    assert families_for("dog собака") == ["DejaVu Sans"]
    installed = {font.name for font in font_manager.fontManager.ttflist}
    assert set(families) <= installed and not any("Last Resort" in x for x in families)


def test_without_matplotlib(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"keras-transformer\[plots\]"):
        plots.positional_encoding(8, 5)
