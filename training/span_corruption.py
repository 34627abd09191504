"""Pretrains a small T5 on text by taking spans out of it, and saves it.

`python -m training.span_corruption --help`. What it saves, `training.translation --start-from`
trains further on any task that is written as pairs of texts (Raffel et al. 2020, section 2.4),
say "sst2 sentence: a fine film", a tab and "positive". The model is T5 v1.1: a gated feed-forward
and no dropout in pretraining (Shazeer 2020).
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import Annotated

import keras
import numpy as np
import typer

from keras_transformer.backend import keep_compilations
from keras_transformer.data.corruption import SpanCorruption, corrupted
from keras_transformer.data.streaming import Stream, for_keras
from keras_transformer.data.text_files import read_texts
from keras_transformer.data.windows import Windows
from keras_transformer.evaluation.assess import save_metrics
from keras_transformer.inference.translator import Translator
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import Perplexity
from keras_transformer.models import T5, T5Config
from keras_transformer.optimizers import WarmupSchedule, adam
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.training.runs import main, run_into

SENTINELS = 100


@run_into()
def train(
    texts: Annotated[
        list[Path], typer.Option("--text", help="Lines; of a .tsv the first column. Repeatable.")
    ],
    output: Annotated[Path, typer.Option(help="Folder of the run.")],
    vocab_size: Annotated[int, typer.Option(help="Pieces, without the sentinels.")] = 8000,
    d_model: Annotated[int, typer.Option(help="Width.")] = 128,
    d_ff: Annotated[int, typer.Option(help="Width of the feed-forward, which is gated.")] = 256,
    num_layers: Annotated[int, typer.Option(help="Blocks of encoder and of decoder.")] = 3,
    num_heads: Annotated[int, typer.Option(min=1, help="Heads of each.")] = 4,
    length: Annotated[int, typer.Option(help="Tokens of a window of text.")] = 128,
    rows: Annotated[int, typer.Option(help="Windows a step.")] = 32,
    steps: Annotated[
        int, typer.Option(min=0, help="0: an untrained model, to compare with.")
    ] = 3000,
    learning_rate: Annotated[float, typer.Option(help="The highest.")] = 1e-3,
    warmup_steps: Annotated[int, typer.Option(help="Steps until then.")] = 200,
    precision: Annotated[str, typer.Option(help="Keras dtype policy.")] = "float32",
    seed: Annotated[int, typer.Option(help="Of weights, windows and spans.")] = 0,
) -> None:
    """Pretrains a T5 by span corruption and saves it with its tokenizer and its loss.

    The last twentieth of each text is for validation.
    """
    keep_compilations()
    begun = time.monotonic()

    # Text: one row of ids, the lines one after another.
    lines = {"train": [], "validation": []}
    for own in map(read_texts, texts):
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
    corruption = SpanCorruption(tokenizer.sentinel_ids, tokenizer.eos_id)
    windows = Windows(ids["train"], length, rows, seed)

    def made(windows, *seeds):
        generator = np.random.default_rng([seed, *seeds])
        return corrupted(windows["token_ids"], corruption, generator, tokenizer.bos_id)

    training = Stream(lambda step: made(windows.batch(step)[0], step, 1))
    validation = made(Windows(ids["validation"], length, 1).consecutive()[0])

    # Model and training.
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
    schedule = WarmupSchedule(learning_rate, warmup_steps, max(steps, warmup_steps + 1))
    loss = LabelSmoothedCrossentropy(0.0, config.pad_id)
    model.compile(adam(schedule), loss, metrics=[Perplexity(config.pad_id)])
    facts = f"{model.count_params():,} parameters, {len(ids['train']):,} tokens"
    print(facts, file=sys.stderr)
    if steps:
        epochs = max(1, steps // 500)
        options = dict(steps_per_epoch=steps // epochs, shuffle=False, verbose=2)
        model.fit(for_keras(training), epochs=epochs, **options)

    # What it has learnt.
    loss = math.log(model.evaluate(*validation, batch_size=rows, verbose=0)[1])
    Translator(model, tokenizer).save(output)
    metrics = dict(loss=loss, perplexity=math.exp(loss), steps=steps)
    metrics |= dict(parameters=model.count_params(), seconds=time.monotonic() - begun)
    save_metrics(output, "validation", metrics | {"backend": keras.backend.backend()})
    print(f"loss {loss:.3f} a token of the targets; saved to {output}")


if __name__ == "__main__":
    main(train)
