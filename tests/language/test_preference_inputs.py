"""The reference's log-probabilities are those that `score` gives."""

import keras
import numpy as np
import pytest

from keras_transformer.data.preferences import PreferenceBatches
from keras_transformer.language.preference_inputs import (
    encoded_answers,
    reference_log_probabilities,
)
from keras_transformer.models import GPT, GPTConfig
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.pretrained_files import llama_tokenizer
from tests.small_translator import TEXTS

SIZES = dict(tokens_per_batch=256, max_length=32)


def test_of_a_translator(translator):
    texts, config = TEXTS[:3], translator.model.config
    sides = [texts[::-1], texts]
    ids = encoded_answers(translator.tokenizer, config, texts, *sides)
    batches = PreferenceBatches(*ids, bos_id=config.bos_id, pad_id=config.pad_id, **SIZES)
    found = reference_log_probabilities(translator.model, batches)
    expected = np.stack([translator.score(texts, side) for side in sides], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.once("made of parts that are tested under each backend")
def test_of_a_language_model(randomize):
    tokenizer = TextTokenizer.train(TEXTS, kind="bytes", vocab_size=280)
    sizes = dict(d_model=16, num_layers=1, num_heads=2, dropout=0.0, max_length=32, eos_id=5)
    model = randomize(GPT(GPTConfig(tokenizer.vocab_size, **sizes)))
    prompts, chosen, rejected = ["one two", ""], ["three", "four five"], ["six", "two"]
    ids = encoded_answers(tokenizer, model.config, prompts, chosen, rejected)
    assert ids[0][1] == [model.config.bos_id] and all(x[-1] == 5 for side in ids[1:] for x in side)
    found = reference_log_probabilities(model, PreferenceBatches(*ids, **SIZES))
    for pair, (prompt, *answers) in enumerate(zip(*ids, strict=True)):
        for side, answer in enumerate(answers):
            whole = np.array([prompt + answer], "int32")
            logits = keras.ops.convert_to_numpy(model({"token_ids": whole}))[0].astype("float64")
            log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
            places = np.arange(len(prompt) - 1, whole.shape[1] - 1)
            expected = log_probs[places, answer].sum()
            np.testing.assert_allclose(found[pair, side], expected, rtol=1e-4)


@pytest.mark.once("token ids: no tensor")
@pytest.mark.parametrize("style", ["llama", "metaspace", "gemma"])
def test_an_answer_is_encoded_after_its_prompt(style):
    tokenizer = llama_tokenizer(TEXTS, style)
    config = GPTConfig(tokenizer.vocab_size, d_model=8, num_layers=1, num_heads=2, eos_id=2)
    prompts, chosen, rejected = ["one two", "four "], [" three", "five"], [" six", "two"]
    begun, *sides = encoded_answers(tokenizer, config, prompts, chosen, rejected)
    for answers, texts in zip(sides, (chosen, rejected), strict=True):
        whole = tokenizer.encode([x + y for x, y in zip(prompts, texts, strict=True)])
        found = [x + y for x, y in zip(begun, answers, strict=True)]
        assert found == [[*ids, 2] for ids in whole]
        assert all(1 not in ids for ids in answers)  # no second BOS
