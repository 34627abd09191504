"""Token ids of pairs of answers, and the log-probabilities that a reference model gives them."""

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
    """Return the token ids of prompts, and of answers to them with EOS.

    For a language model, prompt and answer are encoded as one text and then split. A token that
    spans the end of the prompt belongs to the answer.

    Args:
        tokenizer: The model's tokenizer: a `TextTokenizer`, or a translator's.
        config: The model's config.
        prompts: Prompts, or texts to translate.
        answers: One or more sequences of answers, each with one answer per prompt.

    Returns:
        The ids of the prompts (for a language model, BOS in place of an empty list), and then those
        of each sequence of answers.
    """
    prompts, sides = checked_texts(prompts, "prompts"), [checked_texts(x) for x in answers]
    if isinstance(tokenizer, TextTokenizer):
        wholes = [
            tokenizer.encode([x + y for x, y in zip(prompts, side, strict=True)]) for side in sides
        ]
        prompt_ids, end = tokenizer.encode(prompts), config.eos_ids[0]
        for i, ids in enumerate(prompt_ids):
            prompt_ids[i] = ids[: min(common(ids, whole[i]) for whole in wholes)]
        rest = [
            [[*ids[len(first) :], end] for first, ids in zip(prompt_ids, whole, strict=True)]
            for whole in wholes
        ]
        return [[ids or [config.bos_id] for ids in prompt_ids], *rest]
    return [tokenizer.encode_source(prompts), *map(tokenizer.encode_target, sides)]


def reference_log_probabilities(model: keras.Model, batches: PreferenceBatches) -> np.ndarray:
    """Return the log-probability of both answers of each pair: (N, 2), float32.

    Args:
        model: The reference model, with logits over its vocabulary.
        batches: The pairs.
    """
    runner, scores = Runner(), np.zeros((len(batches.reference), 2), np.float32)

    def score(inputs, y_true):
        return log_probabilities(y_true, model(inputs))[0]

    for step in range(len(batches)):
        inputs, y_true = batches.batch(step)
        (values,) = runner.arrays(model, "reference", lambda: score, [inputs, y_true])
        scores[batches.pairs(step)] = values.reshape(-1, 2)
    return scores
