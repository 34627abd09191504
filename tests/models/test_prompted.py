"""A language model as a model from prompts to translations."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.models import Ensemble, Prompted
from tests.tiny import tiny

PROMPTS = np.array([[3, 4, 5, 6, 7], [8, 9, -1, -1, -1], [-1] * 5], "int32")
TARGETS = np.array([[-1, 3, 4], [-1, 5, -1], [-1, -1, -1]], "int32")  # the first stands for BOS


@pytest.fixture(scope="module")
def prompted():
    return Prompted(tiny("llama", 2, max_length=20), (2,))


def logits_of(model, prompt, target):
    ids = [*prompt, *target[1:]]
    logits = model({"token_ids": np.array([ids], "int32")})
    return ops.convert_to_numpy(logits)[0, len(prompt) - 1 :]


@pytest.mark.once("language models search and score under each in tests/language")
def test_logits_are_those_of_prompt_and_target_alone(prompted):
    batch = ops.convert_to_numpy(prompted({"source_ids": PROMPTS, "target_ids": TARGETS}))
    assert batch.shape == (3, 3, 24)
    first = logits_of(prompted.model, [3, 4, 5, 6, 7], [-1, 3, 4])
    second = logits_of(prompted.model, [8, 9], [-1, 5])
    np.testing.assert_allclose(batch[0], first, atol=1e-5)
    np.testing.assert_allclose(batch[1, :2], second, atol=1e-5)


@pytest.mark.once("language models search and score under each in tests/language")
def test_prefill_and_steps_give_the_logits_of_a_full_pass(prompted):
    full = ops.convert_to_numpy(prompted({"source_ids": PROMPTS, "target_ids": TARGETS}))
    logits, state, step = prompted.prefill(PROMPTS, first_ids=None, length=4)
    position = prompted.first_position(PROMPTS.shape[1])
    np.testing.assert_allclose(ops.convert_to_numpy(logits)[:2], full[:2, 0], atol=1e-5)
    logits, state = step(ops.convert_to_tensor(TARGETS[:, 1:2]), state, position)
    np.testing.assert_allclose(ops.convert_to_numpy(logits)[:2, 0], full[:2, 1], atol=1e-5)


@pytest.mark.once("attributes: no tensor differs")
def test_it_looks_like_an_encoder_decoder(prompted):
    config = prompted.config
    assert config.eos_ids == (2,) and config.max_length == 10
    assert config.source_vocab_size == config.target_vocab_size == 24
    assert prompted.count_params() == prompted.model.count_params()
    assert prompted.target_length(7) == prompted.first_position(7) == 7
    both = Ensemble([prompted, prompted])
    assert both.first_position(7) == 7 and len(both.variables) == 2 * len(prompted.variables)
