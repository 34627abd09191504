"""Pretrains a small BERT on lines of text by hiding some of their tokens, and saves it.

`python -m training.masked_language_model --help`. What it saves, `training.text_classification`,
`training.token_classification` and `training.question_answering` start from.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import Annotated

import keras
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.data.masking import Masking
from keras_transformer.data.sequences import SequenceBatches
from keras_transformer.data.text_files import read_texts
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.inference.folder import save_folder
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.optimizers import adam
from keras_transformer.text.single import TextTokenizer
from keras_transformer.training.runs import main, run_into, schedule_for


@run_into()
def train(
    text: Annotated[
        list[Path], typer.Option(help="A text a line; of a .tsv the first column. Repeatable.")
    ],
    validation_text: Annotated[Path, typer.Option("--validation", help="The same.")],
    output: Annotated[Path, typer.Option(help="Folder of the run.")],
    vocab_size: Annotated[int, typer.Option(help="Pieces.")] = 8000,
    cased: Annotated[bool, typer.Option(help="Whether pieces keep case and accents.")] = False,
    d_model: Annotated[int, typer.Option(help="Width.")] = 128,
    num_layers: Annotated[int, typer.Option(help="Blocks.")] = 4,
    num_heads: Annotated[int, typer.Option(help="Heads of each.")] = 4,
    dropout: Annotated[float, typer.Option(help="Rate in [0, 1).")] = 0.1,
    max_length: Annotated[int, typer.Option(help="Longest text in pieces.")] = 128,
    tokens_per_batch: Annotated[int, typer.Option(help="Cells of a batch.")] = 4096,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the text.")] = 10,
    learning_rate: Annotated[float, typer.Option(help="The highest.")] = 1e-3,
    warmup_steps: Annotated[int, typer.Option(help="Steps until then.")] = 200,
    precision: Annotated[str, typer.Option(help="Keras dtype policy.")] = "float32",
    seed: Annotated[int, typer.Option(help="Of weights, dropout, order and masks.")] = 0,
) -> None:
    """Pretrains a BERT by dynamic masking, and saves it with its tokenizer and its loss."""
    keep_compilations()
    begun = time.monotonic()

    # Texts, framed by [CLS] and [SEP].
    texts, held_out = [x for file in text for x in read_texts(file)], read_texts(validation_text)
    tokenizer = TextTokenizer.train(texts, "wordpiece", vocab_size, lowercase=not cased)
    special = tuple(map(tokenizer.id_of, ("[UNK]", "[CLS]", "[SEP]")))
    masking = Masking(tokenizer.vocab_size, tokenizer.id_of("[MASK]"), special)
    sizes = dict(tokens_per_batch=tokens_per_batch, max_length=max_length, seed=seed)
    training = SequenceBatches(tokenizer.encode(texts), masking, **sizes)
    validation = SequenceBatches(tokenizer.encode(held_out), masking, **sizes, shuffle=False)

    # Model and training.
    keras.utils.set_random_seed(seed)
    config = BERTConfig(
        tokenizer.vocab_size,
        d_model=d_model,
        num_layers=num_layers,
        num_heads=num_heads,
        dropout=dropout,
        max_length=max_length,
    )
    model = BERT(config, dtype=precision)
    model.compile(
        adam(schedule_for(learning_rate, warmup_steps, epochs * len(training))),
        LabelSmoothedCrossentropy(0.0, config.pad_id),
        metrics=[Perplexity(config.pad_id)],
    )
    print(f"{model.count_params():,} parameters, {len(training)} batches", file=sys.stderr)
    history = model.fit(
        training.dataset(),
        steps_per_epoch=len(training),
        epochs=epochs,
        validation_data=validation.dataset(steps=len(validation)),
        validation_steps=len(validation),
        shuffle=False,
        verbose=2,
    ).history

    # What it has learnt.
    save_folder(output, model, tokenizer, {"task": "masked_language_model"})
    loss = math.log(history["val_perplexity"][-1])
    metrics = dict(loss=loss, epochs=epochs, parameters=model.count_params())
    metrics |= dict(seconds=time.monotonic() - begun, backend=keras.backend.backend())
    save_metrics(output, "validation", metrics)
    print(f"loss {loss:.3f} a hidden token; saved to {output}")


if __name__ == "__main__":
    main(train)
