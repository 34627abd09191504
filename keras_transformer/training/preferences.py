"""Tune a translator or a language model to preferences, or train a reward model of them.

    python -m training.preferences --start-from saved_models/multi30k --train pairs.jsonl \
        --output saved_models/tuned

Each line of a file is a JSON object with `prompt`, `chosen` and `rejected`; for a translator, the
prompt is the text to translate. `--loss` is "sigmoid" (DPO, Rafailov et al. 2023), "ipo" (Azar et
al. 2023), "hinge" (Zhao et al. 2023), "cpo" (Xu et al. 2024), or "reward", which trains a reward
model (Ouyang et al. 2022).
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Annotated

import keras
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.config import require
from keras_transformer.data.preferences import PreferenceBatches, read_preferences
from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.language.preferences import encoded_answers, reference_log_probabilities
from keras_transformer.language.rewarder import Rewarder
from keras_transformer.losses import KINDS, PreferenceLoss, RewardLoss
from keras_transformer.metrics import PreferenceAccuracy
from keras_transformer.models import DecoderOnly, RewardModel, enable_lora, merged
from keras_transformer.optimizers import adam
from keras_transformer.saved.folder import read_config
from keras_transformer.system.files import write_json
from keras_transformer.training import script_options as options
from keras_transformer.training.fine_tuning import save_run
from keras_transformer.training.runs import facts, fit_epochs, main, run_into, say, schedule_for
from keras_transformer.translate.translator import Translator


@run_into()
def train(
    start_from: Annotated[Path, typer.Option(help="Folder of a translator or language model.")],
    train_file: Annotated[Path, typer.Option("--train", help="Preferences, .jsonl or .jsonl.gz.")],
    output: options.Output = Path("saved_models/preferences"),
    validation_file: Annotated[
        Path | None, typer.Option("--validation", help="The same, measured after each epoch.")
    ] = None,
    loss: Annotated[str, typer.Option(help="sigmoid (DPO), ipo, hinge, cpo, reward.")] = "sigmoid",
    beta: Annotated[float, typer.Option(help="Strength of the reference, above 0.")] = 0.1,
    lora_rank: options.LoRARank = 0,
    tokens_per_batch: options.TokensPerBatch = 4096,
    epochs: options.Epochs = 1,
    peak_learning_rate: options.PeakLearningRate = 1e-5,
    warmup_steps: options.WarmupSteps = 100,
    precision: options.Precision = "float32",
    seed: options.Seed = 0,
) -> None:
    """Tune a model to preferences; save it, with the share of pairs that it orders right."""
    keep_compilations()
    begun = time.monotonic()
    require(loss in (*KINDS, "reward"), "loss", loss, f"one of {(*KINDS, 'reward')}")
    rewards = loss == "reward"
    chosen = RewardLoss() if rewards else PreferenceLoss(loss, beta)
    kind = CausalLM if "task" in read_config(start_from, "model") else Translator
    start = kind.load(start_from, "float32")
    data = {"train": train_file} | ({"validation": validation_file} if validation_file else {})
    batches = {
        name: _batches(start, path, tokens_per_batch, rewards, name == "train", seed)
        for name, path in data.items()
    }
    if loss not in ("cpo", "reward"):
        for name, own in batches.items():
            own.reference = reference_log_probabilities(start.model, own)
            say(f"{name}: the reference is computed")

    keras.utils.set_random_seed(seed)
    # Without dropout, so that the first step begins at the reference.
    config = dataclasses.replace(start.model.config, dropout=0.0)
    model = type(start.model)(config, dtype=precision)
    model.set_weights(start.model.get_weights())
    if rewards:
        model = RewardModel.on(model, dtype=precision)
    if lora_rank:
        enable_lora(model, lora_rank)
    schedule = schedule_for(peak_learning_rate, warmup_steps, epochs * len(batches["train"]))
    metric = PreferenceAccuracy(loss)
    model.compile(adam(schedule, global_clipnorm=1.0), chosen, metrics=[metric])
    history = fit_epochs(model, batches["train"], epochs, batches.get("validation"))

    if rewards:
        Rewarder(merged(model), start.tokenizer).save(output)
    else:
        save_run(_like(start, model).save, output, start_from, lora_rank)
    found = {name: values[-1] for name, values in history.items()}
    write_json(output / "metrics.json", found | facts(model, begun))
    told = ", ".join(f"{name} {value:.4f}" for name, value in found.items())
    print(f"{told}; saved to {output}")


def _batches(start, path, tokens_per_batch, rewards, shuffle, seed):
    """Return the pairs of a file that fit the model, as batches."""
    pairs, config = read_preferences(path), start.model.config
    sides = [[getattr(x, name) for x in pairs] for name in ("prompt", "chosen", "rejected")]
    joined = isinstance(start.model, DecoderOnly)
    ids = zip(*encoded_answers(start.tokenizer, config, *sides), strict=True)
    kept = [x for x in ids if _length(x, joined) <= config.max_length]
    if len(kept) < len(pairs):
        say(f"{path}: {len(pairs) - len(kept)} of {len(pairs)} pairs are too long for the model")
    require(len(kept) > 0, str(path), 0, f"pairs of at most {config.max_length} tokens")
    return PreferenceBatches(
        *zip(*kept, strict=True),
        bos_id=None if joined else config.bos_id,
        tokens_per_batch=max(tokens_per_batch, 2 * config.max_length),
        max_length=config.max_length,
        pad_id=config.pad_id,
        last=rewards,
        shuffle=shuffle,
        seed=seed,
    )


def _length(ids, joined):
    prompt, *answers = map(len, ids)
    return prompt + max(answers) - 1 if joined else max(prompt, *answers)


def _like(start, model):
    """Return a translator or language model like `start` with another model."""
    if isinstance(start, CausalLM):
        return CausalLM(model, start.tokenizer, start.template, start.search)
    languages = start.source_language, start.target_language
    return Translator(model, start.tokenizer, *languages, start.search)


if __name__ == "__main__":
    main(train)
