"""Tune a translator or a language model to preferences, or train a reward model of them.

Each line of a file is a JSON object with `prompt`, `chosen` and `rejected`; for a translator, the
prompt is the text to translate. `--loss` is "sigmoid" (DPO, Rafailov et al. 2023), "ipo" (Azar et
al. 2023), "hinge" (Zhao et al. 2023), "cpo" (Xu et al. 2024), or "reward", which trains a reward
model (Ouyang et al. 2022).
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import keras

from keras_transformer.config import require
from keras_transformer.data.preferences import PreferenceBatches, read_preferences
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.language.preference_inputs import (
    encoded_answers,
    reference_log_probabilities,
)
from keras_transformer.language.rewarder import Rewarder
from keras_transformer.losses import KINDS, PreferenceLoss, RewardLoss
from keras_transformer.metrics import PreferenceAccuracy
from keras_transformer.models import DecoderOnly, RewardModel, merged
from keras_transformer.saved.contents import read_config
from keras_transformer.training.fine_tuning import with_lora
from keras_transformer.training.runs import say
from keras_transformer.training.task import REQUIRED, TaskRun, task
from keras_transformer.translate.translator import Translator


@task(
    output=Path("saved_models/preferences"),
    start_from=REQUIRED,
    lora_rank=0,
    tokens_per_batch=4096,
    epochs=1,
    peak_learning_rate=1e-5,
    warmup_steps=100,
)
def train(
    run: TaskRun,
    train_file: Path,
    validation_file: Path | None = None,
    loss: str = "sigmoid",
    beta: float = 0.1,
) -> None:
    """Tune a model to preferences; save it, with the share of pairs that it orders correctly.

    --start-from takes a translator or a language model.

    Args:
        train_file: Preferences, .jsonl or .jsonl.gz.
        validation_file: The same, measured after each epoch.
        loss: sigmoid (DPO), ipo, hinge, cpo, reward.
        beta: Strength of the reference, above 0.
    """
    require(loss in (*KINDS, "reward"), "loss", loss, f"one of {(*KINDS, 'reward')}")
    rewards = loss == "reward"
    objective = RewardLoss() if rewards else PreferenceLoss(loss, beta)
    assert run.start_from is not None, "it is required"
    kind = CausalLM if "task" in read_config(run.start_from, "model") else Translator
    start = kind.load(run.start_from, "float32")
    options: dict[str, Any] = dict(last=rewards, seed=run.seed)
    options["tokens_per_batch"] = run.tokens_per_batch
    training, validation = batches(start, train_file, **options), None
    if validation_file:
        validation = batches(start, validation_file, shuffle=False, **options)
    if loss not in ("cpo", "reward"):
        for part in filter(None, (training, validation)):
            part.reference = reference_log_probabilities(start.model, part)
        say("the reference is computed")

    keras.utils.set_random_seed(run.seed)
    # Without dropout, so that training starts at the probabilities of the reference.
    config = dataclasses.replace(start.model.config, dropout=0.0)
    family: Any = type(start.model)
    model = family(config, dtype=run.precision)
    model.set_weights(start.model.get_weights())
    if rewards:
        model = RewardModel.on(model, dtype=run.precision)
    model = with_lora(model, run.lora_rank)
    optimizer = run.optimizer(run.epochs * len(training), global_clipnorm=1.0)
    model.compile(optimizer, objective, metrics=[PreferenceAccuracy(loss)])
    history = run.fit(model, training.dataset(), len(training), validation_data=validation)

    if rewards:
        Rewarder(merged(model), start.tokenizer).save(run.output)
    else:
        run.save(_like(start, model))
    scores = {name: values[-1] for name, values in history.items()}
    run.record(scores, model=model)
    shown = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
    print(f"{shown}; saved to {run.output}")


def batches(
    start: CausalLM | Translator, path: Path, *, tokens_per_batch: int, **options: Any
) -> PreferenceBatches:
    """Return the pairs of a file that fit the model, as batches.

    Args:
        start: The translator or language model.
        path: Preferences in JSON lines.
        tokens_per_batch: Maximum tokens per batch; raised to twice the model's `max_length` if it
            is less.
        options: Further options of `PreferenceBatches`.

    Raises:
        ValueError: See `read_preferences`; or if no pair fits the model.
    """
    pairs, config = read_preferences(path), start.model.config
    sides = [[getattr(x, name) for x in pairs] for name in ("prompt", "chosen", "rejected")]
    joined = isinstance(start.model, DecoderOnly)
    ids = zip(*encoded_answers(start.tokenizer, config, *sides), strict=True)
    kept = [x for x in ids if _length(x, joined) <= config.max_length]
    if len(kept) < len(pairs):
        say(f"{path}: {len(pairs) - len(kept)} of {len(pairs)} pairs are too long for the model")
    require(len(kept) > 0, str(path), 0, f"pairs of at most {config.max_length} tokens")
    prompts, chosen, rejected = zip(*kept, strict=True)
    return PreferenceBatches(
        prompts,
        chosen,
        rejected,
        bos_id=None if joined else config.bos_id,
        tokens_per_batch=max(tokens_per_batch, 2 * config.max_length),
        max_length=config.max_length,
        pad_id=config.pad_id,
        **options,
    )


def _length(ids, joined):
    prompt, *answers = map(len, ids)
    return prompt + max(answers) - 1 if joined else max(prompt, *answers)


def _like(start, model):
    """Return a copy of the translator or language model `start` with another model."""
    if isinstance(start, CausalLM):
        return CausalLM(model, start.tokenizer, start.template, start.search)
    languages = start.source_language, start.target_language
    return Translator(model, start.tokenizer, *languages, start.search, start.directions)
