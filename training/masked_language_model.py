"""Pretrain a small BERT on texts by masking tokens, measure it and save it.

`python -m training.masked_language_model --help`. The masked tokens are drawn anew for each batch
(Devlin et al. 2019, section 3.1; dynamic masking: Liu et al. 2019). Fine-tune the saved model with
`training.text_classification`, `training.token_classification` or
`training.question_answering`.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated

import keras
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.data.masking import Masking
from keras_transformer.data.sequence_batches import SequenceBatches
from keras_transformer.data.text_files import read_texts
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.inference.folder import save_folder
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.optimizers import adam
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training import script_options as options
from keras_transformer.training.runs import facts, fit_epochs, main, run_into, schedule_for


@run_into()
def train(
    text_files: Annotated[
        list[Path],
        typer.Option("--text", help="Texts, one per line, or column 1 of a .tsv. Repeatable."),
    ],
    validation_file: Annotated[
        Path, typer.Option("--validation", help="The same, to measure after each epoch.")
    ],
    output: options.Output,
    vocab_size: options.VocabSize = 8000,
    cased: Annotated[bool, typer.Option(help="Keep case and accents.")] = False,
    d_model: options.Width = 128,
    num_layers: options.Layers = 4,
    num_heads: options.Heads = 4,
    dropout: options.Dropout = 0.1,
    max_length: options.MaxLength = 128,
    tokens_per_batch: options.TokensPerBatch = 4096,
    epochs: options.Epochs = 10,
    peak_learning_rate: options.PeakLearningRate = 1e-3,
    warmup_steps: options.WarmupSteps = 200,
    precision: options.Precision = "float32",
    seed: options.Seed = 0,
) -> None:
    """Pretrain a BERT by dynamic masking; save it with its tokenizer and its loss."""
    keep_compilations()
    begun = time.monotonic()
    texts, held_out = (
        [x for path in text_files for x in read_texts(path)],
        read_texts(validation_file),
    )
    tokenizer = TextTokenizer.train(texts, "wordpiece", vocab_size, lowercase=not cased)
    special = tuple(map(tokenizer.id_of, ("[UNK]", "[CLS]", "[SEP]")))
    masking = Masking(tokenizer.vocab_size, tokenizer.id_of("[MASK]"), special)
    sizes = dict(tokens_per_batch=tokens_per_batch, max_length=max_length, seed=seed)
    training = SequenceBatches(tokenizer.encode(texts), masking, **sizes)
    validation = SequenceBatches(tokenizer.encode(held_out), masking, **sizes, shuffle=False)

    keras.utils.set_random_seed(seed)
    sizes = dict(d_model=d_model, num_layers=num_layers, num_heads=num_heads, dropout=dropout)
    config = BERTConfig(tokenizer.vocab_size, **sizes, max_length=max_length)
    model = BERT(config, dtype=precision)
    model.compile(
        adam(schedule_for(peak_learning_rate, warmup_steps, epochs * len(training))),
        LabelSmoothedCrossentropy(0.0, config.pad_id),
        metrics=[Perplexity(config.pad_id)],
    )
    history = fit_epochs(model, training, epochs, validation)

    save_folder(output, model, tokenizer, {"task": "masked_language_model"})
    loss = math.log(history["val_perplexity"][-1])
    save_metrics(output, "validation", dict(loss=loss, epochs=epochs) | facts(model, begun))
    print(f"loss {loss:.3f} per masked token; saved to {output}")


if __name__ == "__main__":
    main(train)
