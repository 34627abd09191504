"""Preferences as a model sees them: token ids, and log-probabilities of the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_transformer.data.preferences import PreferenceBatches
from keras_transformer.inference.runner import Runner
from keras_transformer.losses import log_probabilities
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer import checked_texts


def encoded_answers(
    tokenizer: Any, config: Any, prompts: Sequence[str], *answers: Sequence[str]
) -> list[list[list[int]]]:
    """Return the token ids of prompts, and of answers to them with their EOS.

    Args:
        tokenizer: The model's tokenizer: a `TextTokenizer`, or a translator's.
        config: The model's config.
        prompts: Prompts, or texts to translate.
        answers: Answers; one per prompt in each sequence.
    """
    prompts, sides = checked_texts(prompts, "prompts"), [checked_texts(x) for x in answers]
    if isinstance(tokenizer, TextTokenizer):
        begun = [ids or [config.bos_id] for ids in tokenizer.encode(prompts)]
        end = config.eos_ids[0]
        return [begun, *([[*ids, end] for ids in tokenizer.encode(x)] for x in sides)]
    return [tokenizer.encode_source(prompts), *map(tokenizer.encode_target, sides)]


def reference_log_probabilities(model: keras.Model, batches: PreferenceBatches) -> np.ndarray:
    """Return log p of both answers of each pair: (N, 2) float32, for `batches.reference`.

    Args:
        model: The reference model, with logits over its vocabulary.
        batches: The pairs.
    """
    runner, found = Runner(), np.zeros((len(batches.reference), 2), np.float32)

    def score(inputs, y_true):
        return log_probabilities(y_true, model(inputs))[0]

    for step in range(len(batches)):
        inputs, y_true = batches.batch(step)
        (values,) = runner.arrays(model, "reference", lambda: score, [inputs, y_true])
        found[batches.pairs(step)] = values.reshape(-1, 2)
    return found
