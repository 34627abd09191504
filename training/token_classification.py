"""Trains a tagger of words, a small BERT, and measures its spans: CoNLL files to one folder.

`python -m training.token_classification --help`. Each line of a file is a word, a tab and its tag,
such as B-person; an empty line ends a sentence, as in WNUT 2017 (Derczynski et al. 2017).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import keras
import numpy as np
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.data.sequences import SequenceBatches
from keras_transformer.data.tagged import labels_of_tokens, numbered, read_tagged
from keras_transformer.data.windows import NO_LABEL
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.evaluation.spans import span_f1
from keras_transformer.inference.folder import load_with_tokenizer, save_folder
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import MaskedAccuracy
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.models.encoder_only import EncoderOnly
from keras_transformer.optimizers import adam
from keras_transformer.text.single import TextTokenizer
from keras_transformer.training.runs import main, run_into, schedule_for


@run_into()
def train(
    train_file: Annotated[Path, typer.Option("--train", help="Words and tags; may be a .gz.")],
    test_file: Annotated[Path, typer.Option("--test", help="For the measurement.")],
    output: Annotated[Path, typer.Option(help="Folder of the run.")],
    start_from: Annotated[
        Path | None,
        typer.Option(
            help="A run of training.masked_language_model; an imported BERT, RoBERTa, ALBERT or "
            "ESM-2."
        ),
    ] = None,
    vocab_size: Annotated[int, typer.Option(help="Pieces.")] = 8000,
    d_model: Annotated[int, typer.Option(help="Width.")] = 128,
    num_layers: Annotated[int, typer.Option(help="Blocks.")] = 2,
    num_heads: Annotated[int, typer.Option(help="Heads of each.")] = 4,
    dropout: Annotated[float, typer.Option(help="Rate in [0, 1).")] = 0.3,
    max_length: Annotated[int, typer.Option(help="Longest sentence in pieces.")] = 192,
    tokens_per_batch: Annotated[int, typer.Option(help="Cells of a batch.")] = 2048,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the data.")] = 15,
    learning_rate: Annotated[float, typer.Option(help="The highest.")] = 1e-3,
    warmup_steps: Annotated[int, typer.Option(help="Steps until then.")] = 50,
    seed: Annotated[int, typer.Option(help="Of weights, dropout and order.")] = 0,
) -> None:
    """Trains a tagger of words and saves it with its tokenizer and the F1 of its spans."""
    keep_compilations()
    begun = time.monotonic()

    # Sentences: pieces, and at the first of each word its tag.
    sentences = {"train": read_tagged(train_file), "test": read_tagged(test_file)}
    labels = tuple(sorted({tag for _, tags in sentences["train"] for tag in tags}))
    for _, tags in sentences["test"]:
        numbered(tags, labels, test_file)
    if start_from is None:
        words = (" ".join(words) for words, _ in sentences["train"])
        tokenizer = TextTokenizer.train(words, "wordpiece", vocab_size, lowercase=False)
        sizes = dict(d_model=d_model, num_layers=num_layers, num_heads=num_heads)
        sizes |= dict(dropout=dropout, max_length=max_length, num_types=1)
        model = BERT(BERTConfig(tokenizer.vocab_size, head="masked_lm", **sizes))
    else:
        model, tokenizer = load_with_tokenizer(start_from, "encoder", EncoderOnly)
        max_length = model.config.max_length
    keras.utils.set_random_seed(seed)
    options = dict(labels=labels, dropout=dropout, head_dropout=dropout)
    model = model.with_head("token_classification", **options)
    encoded = tokenizer.encode_words([words for words, _ in sentences["train"]])
    numbers = [numbered(tags, labels, train_file) for _, tags in sentences["train"]]
    batches = SequenceBatches(
        [ids for ids, _ in encoded],
        labels_of_tokens(encoded, numbers),
        tokens_per_batch=tokens_per_batch,
        max_length=max_length,
        pad_id=model.config.pad_id,
        pad_label=NO_LABEL,
        seed=seed,
    )

    # Training.
    model.compile(
        adam(schedule_for(learning_rate, warmup_steps, epochs * len(batches))),
        LabelSmoothedCrossentropy(0.0, NO_LABEL),
        metrics=[MaskedAccuracy(NO_LABEL)],
    )
    print(f"{model.count_params():,} parameters, {len(batches)} batches", file=sys.stderr)
    steps = len(batches)
    model.fit(batches.dataset(), steps_per_epoch=steps, epochs=epochs, shuffle=False, verbose=2)

    # Spans of the test set; what is cut off has no entity.
    found = []
    encoded = tokenizer.encode_words([words for words, _ in sentences["test"]])
    for ids, starts in encoded:
        logits_TC = model({"token_ids": np.array([ids[:max_length]], "int32")})[0]
        best = keras.ops.convert_to_numpy(keras.ops.argmax(logits_TC, axis=-1))
        found.append([labels[best[i]] if i < max_length else "O" for i in starts])
    metrics = span_f1(found, [tags for _, tags in sentences["test"]])
    save_folder(output, model, tokenizer, {"task": "token_classification"})
    metrics |= dict(parameters=model.count_params(), seconds=time.monotonic() - begun)
    save_metrics(output, "test", metrics)
    print(f"span F1 {metrics['f1']:.3f}; saved to {output}")


if __name__ == "__main__":
    main(train)
