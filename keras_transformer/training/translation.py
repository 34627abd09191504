"""Train a translator, measure and save it: one run, from text files to one folder."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import time
from pathlib import Path

import keras

from keras_transformer.backend import keep_compilations, usable_precision
from keras_transformer.callbacks import Checkpoints, Progress, TensorBoard, TranslationQuality
from keras_transformer.callbacks.checkpoints import LOG
from keras_transformer.data.pair_batches import TokenBatches
from keras_transformer.distribution import Spread, distribute, gather, processes
from keras_transformer.evaluation.assess import assess, save_metrics
from keras_transformer.evaluation.scores import table
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import enable_lora, enable_remat, merged
from keras_transformer.optimizers import WarmupSchedule, adam
from keras_transformer.saved.contents import CONFIG, MODEL
from keras_transformer.system.files import removed
from keras_transformer.text.tokenizer import MANIFEST
from keras_transformer.training import runs
from keras_transformer.training.fine_tuning import ADAPTER_FOLDER, save_run
from keras_transformer.training.preparation import prepare_run, read_text
from keras_transformer.training.recipe import read_recipe
from keras_transformer.training.runs import run_into, say
from keras_transformer.translate.translator import METRICS
from keras_transformer.weights import assign_weights, average_weights, weights_of
from keras_transformer.weights.state import CHECKPOINTS, restore_state

# Files and folders that --overwrite removes.
OF_A_RUN = (CHECKPOINTS, LOG, "tensorboard", ADAPTER_FOLDER, MODEL, CONFIG, METRICS, MANIFEST)
# Options that a resumed run may change; a change of any other option makes it a different run.
NOT_THE_RUN: tuple[str, ...] = ("epochs", "patience", "bleu_every", "average_last", "beam_size")
NOT_THE_RUN += ("length_penalty", "checkpoint_every", "distribution", "remat")


@run_into(lambda arguments: Path("saved_models") / Path(arguments["recipe"]).stem, joins=True)
def train(
    recipe: str = "grammar",
    output: Path | None = None,
    data_folder: Path | None = None,
    train_files: list[Path] | None = None,
    validation_files: list[Path] | None = None,
    test_files: list[Path] | None = None,
    start_from: Path | None = None,
    changes: list[str] | None = None,
    workers: int = 0,
    tensorboard: bool = False,
    overwrite: bool = False,
) -> None:
    """Train a translator and save it with its tokenizer and its measured quality.

    The arguments are the options of `keras-transformer train`, which describes them. `runs.fit`
    calls `Checkpoints.fit`, which calls `fit` of the model; `models/training_step.py` lists the
    calls of each training step.
    """
    keep_compilations()
    options = read_recipe(recipe, changes)
    assert output is not None, "`run_into` sets it"
    # Checkpoints and metrics record the precision that is used.
    precision = usable_precision(options.precision)
    options = dataclasses.replace(options, precision=precision)
    if start_from and not start_from.is_dir():
        raise ValueError(f"start_from must be a saved translator: there is no folder {start_from}")
    if overwrite and start_from and output.resolve() in Path(start_from / "x").resolve().parents:
        raise ValueError(f"output must not contain start_from with --overwrite, got {output}")

    files = {"train": train_files, "validation": validation_files, "test": test_files}
    team = processes.join()
    if options.corpora:
        data_folder = data_folder or Path(recipe).parent
    corpus, pairs = read_text(options, data_folder, files)
    setup = prepare_run(options, corpus, pairs, start_from)
    _agree(team, options, {"training": pairs, "validation": corpus.validation}, setup)
    spread = Spread()  # without distribution: one device with all rows
    if options.distribution or team.count > 1:
        spread = distribute(**options.distribution)
    batches, validation = _batches(options, corpus, pairs, setup, spread.data)
    team.agree({"numbers of batches": [len(batches), len(validation)]})
    total_steps = options.epochs * len(batches) if options.decay != "inverse_sqrt" else None
    model = _model(options, setup, total_steps)
    say(
        f"{model.count_params():,} parameters, {setup.tokenizer.source_vocab_size} pieces, "
        f"{len(batches)} batches per epoch of shapes {list(batches.shapes)}, "
        f"{batches.padding:.0%} padding, {batches.dropped} pairs too long; "
        f"{keras.backend.backend()}, {options.precision}"
    )
    if overwrite and team.index == 0:  # only now that all arguments are checked
        removed(*(output / name for name in OF_A_RUN))
    team.exchange(None)  # a barrier: all processes then see the folder without old files
    checkpoints = _checkpoints(options, output, setup, len(pairs), total_steps, team)
    progress = Progress(batches.num_tokens / len(batches), checkpoints=checkpoints)
    events = output / "tensorboard" if tensorboard and team.index == 0 else None
    runs.fit(
        model,
        lambda step: batches.dataset(step, None, workers, spread.part),
        checkpoints,
        steps_per_epoch=len(batches),
        epochs=options.epochs,
        validation_data=validation.dataset(steps=len(validation), part=spread.part),
        validation_steps=len(validation),
        callbacks=_callbacks(options, corpus, setup.translator(model), progress, events),
    )
    gather()
    if team.index:  # process 0 does the rest alone
        return
    trained, averaged = _averaged(options, setup, checkpoints, model.optimizer)
    if corpus.directions:
        trained = trained.between(corpus.source_language, corpus.target_language)
    save_run(trained.save, output, start_from, options.lora_rank)
    translator = setup.translator(merged(trained.model))
    facts = _facts(options, translator, checkpoints, batches) | {"pairs": len(pairs)}
    facts |= {"averaged_checkpoints": averaged}
    save_metrics(output, "training", facts)
    _measure(options, output, corpus, translator)
    say(f"epochs: {checkpoints.epoch}, seconds: {facts['seconds']:.0f}; saved to {output}")


def _facts(options, translator, checkpoints, batches):
    """Return the facts of a run besides its scores, such as its options, size and speed."""
    seconds = sum(logs["seconds"] for logs in checkpoints.history)
    return {
        "recipe": options.to_dict(),
        "backend": keras.backend.backend(),
        "parameters": translator.model.count_params(),
        "epochs": checkpoints.epoch,
        "seconds": seconds,
        "target_tokens_per_second": batches.num_tokens * checkpoints.epoch / seconds,
        "cores": os.cpu_count(),
        "finished": time.strftime("%Y-%m-%d"),
    }


def _agree(team, options, texts, setup):
    """Check that all processes have the same options, texts and tokenizer."""
    if team.count > 1:
        facts = {f"option {name}": value for name, value in options.to_dict().items()}
        for name, pairs in texts.items():
            text = hashlib.sha256()
            for pair in pairs:
                text.update("\0".join((*pair, "")).encode())
            facts[f"{name} text (SHA-256)"] = text.hexdigest()
        team.agree(facts | {"tokenizer": setup.tokenizer.fingerprint()})


def _batches(options, corpus, pairs, setup, divisible_by):
    """Return the batches for training and validation: of a few shapes, or of one if packed."""
    row = options.packed_length or options.tokens_per_batch
    budget = dict(
        tokens_per_batch=options.tokens_per_batch,
        num_buckets=options.num_buckets,
        packed_length=options.packed_length,
        max_length=min(setup.config.max_length, row),
        seed=options.seed,
        divisible_by=divisible_by,
    )
    tokenizer = setup.tokenizer
    train_options = dict(sampling=options.subword_sampling, visits=corpus.visits)
    train_options |= dict(aligned=getattr(setup.config, "guided_alignment", 0) > 0)
    batches = TokenBatches(pairs, tokenizer, **train_options, **budget)
    return batches, TokenBatches(corpus.validation, tokenizer, shuffle=False, **budget)


def _model(options, setup, total_steps):
    """Return the compiled model with its initial weights."""
    config = setup.config
    keras.utils.set_random_seed(options.seed)
    model = setup.family(config, dtype=options.precision)
    if setup.start is not None:
        assign_weights(weights_of(setup.start.model), model)
    if options.lora_rank:
        enable_lora(model, options.lora_rank)
    if options.remat:
        enable_remat(model)
    accumulation = options.gradient_accumulation
    # Keras 3.15 calls a schedule once per batch, not per update: its steps are batches.
    peak = options.peak_learning_rate or (config.d_model * options.warmup_steps) ** -0.5
    warmup_steps = options.warmup_steps * accumulation
    if total_steps is None:
        schedule = WarmupSchedule(peak, warmup_steps)
    else:
        schedule = runs.schedule_for(peak, warmup_steps, total_steps, options.decay)
    model.compile(
        adam(
            schedule,
            gradient_accumulation_steps=accumulation if accumulation > 1 else None,
            global_clipnorm=options.clip_norm,
            weight_decay=options.weight_decay or None,
            state_dtype=None if options.optimizer_state == "float32" else options.optimizer_state,
            use_ema=options.ema_decay > 0,
            ema_momentum=options.ema_decay ** (1 / accumulation),  # Keras averages after each batch
        ),
        LabelSmoothedCrossentropy(options.label_smoothing, config.pad_id, options.r_drop),
        metrics=[Perplexity(config.pad_id)],
    )
    return model


def _checkpoints(options, folder, setup, count, total_steps, team):
    """Return the checkpoints of this run; those of a different run raise an error."""
    run = {k: v for k, v in options.to_dict().items() if k not in NOT_THE_RUN}
    run |= {"pairs": count, "tokenizer": setup.tokenizer.fingerprint()}
    run |= {"backend": keras.backend.backend(), "total_steps": total_steps}
    run |= {"starts": setup.start is not None, "languages": list(setup.languages)}
    checkpoints = Checkpoints(
        folder / CHECKPOINTS,
        keep=options.average_last,
        monitor=options.monitor,
        patience=options.patience,
        mode="max" if options.monitor == "val_bleu" else "min",
        run=run,
        defaults=type(options)().to_dict(),
        every=options.checkpoint_every or None,
        log=folder / LOG,
    )
    team.agree({"checkpoint": [checkpoints.epoch, checkpoints.step]})
    if checkpoints.epoch >= options.epochs:
        say(f"all {checkpoints.epoch} epochs are done: nothing is left to train")
    elif checkpoints.finished:
        say(
            f"early stopping ended the run after epoch {checkpoints.epoch}: nothing is left to "
            "train; a higher patience trains on"
        )
    elif checkpoints.epoch or checkpoints.step:
        inside = f" and step {checkpoints.step}" if checkpoints.step else ""
        say(f"resuming after epoch {checkpoints.epoch}{inside}")
    return checkpoints


def _search(options):
    return dict(beam_size=options.beam_size, length_penalty=options.length_penalty)


def _callbacks(options, corpus, translator, progress, events):
    callbacks = [progress]
    if options.bleu_every:  # first, so that the line of progress shows it
        quality = dict(every=options.bleu_every, options=_search(options))
        callbacks.insert(0, TranslationQuality(translator, corpus.validation, **quality))
    if events:
        callbacks.append(TensorBoard(events))
    return callbacks


def _averaged(options, setup, checkpoints, optimizer):
    """Return a translator with averaged weights, and the number of averaged checkpoints.

    The weights are the mean of the last checkpoints (Vaswani et al. 2017, section 6.1), in float32.
    With LoRA, only the last checkpoint is used: the mean of products is not the product of means.
    With `ema_decay`, the moving average from the optimizer's state in the last checkpoint is used.
    """
    single = options.lora_rank or options.ema_decay
    last = checkpoints.paths()[-1 if single else -options.average_last :]
    averaged = setup.family(setup.config, dtype="float32")
    if options.lora_rank:
        enable_lora(averaged, options.lora_rank)
    if options.ema_decay:
        averaged.compile(optimizer.from_config(optimizer.get_config()))
        restore_state(last[0], averaged)
        averaged.optimizer.finalize_variable_values(averaged.trainable_variables)
    else:
        assign_weights(average_weights(last), averaged)
    return setup.translator(averaged), len(last)


def _measure(options, folder, corpus, translator):
    """Print the quality on each test set, and write it into `metrics.json`."""
    published = corpus.target_language if corpus.name == "multi30k" else None
    for name, pairs in corpus.tests.items():
        languages = corpus.directions.get(name)
        pair_translator = translator.between(*languages) if languages else translator
        metrics = assess(
            pair_translator,
            pairs,
            published_language=published,
            context_sentences=options.context_sentences,
            **_search(options),
        )
        save_metrics(folder, name, metrics)
        print(f"\n{name}\n{table(metrics)}")
