"""Preferences as a model sees them: token ids, and log-probabilities of the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_transformer.data.preferences import PreferenceBatches
from keras_transformer.language.reply import common
from keras_transformer.losses import log_probabilities
from keras_transformer.running.runner import Runner
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer import checked_texts


def encoded_answers(
    tokenizer: Any, config: Any, prompts: Sequence[str], *answers: Sequence[str]
) -> list[list[list[int]]]:
    """Return the token ids of prompts, and of answers to them with their EOS.

    A language model reads an answer as it continues the prompt: the ids of prompt and answer
    together. If tokens merge where they meet, the merged ones belong to the answers.

    Args:
        tokenizer: The model's tokenizer: a `TextTokenizer`, or a translator's.
        config: The model's config.
        prompts: Prompts, or texts to translate.
        answers: Answers; one per prompt in each sequence.
    """
    prompts, sides = checked_texts(prompts, "prompts"), [checked_texts(x) for x in answers]
    if isinstance(tokenizer, TextTokenizer):
        wholes = [
            tokenizer.encode([x + y for x, y in zip(prompts, side, strict=True)]) for side in sides
        ]
        begun, end = tokenizer.encode(prompts), config.eos_ids[0]
        for i, ids in enumerate(begun):
            begun[i] = ids[: min(common(ids, whole[i]) for whole in wholes)]
        rest = [
            [[*ids[len(first) :], end] for first, ids in zip(begun, whole, strict=True)]
            for whole in wholes
        ]
        return [[ids or [config.bos_id] for ids in begun], *rest]
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
