"""Measuring a translator: the numbers by hand, and the file that collects them."""

import builtins
import json
import math

import pytest

from keras_transformer.evaluation.assess import (
    assess,
    measured,
    perplexity,
    read_metrics,
    save_metrics,
)
from keras_transformer.evaluation.scores import evaluate, rouge
from keras_transformer.search import Search
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translate.translator import Translator

PAIRS = [("one two", "three"), ("two", "two two one"), ("three", "")]
SHORT = dict(max_extra_length=4)


@pytest.fixture(scope="module")
def translator(tiny_transformer):
    texts = ["one two three", "three two one", "two"]
    tokenizer = SentencePieceTokenizer.train(texts, texts, vocab_size=24, byte_fallback=False)
    size = tokenizer.source_vocab_size
    model = tiny_transformer(source_vocab_size=size, target_vocab_size=size)
    return Translator(model, tokenizer, "en", "de")


def test_assesses_the_translations_of_the_search_asked_for(translator):
    pytest.importorskip("sacremoses")
    sources, references = zip(*PAIRS, strict=True)
    options = dict(beam_size=2, length_penalty=0.0, **SHORT)
    metrics = assess(translator, PAIRS, published_language="de", lowercase=True, **options)
    hypotheses = translator.translate(sources, **options)
    expected = evaluate(hypotheses, references, lowercase=True)
    assert {name: metrics[name] for name in expected} == expected
    assert metrics["beam_size"] == 2 and metrics["length_penalty"] == 0
    assert metrics["perplexity"] == perplexity(translator, PAIRS)
    num_tokens = sum(map(len, translator.tokenizer.encode_target(hypotheses)))
    assert metrics["tokens_per_second"] == pytest.approx(num_tokens / metrics["seconds"])
    assert 0 <= metrics["published_bleu"] <= 100
    assert "tok:none" in metrics["published_bleu_signature"]
    json.dumps(metrics, allow_nan=False)


def test_pairs_of_empty_texts_do_not_count(translator):
    pairs = [PAIRS[0], ("", ""), PAIRS[1], (" ", "")]
    metrics = assess(translator, pairs, **SHORT)
    assert metrics["sentences"] == 2
    assert metrics["bleu"] == assess(translator, PAIRS[:2], **SHORT)["bleu"]


def test_assesses_with_context(translator, monkeypatch):
    asked = []

    def fixed(translator, texts, context_sentences, **options):
        asked.append((list(texts), context_sentences, options))
        return ["three", "", "two two one"]

    monkeypatch.setattr("keras_transformer.evaluation.assess.translate_documents", fixed)
    pairs = [PAIRS[0], ("", ""), PAIRS[1]]
    metrics = assess(translator, pairs, context_sentences=2, **SHORT)
    assert metrics["exact_match"] == 100 and metrics["sentences"] == 2
    assert asked == [(["one two", "", "two"], 2, {**SHORT, "tokens_per_batch": 4096})]


def test_assesses_summaries(translator):
    pytest.importorskip("rouge_score")
    metrics = assess(translator, PAIRS, summaries=True, **SHORT)
    hypotheses = translator.translate([source for source, _ in PAIRS], **SHORT)
    expected = rouge(hypotheses, [target for _, target in PAIRS])
    assert {name: metrics[name] for name in expected} == expected


def test_perplexity_is_that_of_the_tokens_and_their_ends(translator):
    sources, targets = zip(*PAIRS, strict=True)
    num_tokens = sum(map(len, translator.tokenizer.encode_target(targets)))
    expected = math.exp(-sum(translator.score(sources, targets)) / num_tokens)
    assert perplexity(translator, PAIRS) == pytest.approx(expected)
    assert expected > 1
    # Pairs that the model cannot take do not count.
    too_long = [("one " * 50, "two"), ("two", "one " * 50)]
    assert perplexity(translator, [*too_long, *PAIRS]) == pytest.approx(expected)
    assert perplexity(translator, too_long) is None


def test_no_pairs_are_refused(translator):
    with pytest.raises(ValueError, match="must not be empty"):
        assess(translator, [])


def test_a_missing_extra_is_said_before_the_work(translator, monkeypatch):
    real = builtins.__import__

    def without(name, *arguments):
        if name == "sacremoses":
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr(translator, "translate", None)
    with pytest.raises(ImportError, match='pip install "sacremoses>='):
        assess(translator, PAIRS, published_language="de")


def test_metrics_of_other_test_sets_stay(tmp_path):
    folder = tmp_path / "new"
    assert read_metrics(folder) == {}
    save_metrics(folder, "one", {"bleu": 1.0, "chrf": 2.0})
    save_metrics(folder, "two", {"bleu": 3.0})
    save_metrics(folder, "one", {"bleu": 4.0})
    assert read_metrics(folder) == {"one": {"bleu": 4.0}, "two": {"bleu": 3.0}}


@pytest.mark.parametrize("content", ["{", "[1]"])
def test_a_broken_file_of_metrics_is_kept(tmp_path, content):
    (tmp_path / "metrics.json").write_text(content)
    with pytest.raises(ValueError, match=r"metrics\.json"):
        save_metrics(tmp_path, "one", {})
    assert (tmp_path / "metrics.json").read_text() == content


def test_a_translation_too_many(translator):
    with pytest.raises(ValueError, match="must have the same length, got 3 and 4"):
        measured(translator, PAIRS, ["a"] * 4, Search(), 1.0)
