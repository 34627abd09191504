"""Trains a classifier of texts, a small BERT from scratch, and measures it: files to one folder.

`python -m training.text_classification --help`. Each file has a text, a tab and a label a line,
below a line of names, as those of SST-2 (Socher et al. 2013) in GLUE's form have.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import keras
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.config import require
from keras_transformer.data.sequences import SequenceBatches
from keras_transformer.data.tagged import numbered
from keras_transformer.data.text_files import read_pairs
from keras_transformer.inference.folder import load_with_tokenizer, save_folder
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.models.encoder_only import EncoderOnly
from keras_transformer.optimizers import adam
from keras_transformer.system.files import write_json
from keras_transformer.text.single import TextTokenizer
from keras_transformer.training.runs import main, run_into, schedule_for


@run_into()
def train(
    train_file: Annotated[Path, typer.Option("--train", help="Texts and labels, .tsv or .gz.")],
    validation_file: Annotated[Path, typer.Option("--validation", help="Chooses the epoch.")],
    test_file: Annotated[Path, typer.Option("--test", help="For the last measurement.")],
    output: Annotated[Path, typer.Option(help="Folder of the run.")] = Path(
        "saved_models/text_classification"
    ),
    start_from: Annotated[
        Path | None,
        typer.Option(
            help="A run of training.masked_language_model; an imported BERT, RoBERTa, ALBERT or "
            "ESM-2."
        ),
    ] = None,
    vocab_size: Annotated[int, typer.Option(help="Pieces.")] = 8000,
    d_model: Annotated[int, typer.Option(help="Width.")] = 128,
    num_layers: Annotated[int, typer.Option(help="Blocks.")] = 4,
    num_heads: Annotated[int, typer.Option(help="Heads of each.")] = 4,
    dropout: Annotated[float, typer.Option(help="Rate in [0, 1).")] = 0.3,
    max_length: Annotated[int, typer.Option(help="Longest text in pieces.")] = 128,
    tokens_per_batch: Annotated[int, typer.Option(help="Cells of a batch.")] = 4096,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the data.")] = 8,
    learning_rate: Annotated[float, typer.Option(help="The highest.")] = 1e-3,
    warmup_steps: Annotated[int, typer.Option(help="Steps until then.")] = 500,
    precision: Annotated[str, typer.Option(help="Keras dtype policy.")] = "float32",
    seed: Annotated[int, typer.Option(help="Of weights, dropout and order.")] = 0,
) -> None:
    """Trains a classifier of texts and saves it with its tokenizer and its accuracy."""
    keep_compilations()
    begun = time.monotonic()

    # Texts and labels.
    files = {"train": train_file, "validation": validation_file, "test": test_file}
    pairs = {name: read_pairs(path)[1:] for name, path in files.items()}
    for name, path in files.items():
        require(len(pairs[name]) > 0, f"texts below the names in {path}", 0, "one or more")
    labels = tuple(sorted({label for _, label in pairs["train"]}))
    require(len(labels) > 1, f"labels in {train_file}", labels, "two or more")
    if start_from is None:
        texts = [text for text, _ in pairs["train"]]
        start, tokenizer = None, TextTokenizer.train(texts, "wordpiece", vocab_size)
        pad_id = tokenizer.id_of("[PAD]")
    else:
        start, tokenizer = load_with_tokenizer(start_from, "encoder", EncoderOnly)
        max_length, pad_id = start.config.max_length, start.config.pad_id

    def batches(name, shuffle=False):
        texts, names = zip(*pairs[name], strict=True)
        numbers = numbered(names, labels, files[name])
        sizes = dict(tokens_per_batch=tokens_per_batch, max_length=max_length, pad_id=pad_id)
        options = dict(shuffle=shuffle, seed=seed)
        return SequenceBatches(tokenizer.encode(texts), numbers, **sizes, **options)

    training, validation, test = batches("train", True), batches("validation"), batches("test")

    # The model, trained until the last epoch; the best one is kept.
    keras.utils.set_random_seed(seed)
    head = dict(head="sequence_classification", labels=labels, head_dropout=dropout)
    if start is None:
        config = BERTConfig(
            tokenizer.vocab_size,
            d_model=d_model,
            num_layers=num_layers,
            num_heads=num_heads,
            dropout=dropout,
            max_length=max_length,
            num_types=1,
            **head,
        )
        model = BERT(config, dtype=precision)
    else:
        model = start.with_head(**head, dropout=dropout)
    schedule = schedule_for(learning_rate, warmup_steps, epochs * len(training))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(adam(schedule), loss, metrics=["accuracy"])
    print(f"{model.count_params():,} parameters, {len(training)} batches", file=sys.stderr)
    output.mkdir(parents=True, exist_ok=True)
    best = dict(monitor="val_accuracy", mode="max", save_best_only=True, save_weights_only=True)
    history = model.fit(
        training.dataset(),
        steps_per_epoch=len(training),
        epochs=epochs,
        validation_data=validation.dataset(steps=len(validation)),
        validation_steps=len(validation),
        callbacks=[keras.callbacks.ModelCheckpoint(output / "best.weights.h5", **best)],
        shuffle=False,
        verbose=2,
    ).history
    model.load_weights(output / "best.weights.h5")

    # How good it is.
    save_folder(output, model, tokenizer, {"task": "text_classification"})
    found = model.evaluate(test.dataset(steps=len(test)), steps=len(test), verbose=0)
    metrics = {"test_accuracy": found[1], "validation_accuracy": max(history["val_accuracy"])}
    metrics |= {"parameters": model.count_params(), "seconds": time.monotonic() - begun}
    write_json(output / "metrics.json", metrics | {"backend": keras.backend.backend()})
    print(f"accuracy {found[1]:.4f}; saved to {output}")


if __name__ == "__main__":
    main(train)
