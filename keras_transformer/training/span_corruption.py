"""Pretrain a small T5 on text by span corruption, and save it.

`python -m training.span_corruption --help`. `training.translation --start-from` trains the saved
model further on any task written as pairs of texts (Raffel et al. 2020, section 2.4), such as
"sst2 sentence: a fine film", a tab and "positive". The model is T5 v1.1: a gated feed-forward and
no dropout in pretraining (Shazeer 2020).
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated

import keras
import numpy as np
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.data.corruption import SpanCorruption, corrupted
from keras_transformer.data.prefetching import Stream, for_keras
from keras_transformer.data.text_files import read_texts
from keras_transformer.data.windows import Windows
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import T5, T5Config
from keras_transformer.optimizers import WarmupSchedule, adam
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.training import script_options as options
from keras_transformer.training.runs import facts, main, run_into, say
from keras_transformer.translate.translator import Translator

SENTINELS = 100


@run_into()
def train(
    text_files: Annotated[
        list[Path],
        typer.Option("--text", help="Texts, one per line, or column 1 of a .tsv. Repeatable."),
    ],
    output: options.Output,
    vocab_size: options.VocabSize = 8000,
    d_model: options.Width = 128,
    d_ff: Annotated[int, typer.Option(help="Width of the gated feed-forward.")] = 256,
    num_layers: options.Layers = 3,
    num_heads: options.Heads = 4,
    length: options.WindowLength = 128,
    rows: options.Rows = 32,
    steps: Annotated[
        int, typer.Option(min=0, help="Steps of training; 0: an untrained model, as a baseline.")
    ] = 3000,
    peak_learning_rate: options.PeakLearningRate = 1e-3,
    warmup_steps: options.WarmupSteps = 200,
    precision: options.Precision = "float32",
    seed: options.Seed = 0,
) -> None:
    """Pretrain a T5 by span corruption; save it with its tokenizer and its loss.

    The last twentieth of each file is for validation.
    """
    keep_compilations()
    begun = time.monotonic()
    tokenizer, ids = _tokens(text_files, vocab_size)
    corruption = SpanCorruption(tokenizer.sentinel_ids, tokenizer.eos_id)
    windows = Windows(ids["train"], length, rows, seed)

    def corrupt(windows, *seeds):
        generator = np.random.default_rng([seed, *seeds])
        return corrupted(windows["token_ids"], corruption, generator, tokenizer.bos_id)

    training = Stream(lambda step: corrupt(windows.batch(step)[0], step, 1))
    validation = corrupt(Windows(ids["validation"], length, 1).consecutive()[0])

    keras.utils.set_random_seed(seed)
    config = T5Config(
        tokenizer.source_vocab_size,
        d_model=d_model,
        d_ff=d_ff,
        num_encoder_layers=num_layers,
        num_decoder_layers=num_layers,
        num_heads=num_heads,
        head_dim=d_model // num_heads,
        dropout=0.0,
        activation="gelu_tanh",
        gated=True,
        tie_output=False,
        scale_output=False,
        pad_id=tokenizer.pad_id,
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
    )
    model = T5(config, dtype=precision)
    schedule = WarmupSchedule(peak_learning_rate, warmup_steps, max(steps, warmup_steps + 1))
    loss = LabelSmoothedCrossentropy(0.0, config.pad_id)
    model.compile(adam(schedule), loss, metrics=[Perplexity(config.pad_id)])
    say(f"{model.count_params():,} parameters, {len(ids['train']):,} tokens")
    if steps:
        epochs = max(1, steps // 500)
        length_of_run = dict(steps_per_epoch=steps // epochs, epochs=epochs)
        model.fit(for_keras(training), **length_of_run, shuffle=False, verbose=2)

    loss = math.log(model.evaluate(*validation, batch_size=rows, verbose=0)[1])
    Translator(model, tokenizer).save(output)
    metrics = dict(loss=loss, perplexity=math.exp(loss), steps=steps)
    save_metrics(output, "validation", metrics | facts(model, begun))
    print(f"loss {loss:.3f} per target token; saved to {output}")


def _tokens(text_files, vocab_size):
    """Return the tokenizer, and the ids of each part with its lines concatenated."""
    lines = {"train": [], "validation": []}
    for own in map(read_texts, text_files):
        split = -(-len(own) * 19 // 20)
        lines["train"] += own[:split]
        lines["validation"] += own[split:]
    if not all(lines.values()):
        raise ValueError(f"text must have 20 lines or more, got {len(lines['train'])}")
    tokenizer = SentencePieceTokenizer.train(
        lines["train"], [], vocab_size=vocab_size, sentinels=SENTINELS
    )
    ids = {
        part: np.concatenate([row[:-1] for row in tokenizer.encode_source(own)])
        for part, own in lines.items()
    }
    return tokenizer, ids


if __name__ == "__main__":
    main(train)
