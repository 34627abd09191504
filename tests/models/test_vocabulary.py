"""Models with more tokens than they were trained with."""

import dataclasses

import keras
import numpy as np
import pytest

from keras_transformer.models import GPT, GPTConfig, LLaMA, LLaMAConfig
from keras_transformer.models.vocabulary import with_config
from tests.backends import cases

IDS = np.array([[3, 1, 4, 1, 5, 9, 2, 6]])


def model(family, randomize):
    sizes = dict(d_model=8, d_ff=12, num_layers=1, num_heads=2, max_length=16)
    if family == "gpt":
        return randomize(GPT(GPTConfig(11, dropout=0.1, **sizes)))
    return randomize(LLaMA(LLaMAConfig(11, tie_output=False, **sizes)))


def logits(model):
    return keras.ops.convert_to_numpy(model({"token_ids": IDS}))


@pytest.mark.parametrize("family", cases(["gpt", "llama"], "llama"))
def test_old_tokens_keep_their_logits(family, randomize):
    old = model(family, randomize)
    config = dataclasses.replace(old.config, vocab_size=14, dropout=0.0)
    new = with_config(old, config)
    assert new.config == config
    found = logits(new)
    np.testing.assert_allclose(found[..., :11], logits(old), atol=1e-5)
    # The logits of new tokens are near the mean of the others, and differ among them.
    mean = found[..., :11].mean(-1, keepdims=True)
    spread = found[..., :11].std(-1, keepdims=True)
    assert np.mean(np.abs(found[..., 11:] - mean) / spread) < 0.5
    assert not np.allclose(found[..., 11], found[..., 12], atol=1e-4)
    assert with_config(old, old.config, "bfloat16")._policy.name == "bfloat16"


def test_vocabularies_do_not_shrink(randomize):
    old = model("gpt", randomize)
    with pytest.raises(ValueError, match="vocab_size must be a whole number of at least 11, got 9"):
        with_config(old, dataclasses.replace(old.config, vocab_size=9))
