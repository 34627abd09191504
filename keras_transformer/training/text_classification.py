"""Train a text classifier, a small BERT from scratch or a pretrained encoder, and measure it.

`python -m training.text_classification --help`. Each line of a file is a text, a tab and a label;
the first line holds column names, as in GLUE's form of SST-2 (Socher et al. 2013).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import keras
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.config import require
from keras_transformer.data.sequence_batches import SequenceBatches
from keras_transformer.data.tagged import numbered
from keras_transformer.data.text_files import read_pairs
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.optimizers import adam
from keras_transformer.system.files import write_json
from keras_transformer.tasks.text_classifier import TextClassifier
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training import script_options as options
from keras_transformer.training.fine_tuning import check_lora, fine_tuned, read_encoder, save_run
from keras_transformer.training.runs import facts, fit_epochs, main, run_into, schedule_for


@run_into()
def train(
    train_file: Annotated[
        Path, typer.Option("--train", help="Column names, then texts and labels; .tsv or .gz.")
    ],
    validation_file: Annotated[
        Path, typer.Option("--validation", help="The same, to choose the epoch.")
    ],
    test_file: Annotated[Path, typer.Option("--test", help="The same, for the final measurement.")],
    output: options.Output = Path("saved_models/text_classification"),
    start_from: options.StartFrom = None,
    lora_rank: options.LoRARank = 0,
    vocab_size: options.VocabSize = 8000,
    d_model: options.Width = 128,
    num_layers: options.Layers = 4,
    num_heads: options.Heads = 4,
    dropout: options.Dropout = 0.3,
    max_length: options.MaxLength = 128,
    tokens_per_batch: options.TokensPerBatch = 4096,
    epochs: options.Epochs = 8,
    peak_learning_rate: options.PeakLearningRate = 1e-3,
    warmup_steps: options.WarmupSteps = 500,
    precision: options.Precision = "float32",
    seed: options.Seed = 0,
) -> None:
    """Train a text classifier; save it with its tokenizer and its accuracy."""
    keep_compilations()
    begun = time.monotonic()
    check_lora(lora_rank, start_from)
    pairs, labels = _labelled(train_file, validation_file, test_file)
    if start_from is None:
        start, tokenizer = None, TextTokenizer.train(pairs["train"][0], "wordpiece", vocab_size)
        pad_id = tokenizer.id_of("[PAD]")
    else:
        start, tokenizer = read_encoder(start_from)
        max_length, pad_id = start.config.max_length, start.config.pad_id
    sizes = dict(tokens_per_batch=tokens_per_batch, max_length=max_length, pad_id=pad_id, seed=seed)
    training, validation, test = (
        SequenceBatches(
            tokenizer.encode(texts, max_length=max_length),
            numbers,
            shuffle=name == "train",
            **sizes,
        )
        for name, (texts, numbers) in pairs.items()
    )

    keras.utils.set_random_seed(seed)
    head = dict(head="sequence_classification", labels=labels, head_dropout=dropout)
    if start is None:
        sizes = dict(d_model=d_model, num_layers=num_layers, num_heads=num_heads)
        sizes |= dict(dropout=dropout, max_length=max_length, num_types=1)
        model = BERT(BERTConfig(tokenizer.vocab_size, **sizes, **head), dtype=precision)
    else:
        own = dict(precision=precision, lora_rank=lora_rank)
        model = fine_tuned(start, **head, dropout=dropout, **own)
    schedule = schedule_for(peak_learning_rate, warmup_steps, epochs * len(training))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(adam(schedule), loss, metrics=["accuracy"])

    # All epochs are trained; the best one on the validation set is kept.
    best = dict(monitor="val_accuracy", mode="max", restore_best_weights=True, patience=epochs)
    callbacks = [keras.callbacks.EarlyStopping(**best)]
    history = fit_epochs(model, training, epochs, validation, callbacks=callbacks)

    save_run(TextClassifier(model, tokenizer).save, output, start_from, lora_rank)
    accuracy = model.evaluate(test.dataset(steps=len(test)), steps=len(test), verbose=0)[1]
    found = {"test_accuracy": accuracy, "validation_accuracy": max(history["val_accuracy"])}
    write_json(output / "metrics.json", found | facts(model, begun))
    print(f"accuracy {accuracy:.4f}; saved to {output}")


def _labelled(train_file, validation_file, test_file):
    """Read the texts of each file with their label numbers; return also the labels."""
    files = {"train": train_file, "validation": validation_file, "test": test_file}
    lines = {name: read_pairs(path) for name, path in files.items()}
    pairs = {name: own[1:] for name, own in lines.items()}
    for name, path in files.items():
        require(len(pairs[name]) > 0, f"texts below the column names in {path}", 0, "one or more")
    labels = tuple(sorted({label for _, label in pairs["train"]}))
    require(len(labels) > 1, f"labels in {train_file}", labels, "two or more")
    for name, path in files.items():
        title = lines[name][0][1]
        require(title not in labels, f"line 1 of {path}", title, "column names, without a label")
    columns = {name: tuple(zip(*own, strict=True)) for name, own in pairs.items()}
    return {
        name: (texts, numbered(names, labels, files[name]))
        for name, (texts, names) in columns.items()
    }, labels


if __name__ == "__main__":
    main(train)
