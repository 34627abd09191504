"""Quality without references: the curve by hand, the file, and what of it is refused."""

import copy
import itertools
import json
import warnings

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translate.quality_estimation import (
    QUALITY,
    QualityEstimator,
    confidences,
    correlation,
    isotonic,
    sentence_chrf,
)
from keras_transformer.translate.translator import Translator

WORDS = ("one", "two", "three", "four", "five")
SOURCES = [" ".join(x) for x in itertools.product(WORDS, repeat=3)]  # 125
SHORT = dict(max_extra_length=4)


@pytest.fixture(scope="module")
def translator(tiny_transformer):
    tokenizer = SentencePieceTokenizer.train(SOURCES, SOURCES, vocab_size=32, byte_fallback=False)
    size = tokenizer.source_vocab_size
    model = tiny_transformer(source_vocab_size=size, target_vocab_size=size)
    return Translator(model, tokenizer, "en", "de")


@pytest.fixture(scope="module")
def translations(translator):
    return translator.translate(SOURCES, **SHORT)


@pytest.fixture(scope="module")
def fitted(translator, translations):
    return QualityEstimator.fit(translator, SOURCES, translations, SOURCES, **SHORT)


@pytest.fixture
def folder(translator, fitted, tmp_path):
    translator.save(tmp_path / "saved")
    fitted.save(tmp_path / "saved")
    return tmp_path / "saved"


def test_isotonic_by_hand():
    x, y = isotonic(np.array([4.0, 1, 2, 3]), np.array([7.0, 1, 5, 3]), pool=1)
    np.testing.assert_allclose(x, [1, 2.5, 4])  # 5 and 3 violate the order: their mean is 4
    np.testing.assert_allclose(y, [1, 4, 7])
    x, y = isotonic(np.array([1.0, 2, 3]), np.array([3.0, 2, 1]), pool=1)
    np.testing.assert_allclose([x, y], [[2], [2]])
    x, y = isotonic(np.array([2.0, 2, 1, 1]), np.array([1.0, 0, 0, 0]), pool=1)
    np.testing.assert_allclose([x, y], [[1, 2], [0, 0.5]])  # one point for equal x
    x, y = isotonic(np.arange(4.0), np.array([0.0, 1, 2, 3]), pool=2)
    np.testing.assert_allclose([x, y], [[0.5, 2.5]] * 2)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(-9, 0), st.integers(0, 9)), min_size=1, max_size=20))
def test_isotonic_keeps_order_and_mean(pairs):
    x, y = np.array(pairs, float).T
    corners, values = isotonic(x, y, pool=1)
    assert (np.diff(corners) > 0).all() and (np.diff(values) > 0).all()
    assert y.min() - 1e-9 <= values[0] and values[-1] <= y.max() + 1e-9
    assert x.min() <= corners[0] and corners[-1] <= x.max()


def test_correlation_by_hand():
    found = correlation(np.array([1.0, 2, 3, np.nan]), np.array([1.0, 4, 9, 0]))
    assert found["spearman"] == pytest.approx(1)
    assert found["pearson"] == pytest.approx(8 / np.sqrt(2 * 98 / 3))
    tied = correlation(np.array([1.0, 1, 2]), np.array([3.0, 2, 1]))
    assert tied["spearman"] == pytest.approx(-1.5 / np.sqrt(1.5 * 2))  # ranks 1.5, 1.5, 3
    assert np.isnan(correlation(np.ones(3), np.arange(3.0))["pearson"])


def test_confidence_is_the_mean_over_tokens(translator):
    texts = ["two one", ""]
    found = confidences(translator, ["one two", "two"], texts)
    counts = [len(ids) for ids in translator.tokenizer.encode_target(texts)]
    scores = translator.score(["one two", "two"], texts)
    np.testing.assert_allclose(found, np.array(scores) / counts, rtol=1e-5)
    odd = confidences(translator, [" ", "one " * 50, "one"], ["", "two", "one " * 50])
    assert np.isnan(odd).all()
    with pytest.raises(ValueError, match="must have the same length, got 1 and 2"):
        confidences(translator, ["one"], texts)


def test_chrf_of_each_sentence():
    found = sentence_chrf(["ein Hund", "x"], ["ein Hut", "x"])
    assert found[0] == sacrebleu.CHRF().sentence_score("ein Hund", ["ein Hut"]).score / 100
    assert found[1] == 1
    with pytest.raises(ValueError, match="references must be 1 texts, one per translation"):
        sentence_chrf(["a"], [])


@pytest.mark.once("confidences are computed under each in tests/running/test_scoring.py")
def test_estimates_are_what_pairs_of_that_confidence_had(translator, translations, fitted):
    found = fitted.estimate(translator, SOURCES, translations)
    chrf = sentence_chrf(translations, SOURCES)
    assert ((found >= 0) & (found <= 1)).all()
    assert found.mean() == pytest.approx(chrf.mean(), abs=0.05)
    order = np.argsort(confidences(translator, SOURCES, translations))
    assert (np.diff(found[order]) >= 0).all()
    assert np.isnan(fitted.estimate(translator, [" "], [""])).all()
    assert fitted.sentences == len(SOURCES)


@pytest.mark.once("made of parts that are tested under each backend")
def test_too_few_pairs(translator, translations):
    few = [x[:99] for x in (SOURCES, translations, SOURCES)]
    with pytest.raises(ValueError, match="pairs must be at least 100 .*got 99"):
        QualityEstimator.fit(translator, *few)
    blank = ["", *SOURCES[:99]]
    with pytest.raises(ValueError, match="got 99"):
        QualityEstimator.fit(translator, blank, translations[:100], SOURCES[:100])
    with pytest.raises(TypeError, match="beam is not an option"):
        QualityEstimator.fit(translator, *few, beam=2)


@pytest.mark.once("made of parts that are tested under each backend")
def test_from_the_folder(translator, translations, fitted, folder):
    found = QualityEstimator.read(folder, **SHORT)
    estimates = (x.estimate(translator, SOURCES[:3], translations[:3]) for x in (found, fitted))
    np.testing.assert_allclose(*estimates)
    with pytest.warns(UserWarning, match=r"quality.json is of another search \(beam_size\)"):
        assert QualityEstimator.read(folder, beam_size=2, **SHORT) is None
    translator.save(folder)  # perhaps another model
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert QualityEstimator.read(folder, **SHORT) is None


@pytest.mark.once("files: no tensor is read")
def test_a_calibration_of_another_model(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"source_language": "fr"}))
    with pytest.raises(ValueError, match=r"quality\.json is of another model: run"):
        QualityEstimator.read(folder, **SHORT)


@pytest.mark.once("files: no tensor is read")
@pytest.mark.parametrize(
    "change, message",
    [
        ("{", "is not valid JSON"),
        ("[]", "is not a calibration"),
        ({"confidences": [2, 1]}, "confidences must be increasing"),
        ({"confidences": []}, "confidences must be one or more numbers"),
        ({"qualities": [0.5, float("nan")]}, "qualities must be one or more numbers"),
        ({"qualities": [0.5]}, "qualities must be one for each"),
        ({"qualities": [0.5, 1.5]}, r"qualities must be not decreasing, in \[0, 1\]"),
        ({"sentences": "many"}, "sentences must be a whole number"),
        ({"search": {"beam": 1}}, "search: beam is not an option"),
        ({"search": {"beam_size": 0}}, "beam_size must be"),
        ({"languages": ["en"]}, "languages must be two language codes"),
        ({"further": 1}, "unknown config fields"),
    ],
    ids=str,
)
def test_a_damaged_file(change, message, fitted, folder):
    values = {**fitted.to_dict(), "confidences": [-2.0, -1.0], "qualities": [0.1, 0.9]}
    text = change if isinstance(change, str) else json.dumps(values | change)
    (folder / QUALITY).write_text(text)
    with pytest.raises(ValueError, match=rf"quality\.json.*{message}"):
        QualityEstimator.read(folder, **SHORT)


def test_other_languages(translator, fitted):
    other = copy.copy(translator)
    other.target_language = "fr"
    assert fitted.suits(translator) and not fitted.suits(other)
    with pytest.raises(ValueError, match="translator must be of the calibrated languages"):
        fitted.estimate(other, ["one"], ["two"])


@pytest.mark.once("files: no tensor is read")
def test_only_a_saved_translator_has_a_calibration(fitted, tmp_path):
    with pytest.raises(ValueError, match="is not a saved translator"):
        fitted.save(tmp_path)
    assert list(tmp_path.iterdir()) == []
