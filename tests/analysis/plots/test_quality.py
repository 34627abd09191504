"""Where translations are good, and whether confidence says so."""

import numpy as np
import pytest
import sacrebleu

from keras_transformer.analysis import plots

pytest.importorskip("matplotlib")


def test_bleu_of_each_length(drawn):
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
    with pytest.raises(ValueError, match=r"of the same length, .*got \(1, 2, 1\)"):
        plots.bleu_by_length(["a"], ["a", "b"], ["a"])


def test_lengths_of_chinese_are_characters(drawn):
    texts = ["他看见狗。", "她看见猫。", "老人在公园里看见了狗。", "老人在公园里看见了猫。"]
    figure = plots.bleu_by_length(texts, texts, texts, bins=2)
    assert [bar.get_height() for bar in figure.axes[0].patches] == pytest.approx([100, 100])
    labels = drawn(figure)
    assert "5\n2 texts" in labels and "11\n2 texts" in labels
    assert figure.axes[0].get_xlabel() == "characters of the source"


def test_calibration_by_hand(drawn):
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
    with pytest.raises(ValueError, match="of the same length"):
        plots.reliability([], [])
