"""Scores of given translations: sums of log-probabilities, and those of the search."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import compiled
from keras_transformer.running.inputs import padded
from keras_transformer.running.runner import score_function
from keras_transformer.running.search_functions import translation_function
from keras_transformer.search import Search
from tests.small_translator import SHORT, TEXTS


@pytest.mark.once("made of parts that are tested under each backend")
def test_score_agrees_with_the_search(translator):
    search = compiled(
        translation_function(Search(4, 0.0, **SHORT), translator.model), translator.model
    )
    tokenizer = translator.tokenizer
    source = padded(tokenizer.encode_source(TEXTS), len(TEXTS), 16, 0)
    source = ops.convert_to_tensor(source)
    limits = ops.full((len(TEXTS),), 14, dtype="int32")
    ids, scores = search(source, limits)
    totals = score_function(translator.model)(source, ids[:, 0])
    ids, scores = ops.convert_to_numpy(ids), ops.convert_to_numpy(scores)
    np.testing.assert_allclose(ops.convert_to_numpy(totals), scores[:, 0], atol=1e-3)
    ids, scores = ids.reshape(-1, ids.shape[-1]), scores.reshape(-1)
    hypotheses = tokenizer.decode_target(ids)
    sources = [text for text in TEXTS for _ in range(4)]
    encoded = tokenizer.encode_target(hypotheses)
    same = 0
    for row, found in enumerate(translator.score(sources, hypotheses)):
        # Other pieces may spell the same text: then it is another sequence.
        if encoded[row] == ids[row][: len(encoded[row])].tolist():
            same += 1
            assert found == pytest.approx(scores[row], abs=1e-3)
    assert same >= 1


def test_score_is_the_sum_of_log_probabilities(translator):
    targets = ["two three", "", "one", "ten nine", "two", "five", "six six", "one one one"]
    config, tokenizer = translator.model.config, translator.tokenizer
    found = translator.score(TEXTS, targets)
    labels = padded(tokenizer.encode_target(targets), len(TEXTS), 16, 0)
    ids = {
        "source_ids": padded(tokenizer.encode_source(TEXTS), len(TEXTS), 16, 0),
        "target_ids": np.insert(labels[:, :-1], 0, config.bos_id, axis=1),
    }
    logits = ops.convert_to_numpy(translator.model(ids, training=False)).astype("float64")
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    for row, score in enumerate(found):
        tokens = [t for t in range(16) if labels[row, t] != config.pad_id]
        assert score == pytest.approx(
            sum(log_probs[row, t, labels[row, t]] for t in tokens), abs=1e-3
        )
    assert translator.score(TEXTS, targets, tokens_per_batch=20) == pytest.approx(found, abs=1e-4)
    with pytest.raises(ValueError, match="the same length, got 2 and 1"):
        translator.score(["one", "two"], ["one"])
