"""Rows of caches: read in chunks, copied, exchanged, grown; a step predicts what the model does."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.language import slot_caches
from keras_transformer.language.slot_caches import SlotCaches
from keras_transformer.models import LLaMA, LLaMAConfig

V = 29
SIZES = dict(d_model=8, d_ff=12, num_layers=2, num_heads=4, max_length=64, dropout=0.0)
IDS = np.random.default_rng(0).integers(3, V, (2, 40)).tolist()


@pytest.fixture(scope="module")
def model(randomize):
    return randomize(LLaMA(LLaMAConfig(V, **SIZES, num_kv_heads=2, window=7)), scale=2.0)


@pytest.fixture(scope="module")
def expected(model):
    """log p of each next token."""
    logits = ops.convert_to_numpy(model({"token_ids": np.array(IDS, "int32")}))
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def check(found, expected, places):
    """The most probable token of row r follows `places[r]`: (text, number of its tokens)."""
    tokens, log_probs, values, ids = found
    for row, (text, length) in enumerate(places):
        wanted = expected[text, length - 1]
        assert tokens[row] == wanted.argmax() == ids[row, 0]
        np.testing.assert_allclose(log_probs[row], wanted.max(), atol=1e-4)
        np.testing.assert_allclose(values[row], np.sort(wanted)[::-1][:20], atol=1e-4)


def test_rows_of_two_texts(model, expected, monkeypatch):
    monkeypatch.setattr(slot_caches, "FIRST_PLACES", 16)  # so that they grow
    caches = SlotCaches(model, rows=3, length=64, chunk=16)
    one, other = IDS
    caches.read(0, one[:9], 0)
    caches.read(2, other[:5], 0)
    caches.read(0, one[9:20], 9)
    caches.swap(1, 2, 5)
    found = caches.step([one[20], other[5]], [20, 5, 0], {}, top=True)
    check(found, expected, [(0, 21), (1, 6)])
    caches.copy(0, 2, 12)  # another text that begins like the first
    caches.read(2, one[12:30], 12)
    found = caches.step([one[21], other[6], one[30]], [21, 6, 30], {}, top=True)
    check(found, expected, [(0, 22), (1, 7), (0, 31)])
    caches.swap(0, 1, 22)
    found = caches.step([other[7]], [7, 22, 31], {}, top=True)  # of the first row alone
    check(found, expected, [(1, 8)])


def test_without_the_most_probable_tokens(model):
    caches = SlotCaches(model, rows=1, length=64, chunk=16)
    assert len(caches.step([4], [0], {})) == 2
