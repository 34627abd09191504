"""The `Rewarder`, which scores answers with a reward model, and picks the best of several."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.config import require
from keras_transformer.data.preferences import PreferenceBatches
from keras_transformer.language.preference_inputs import encoded_answers
from keras_transformer.models.reward import RewardModel
from keras_transformer.running.runner import Runner
from keras_transformer.saved.contents import read_config
from keras_transformer.saved.folder import load_with_sides, load_with_tokenizer, save_folder
from keras_transformer.system.named_models import located
from keras_transformer.text.text_tokenizer import FILE, TextTokenizer


class Rewarder:
    """A reward model with its tokenizer, which scores answers to prompts, or translations.

    The model was trained on pairs of answers, one of which people or a metric preferred.

    ```python
    rewarder = Rewarder.load("saved_models/reward")
    candidates = [writer.generate(prompts, temperature=1.0, seed=seed) for seed in range(8)]
    best = rewarder.best_of(prompts, list(zip(*candidates)))
    ```

    Args:
        model: A `RewardModel`.
        tokenizer: Tokenizer of the reward model's base.
    """

    def __init__(self, model: RewardModel, tokenizer: Any):
        self.model, self.tokenizer = model, tokenizer
        self._runner = Runner()

    def score(
        self, prompts: Sequence[str], answers: Sequence[str], *, tokens_per_batch: int = 8192
    ) -> list[float]:
        """Return the score of each answer to its prompt: any real number, higher is better.

        Args:
            prompts: Prompts, or texts to translate.
            answers: Answers, one per prompt.
            tokens_per_batch: Maximum tokens in a batch, padding included. A value below twice the
                model's `max_length` is raised to it.

        Raises:
            ValueError: If the numbers of texts differ, or a text is longer than the model's
                `max_length`.
        """
        accepted = f"{len(prompts)}, one for each of the prompts"
        require(len(answers) == len(prompts), "answers", len(answers), accepted)
        if not len(prompts):
            return []
        config = self.model.base.config
        ids, replies = encoded_answers(self.tokenizer, config, prompts, answers)
        joined = isinstance(self.tokenizer, TextTokenizer)
        batches = PreferenceBatches(
            ids,
            replies,
            replies,
            bos_id=None if joined else config.bos_id,
            tokens_per_batch=max(tokens_per_batch, 2 * config.max_length),
            max_length=config.max_length,
            pad_id=config.pad_id,
            last=True,
            shuffle=False,
        )
        scores = np.zeros(len(prompts))
        for step in range(len(batches)):
            inputs, _ = batches.batch(step)
            rows = {name: x[::2] for name, x in inputs.items()}  # both answers of a pair are equal
            (values,) = self._runner.arrays(self.model, "score", lambda: self.model, [rows])
            scores[batches.pairs(step)] = values[:, 0]
        return scores.tolist()

    def best_of(self, prompts: Sequence[str], candidates: Sequence[Sequence[str]]) -> list[str]:
        """Return the answer to each prompt that has the highest score (Stiennon et al. 2020).

        Args:
            prompts: Prompts, or texts to translate.
            candidates: Answers to each prompt, one or more.

        Raises:
            ValueError: If the numbers differ, or a prompt has no answer.
        """
        accepted = f"{len(prompts)} sequences, one for each of the prompts"
        require(len(candidates) == len(prompts), "candidates", len(candidates), accepted)
        counts = [len(answers) for answers in candidates]
        require(
            min(counts, default=1) > 0, "candidates", min(counts, default=1), "one or more each"
        )
        asked = [
            prompt for prompt, answers in zip(prompts, candidates, strict=True) for _ in answers
        ]
        scores = self.score(asked, [answer for answers in candidates for answer in answers])
        ends = np.cumsum(counts)[:-1]
        scores_of_prompts = np.split(np.array(scores), ends)
        pairs = zip(candidates, scores_of_prompts, strict=True)
        return [answers[int(values.argmax())] for answers, values in pairs]

    def save(self, folder: str | os.PathLike) -> None:
        """Write `model.keras`, the tokenizer's files and `config.json`."""
        save_folder(folder, self.model, self.tokenizer, {"task": "reward"})

    @classmethod
    def load(cls, folder: str | os.PathLike, precision: str | None = None) -> Rewarder:
        """Load a saved reward model, on any backend.

        Args:
            folder: Folder that `save` wrote, or a name, see `system.named_models`.
            precision: See `Translator.load`; None: as saved.

        Raises:
            ValueError: If the folder is not a saved reward model, or a file in it is broken.
        """
        what = "reward model"
        folder = located(folder)
        config = read_config(folder, what, FILE, precision)
        if config["model"].get("family") in ("GPT", "LLaMA"):
            return cls(*load_with_tokenizer(folder, what, RewardModel, precision))
        model, tokenizer, _ = load_with_sides(folder, what, precision)
        return cls(model, tokenizer)
