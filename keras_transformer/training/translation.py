"""Train a translator, measure and save it: one run, from text files to one folder."""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path
from typing import Any

import keras

from keras_transformer.backend import keep_compilations, usable_precision
from keras_transformer.callbacks import (
    Checkpoints,
    Progress,
    TensorBoard,
    TranslationQuality,
)
from keras_transformer.checkpoints import assign_weights, average_weights, weights_of
from keras_transformer.checkpoints.state import CHECKPOINTS
from keras_transformer.config import TransformerConfig
from keras_transformer.data.built_in_corpora import Corpus, load_corpus
from keras_transformer.data.cleaning import clean
from keras_transformer.data.pair_batches import TokenBatches
from keras_transformer.data.text_files import read_pairs
from keras_transformer.evaluation.assess import assess, save_metrics
from keras_transformer.evaluation.scores import table
from keras_transformer.inference.folder import CONFIG, MODEL
from keras_transformer.inference.translator import METRICS, Translator
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import Transformer, enable_lora, merged
from keras_transformer.optimizers import WarmupSchedule, adam
from keras_transformer.system.files import removed
from keras_transformer.text import SentencePieceTokenizer, Tokenizer
from keras_transformer.text.tokenizer import MANIFEST
from keras_transformer.training import runs
from keras_transformer.training.recipe import read_recipe
from keras_transformer.training.runs import run_into, say

# Files and folders of a run, which --overwrite removes.
OF_A_RUN = (CHECKPOINTS, "tensorboard", MODEL, CONFIG, METRICS, MANIFEST)
# Options that a resumed run may change; with others changed, it is a different run.
NOT_THE_RUN = ("epochs", "patience", "bleu_every", "average_last", "beam_size", "length_penalty")


@run_into(lambda given: Path("saved_models") / Path(given["recipe"]).stem)
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

    The arguments are the options of `keras-transformer train`, which describes them.
    """
    keep_compilations()
    options, folder = read_recipe(recipe, changes), output
    # Checkpoints and metrics record the precision that is computed in.
    precision = usable_precision(options.precision)
    options = dataclasses.replace(options, precision=precision)
    if start_from and not start_from.is_dir():
        raise ValueError(f"start_from must be a saved translator: there is no folder {start_from}")
    if overwrite and start_from and folder.resolve() in Path(start_from / "x").resolve().parents:
        raise ValueError(f"output must not contain start_from with --overwrite, got {folder}")

    files = {"train": train_files, "validation": validation_files, "test": test_files}
    corpus, pairs = _text(options, data_folder, files)
    beginning = _beginning(options, corpus, pairs, start_from)
    batches, validation = _batches(options, corpus, pairs, beginning)
    total_steps = options.epochs * len(batches) if options.decay == "linear" else None
    model = _model(options, beginning, total_steps)
    say(
        f"{model.count_params():,} parameters, {beginning.tokenizer.source_vocab_size} pieces, "
        f"{len(batches)} batches per epoch of shapes {list(batches.shapes)}, "
        f"{batches.padding:.0%} padding, {batches.dropped} pairs too long; "
        f"{keras.backend.backend()}, {options.precision}"
    )
    if overwrite:  # only now that all arguments are checked
        removed(*(folder / name for name in OF_A_RUN))
    checkpoints = _checkpoints(options, folder, beginning, len(pairs), total_steps)
    runs.fit(
        model,
        lambda step: batches.dataset(first_step=step, num_workers=workers),
        checkpoints,
        steps_per_epoch=len(batches),
        epochs=options.epochs,
        validation_data=validation.dataset(steps=len(validation)),
        validation_steps=len(validation),
        callbacks=_callbacks(options, folder, corpus, beginning, model, batches, tensorboard),
    )
    translator, averaged = _averaged(options, beginning, checkpoints)
    translator.save(folder)
    seconds = sum(logs["seconds"] for logs in checkpoints.history)
    facts = {
        "recipe": options.to_dict(),
        "backend": keras.backend.backend(),
        "parameters": translator.model.count_params(),
        "pairs": len(pairs),
        "epochs": checkpoints.epoch,
        "averaged_checkpoints": averaged,
        "seconds": seconds,
        "target_tokens_per_second": batches.num_tokens * checkpoints.epoch / seconds,
        "cores": os.cpu_count(),
        "finished": time.strftime("%Y-%m-%d"),
    }
    save_metrics(folder, "training", facts)
    _measure(options, folder, corpus, translator)
    say(f"trained {checkpoints.epoch} epochs in {seconds:.0f} s; saved to {folder}")


@dataclasses.dataclass(frozen=True)
class _Beginning:
    """The tokenizer and sizes of a run, and the translator that it starts from, or None."""

    start: Translator | None
    family: type
    tokenizer: Tokenizer
    config: Any
    languages: tuple[str, str]

    def translator(self, model):
        return Translator(model, self.tokenizer, *self.languages)


def _text(options, data_folder, files):
    """Return the corpus, and its training pairs after cleaning."""
    corpus = _corpus(options, data_folder, files)
    pairs, report = clean(
        corpus.train, max_words=options.max_words, max_length_ratio=options.max_length_ratio
    )
    if not pairs:
        raise ValueError(f"the training corpus is empty after cleaning: {report}")
    say(f"corpus {corpus.name}: {report}")
    return corpus, pairs


def _beginning(options, corpus, pairs, start_from):
    languages = corpus.source_language, corpus.target_language
    if start_from is None:
        if options.lora_rank:
            raise ValueError("lora_rank needs --start-from: LoRA trains an existing model further")
        tokenizer = _tokenizer(options, pairs)
        config = _config(options, tokenizer)
        return _Beginning(None, Transformer, tokenizer, config, languages)
    start = Translator.load(start_from, "float32")
    languages = start.source_language or languages[0], start.target_language or languages[1]
    tokenizer = start.tokenizer.between(*languages)
    dropout = options.model.get("dropout", start.model.config.dropout)
    config = dataclasses.replace(start.model.config, dropout=dropout)
    return _Beginning(start, type(start.model), tokenizer, config, languages)


def _batches(options, corpus, pairs, beginning):
    """Return the batches for training and validation, of a few shapes; packed, of one."""
    row = options.packed_length or options.tokens_per_batch
    budget = dict(
        tokens_per_batch=options.tokens_per_batch,
        num_buckets=options.num_buckets,
        packed_length=options.packed_length,
        max_length=min(beginning.config.max_length, row),
        seed=options.seed,
    )
    tokenizer = beginning.tokenizer
    batches = TokenBatches(pairs, tokenizer, sampling=options.subword_sampling, **budget)
    return batches, TokenBatches(corpus.validation, tokenizer, shuffle=False, **budget)


def _model(options, beginning, total_steps):
    """Return the compiled model with its initial weights."""
    config = beginning.config
    keras.utils.set_random_seed(options.seed)
    model = beginning.family(config, dtype=options.precision)
    if beginning.start is not None:
        assign_weights(weights_of(beginning.start.model), model)
    if options.lora_rank:
        enable_lora(model, options.lora_rank)
    accumulation = options.gradient_accumulation
    # Keras 3.15 calls a schedule once per batch, not per update: its steps are batches.
    peak = options.peak_learning_rate or (config.d_model * options.warmup_steps) ** -0.5
    make = WarmupSchedule if total_steps is None else runs.schedule_for
    schedule = make(peak, options.warmup_steps * accumulation, total_steps)
    model.compile(
        adam(schedule, gradient_accumulation_steps=accumulation if accumulation > 1 else None),
        LabelSmoothedCrossentropy(options.label_smoothing, config.pad_id),
        metrics=[Perplexity(config.pad_id)],
    )
    return model


def _checkpoints(options, folder, beginning, count, total_steps):
    """Return the checkpoints of this run; those of a different run raise an error."""
    run = {k: v for k, v in options.to_dict().items() if k not in NOT_THE_RUN}
    run |= {"pairs": count, "tokenizer": beginning.tokenizer.fingerprint()}
    run |= {"backend": keras.backend.backend(), "total_steps": total_steps}
    run |= {"starts": beginning.start is not None, "languages": list(beginning.languages)}
    checkpoints = Checkpoints(
        folder / CHECKPOINTS,
        keep=options.average_last,
        monitor=options.monitor,
        patience=options.patience,
        mode="max" if options.monitor == "val_bleu" else "min",
        run=run,
    )
    if checkpoints.epoch >= options.epochs or checkpoints.finished:
        say(f"all {checkpoints.epoch} epochs are done: the model is saved and measured again")
    elif checkpoints.epoch or checkpoints.step:
        inside = f" and step {checkpoints.step}" if checkpoints.step else ""
        say(f"resuming after epoch {checkpoints.epoch}{inside}")
    return checkpoints


def _search(options):
    return dict(beam_size=options.beam_size, length_penalty=options.length_penalty)


def _callbacks(options, folder, corpus, beginning, model, batches, tensorboard):
    callbacks = [Progress(batches.num_tokens / len(batches))]
    if options.bleu_every:
        quality = dict(every=options.bleu_every, options=_search(options))
        translator = beginning.translator(model)
        callbacks.append(TranslationQuality(translator, corpus.validation, **quality))
    if tensorboard:
        callbacks.append(TensorBoard(folder / "tensorboard"))
    return callbacks


def _averaged(options, beginning, checkpoints):
    """Return a translator with the mean of the last checkpoints (section 6.1), and their number.

    In float32. With LoRA, only the last counts: a mean of products is not a product of means.
    """
    last = checkpoints.paths()[-1 if options.lora_rank else -options.average_last :]
    averaged = beginning.family(beginning.config, dtype="float32")
    if options.lora_rank:
        enable_lora(averaged, options.lora_rank)
    assign_weights(average_weights(last), averaged)
    return beginning.translator(merged(averaged)), len(last)


def _measure(options, folder, corpus, translator):
    """Print the quality on each test set, and write it into `metrics.json`."""
    published = corpus.target_language if corpus.name == "multi30k" else None
    for name, pairs in corpus.tests.items():
        metrics = assess(translator, pairs, published_language=published, **_search(options))
        save_metrics(folder, name, metrics)
        print(f"\n{name}\n{table(metrics)}")


def _tokenizer(options, pairs):
    sources, targets = zip(*pairs, strict=True)
    return SentencePieceTokenizer.train(
        sources,
        targets,
        vocab_size=options.vocab_size,
        kind=options.tokenizer,
        shared=options.shared_vocabulary,
        byte_fallback=options.byte_fallback,
        lowercase=options.lowercase,
    )


def _config(options, tokenizer):
    shared = {"share_embeddings": options.shared_vocabulary}
    own = dict(
        source_vocab_size=tokenizer.source_vocab_size,
        target_vocab_size=tokenizer.target_vocab_size,
        pad_id=tokenizer.pad_id,
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
    )
    return TransformerConfig.from_dict(own | shared | options.model)


def _corpus(options, data_folder, files):
    languages = dict(
        source_language=options.source_language, target_language=options.target_language
    )
    if options.corpus != "files" and not files["train"]:
        return load_corpus(options.corpus, data_folder, train_size=options.train_size, **languages)
    pairs = {}
    for name, paths in files.items():
        if name != "test" and not paths:
            raise ValueError(f"--{name} is required to train on your own text files")
        if paths and len(paths) > 2:
            raise ValueError(f"--{name} takes one file or two, got {len(paths)}")
        pairs[name] = read_pairs(*paths, **languages) if paths else []
    tests = {"test": pairs["test"]} if pairs["test"] else {}
    train_pairs = pairs["train"][: options.train_size]
    return Corpus("files", *languages.values(), train_pairs, pairs["validation"], tests)
