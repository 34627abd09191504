"""Reranking of n-best lists: sums by hand, the models' own scores, weights for a test set."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import sacrebleu

from keras_transformer import CausalLM, ensemble
from keras_transformer.analysis.alignment import attention
from keras_transformer.models import GPT, GPTConfig
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.translate.engines.engine import Hypothesis
from keras_transformer.translate.reranking import Reranker, tune_weights
from keras_transformer.translate.translator import Translator
from tests.small_translator import SHORT, TEXTS, made_tokenizer, make
from tests.tasks.small_metric import small_metric


@pytest.fixture(scope="module")
def small():
    return make(made_tokenizer())


@pytest.fixture(scope="module")
def back(small):
    return Translator(make(small.tokenizer, seed=6).model, small.tokenizer, "xx", "en")


@pytest.fixture(scope="module")
def writer():
    text = TextTokenizer.train(TEXTS, "bytes", 270)
    sizes = dict(d_model=16, d_ff=16, num_layers=1, num_heads=2, max_length=128)
    return CausalLM(GPT(GPTConfig(270, **sizes)), text)


def of_tables(forward, lists=(), languages=("en", "de")):
    """A translator whose scores and n-best lists are given; a word is a token."""

    def nbest(texts, beam_size, num_hypotheses, tokens_per_batch, strict):
        assert beam_size == num_hypotheses
        return [[Hypothesis(x, 0.0) for x in lists[text][:beam_size]] for text in texts]

    return SimpleNamespace(
        source_language=languages[0],
        target_language=languages[1],
        score=lambda sources, targets, tokens_per_batch: [
            forward[pair] for pair in zip(sources, targets, strict=True)
        ],
        nbest=nbest,
        tokenizer=SimpleNamespace(encode_target=lambda texts: [[*x.split(), 1] for x in texts]),
    )


LISTS = {"s": ["a", "a b", "a b c"], "t": ["d", "e d"]}
FORWARD = {("s", "a"): -1.0, ("s", "a b"): -2.0, ("s", "a b c"): -4.0}
FORWARD |= {("t", "d"): -1.0, ("t", "e d"): -1.5}
BACKWARD = {("a", "s"): -9.0, ("a b", "s"): -3.0, ("a b c", "s"): -2.0}
BACKWARD |= {("d", "t"): -1.0, ("e d", "t"): -2.0}


def tables(**weights):
    reverse = of_tables(BACKWARD, languages=("de", "en")) if "reverse" in weights else None
    return Reranker(of_tables(FORWARD, LISTS), weights, reverse=reverse)


@pytest.mark.once("scores have their own tests")
def test_a_learned_metric_is_a_feature():
    translator, metric = of_tables(FORWARD, LISTS), small_metric("kiwi")
    reranker = Reranker(translator, {"metric": 2}, metric=metric)
    row = reranker.rank(["s"], [LISTS["s"]])[0]
    scores = dict(zip(LISTS["s"], metric.score(["s"] * 3, LISTS["s"]), strict=True))
    for x in row:
        assert x.score == pytest.approx(FORWARD["s", x.text] + 2 * scores[x.text])
    with pytest.raises(ValueError, match="metric must be one that needs no reference"):
        Reranker(translator, {"metric": 2}, metric=small_metric("regression"))
    with pytest.raises(ValueError, match="metric must have a model and a weight, got no model"):
        Reranker(translator, {"metric": 2})


@pytest.mark.once("texts and NumPy: no tensor is read")
def test_sums_by_hand():
    (row, other) = tables(reverse=0.5, length=0.25).rank(["s", "t"], list(LISTS.values()))
    # -1 - 4.5 + 0.5, -2 - 1.5 + 0.75, -4 - 1 + 1
    assert row == [Hypothesis("a b", -2.75), Hypothesis("a b c", -4.0), Hypothesis("a", -5.0)]
    assert other[0] == Hypothesis("d", -1.0)
    assert tables(length=0).translate(["s", "t"], 3) == ["a", "d"]
    assert tables(length=0, forward=-1).translate(["s", "t"], 2) == ["a b", "e d"]
    assert tables(reverse=0).translate([], 2) == []


@pytest.mark.once("texts and NumPy: no tensor is read")
def test_weights_for_a_test_set():
    sources, references = ["s", "t"], ["a b c d e", "f g h i j"]
    lists = {"s": ["k a b c", "a b c d e"], "t": ["f g h i j", "f k"]}
    forward = {("s", "k a b c"): -1.0, ("s", "a b c d e"): -2.0}
    forward |= {("t", "f g h i j"): -1.0, ("t", "f k"): -0.5}
    start = Reranker(of_tables(forward, lists), dict(length=0))
    found = tune_weights(start, sources, references, 3)
    assert found.reranker.translate(sources, 3) == references
    assert found.reranker.weights.keys() == start.weights.keys()
    assert found.reranker.weights["forward"] == 1 < found.reranker.weights["length"]
    assert start.translate(sources, 3) == ["k a b c", "f k"]
    for bleu, texts in ((found.bleu, references), (found.bleu_before, ["k a b c", "f k"])):
        assert bleu == pytest.approx(sacrebleu.corpus_bleu(texts, [references]).score)
    # Nothing gets better: the weights stay.
    assert tune_weights(found.reranker, sources, references, 3).reranker == found.reranker


@pytest.mark.once("scores are computed under each in tests/running")
def test_features_are_the_scores_of_the_models(small, back, writer):
    weights = dict(reverse=1, language_model=1, coverage=1, length=1)
    reranker = Reranker(small, weights, reverse=back, language_model=writer)
    targets = ["two three", "one", "ten nine", "two", "five", "six six", "one one one", "ten"]
    found = reranker.features(TEXTS, targets)
    assert list(found) == ["forward", *weights]
    lines = [f"\n{x}\n" for x in targets]
    for name, expected in dict(
        forward=small.score(TEXTS, targets),
        reverse=back.score(targets, TEXTS),
        language_model=writer.score(lines),
        length=[len(x) for x in small.tokenizer.encode_target(targets)],
    ).items():
        np.testing.assert_allclose(found[name], expected, atol=1e-3)
    for i, pair in enumerate(zip(TEXTS, targets, strict=True)):
        weights_TS = attention(small, *pair).cross[-1].mean(axis=0)[:, :-1]  # without EOS
        expected = np.log(np.minimum(weights_TS.sum(axis=0), 1)).sum()
        assert found["coverage"][i] == pytest.approx(expected, abs=1e-3)
    alone = reranker.features(TEXTS, targets, tokens_per_batch=1)
    for name, values in found.items():
        np.testing.assert_allclose(alone[name], values, atol=1e-3)


@pytest.mark.once("texts: what scores them has its own tests")
def test_the_best_by_several_models(small, back):
    lists = [[x.text for x in row] for row in small.nbest(TEXTS, beam_size=4, **SHORT)]
    reranker = Reranker(small, dict(reverse=2.0, coverage=0.2), reverse=back)
    ranked = reranker.rank(TEXTS, lists)
    found = reranker.translate(TEXTS, 4, **SHORT)
    assert found == [row[0].text for row in ranked] != small.translate(TEXTS, **SHORT)
    for row, texts in zip(ranked, lists, strict=True):
        assert sorted(x.text for x in row) == sorted(texts)
        assert all(a.score >= b.score for a, b in itertools.pairwise(row))
    assert reranker.translate(["", TEXTS[1]], 4, **SHORT) == ["", found[1]]


@pytest.mark.once("errors before any computation")
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({}, "weights must be some of .*'reverse'.*, got {}"),
        (dict(forward=2), "weights must be some of"),
        (dict(beauty=1), "weights must be some of .*, got {'beauty': 1}"),
        ([("length", 1)], "weights must be some of"),
        (dict(length="1"), "the weight of length must be a finite number, got '1'"),
        (dict(length=True), "the weight of length must be a finite number, got True"),
        (dict(length=float("nan")), "the weight of length must be a finite number, got nan"),
        (dict(coverage=float("inf")), "the weight of coverage must be a finite number, got inf"),
        (dict(reverse=1), "reverse must have a model and a weight, got no model"),
        (dict(language_model=1), "language_model must have a model and a weight, got no model"),
    ],
)
def test_bad_weights(weights, message, small):
    with pytest.raises(ValueError, match=message):
        Reranker(small, weights)


@pytest.mark.once("errors before any computation")
def test_bad_input(small, back, writer):
    with pytest.raises(ValueError, match="reverse must have a model and a weight, got no weight"):
        Reranker(small, dict(length=1), reverse=back)
    with pytest.raises(ValueError, match="language_model must have .*, got no weight"):
        Reranker(small, dict(length=1), language_model=writer)
    with pytest.raises(
        ValueError, match="reverse must be a translator from xx to en, got .en to xx"
    ):
        Reranker(small, dict(reverse=1), reverse=small)
    unknown = Translator(back.model, back.tokenizer)
    Reranker(small, dict(reverse=1), reverse=unknown)  # languages that are not known fit
    reranker = Reranker(small, dict(length=1))
    with pytest.raises(ValueError, match="count must be a whole number of at least 2, got 1"):
        reranker.translate(TEXTS, 1)
    with pytest.raises(TypeError, match="beams is not an option here"):
        reranker.translate(TEXTS, 2, beams=3)
    with pytest.raises(ValueError, match="must have the same length, got 8 and 1"):
        reranker.rank(TEXTS, [["one"]])
    with pytest.raises(ValueError, match="must have the same length, got 1 and 2"):
        reranker.features(["one"], ["one", "two"])
    with pytest.raises(ValueError, match="targets must have at most 40 tokens each"):
        reranker.features(["one"], ["one " * 60])
    with pytest.raises(ValueError, match="sources must be one or more texts"):
        tune_weights(reranker, [], [], 2)
    with pytest.raises(ValueError, match="must have the same length, got 8 and 1"):
        tune_weights(reranker, TEXTS, ["one"], 2)
    both = Reranker(ensemble([small, small]), dict(coverage=1))
    with pytest.raises(ValueError, match="translator must be a saved translator with one model"):
        both.features(["one"], ["two"])
