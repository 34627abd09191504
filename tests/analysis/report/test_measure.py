"""The facts of a report: scores by other ways, and what cannot be scored."""

import math

import numpy as np
import pytest
import sacrebleu

from keras_transformer.analysis.alignment import attention, between_words
from keras_transformer.analysis.report import measure
from keras_transformer.evaluation.assess import assess
from keras_transformer.search import TRANSLATE, Search
from keras_transformer.translate.quality_estimation import QualityEstimator

from .conftest import PAIRS, SHORT


@pytest.mark.once("numbers of the report alone")
@pytest.mark.filterwarnings("ignore:.*it is cut")
def test_the_table_is_that_of_evaluate(translator, report):
    expected = assess(translator, PAIRS, **SHORT)
    assert report.metrics.keys() == expected.keys()
    for name in ("bleu", "chrf", "ter", "exact_match", "sentences", "perplexity", "beam_size"):
        assert report.metrics[name] == pytest.approx(expected[name]), name
    assert report.intervals.keys() == {"bleu", "chrf"}


@pytest.mark.once("numbers of methods that other tests compute under each")
def test_sentences_and_the_worst_of_them(translator, report, baseline):
    assert [(x.source, x.reference) for x in report.sentences] == PAIRS
    assert [x.number for x in report.sentences] == [1, 2, 3, 4, 5]
    one = report.sentences[0]
    assert one.chrf == pytest.approx(
        sacrebleu.CHRF().sentence_score(one.translation, [one.reference]).score
    )
    count = len(translator.tokenizer.encode_target([one.translation])[0])
    (total,) = translator.score([one.source], [one.translation])
    assert one.confidence == pytest.approx(total / count, rel=1e-4)
    assert [math.isnan(x.confidence) for x in report.sentences] == [False, False, True, True, False]
    assert [x.baseline for x in report.sentences] == baseline
    scores = [x.chrf for x in report.sentences]
    assert [x.chrf for x in report.worst] == sorted(scores)[:4]
    for shown in report.worst:
        plain = report.sentences[shown.number - 1]
        assert (shown.picture is None) == (math.isnan(plain.confidence) or not plain.translation)


@pytest.mark.once("made of parts that are tested under each backend")
def test_the_picture_is_the_attention_between_words(translator, report):
    shown = next(x for x in report.worst if x.picture)
    queries, keys, weights = shown.picture
    found = attention(translator, shown.source, shown.translation)
    assert (queries, keys) == between_words(found)[:2]
    expected = between_words(found)[2]
    np.testing.assert_allclose(weights, expected[-1].mean(axis=0), atol=1e-5)  # of two layers


@pytest.mark.once("made of parts that are tested under each backend")
def test_parts_and_comparison(report):
    assert sum(part.sentences for part in report.parts) == len(PAIRS)
    ends = [x for part in report.parts for x in (part.least, part.most)]
    assert ends == sorted(ends) and ends[0] == 0 and ends[-1] == 50
    assert report.compared["this system"]["BLEU"].score == pytest.approx(report.metrics["bleu"])
    assert report.correlation is None and report.sentences[0].quality is None


@pytest.mark.once("numbers of the report alone")
def test_estimated_quality(translator):
    options = {name: getattr(Search(), name) for name in TRANSLATE}
    estimator = QualityEstimator((-20.0, 0.0), (0.0, 1.0), 100, "", options, ("en", "de"))
    report = measure(translator, PAIRS[:1] * 2, estimator=estimator, **SHORT)
    (one, _), (shown, _) = report.sentences, report.worst
    assert one.quality == shown.quality == pytest.approx(1 + one.confidence / 20)
    assert report.correlation.keys() == {"pearson", "spearman"} and report.compared is None


@pytest.mark.once("errors before any computation")
def test_bad_input(translator):
    for options, message in (
        ({"worst": -1}, "worst must be a whole number"),
        ({"baseline": ["x"]}, "baseline must be 5 texts, one per source, got '1 texts'"),
        ({"beam_size": 0}, "beam_size must be"),
    ):
        with pytest.raises(ValueError, match=message):
            measure(translator, PAIRS, **options)
    with pytest.raises(ValueError, match="must not be empty"):
        measure(translator, [])
